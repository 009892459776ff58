"""Every error that kafka_fast raises: the class says what the caller may do.

    KafkaError
    ├── ConfigError (ValueError)              an option is unknown, out of range or contradictory
    ├── UsageError                            a call that the object's state does not allow
    ├── KafkaTimeoutError (TimeoutError)      a deadline passed; the message names it
    ├── KafkaConnectionError (ConnectionError)  no link to a node, or the link broke
    │   ├── AuthenticationError               the broker refused the credentials
    │   └── TlsError                          handshake or certificate
    ├── ProtocolError                         the peer sent something that is not Kafka's protocol
    │   ├── MalformedError                    bytes that do not follow the message's schema
    │   ├── CorruptBatchError                 a record batch whose CRC or structure is wrong
    │   │   └── UnreadableBatchError          one in the way of a consumer: says how to go past it
    │   ├── FrameTooLargeError                a length prefix above the limit
    │   └── UnsupportedVersionError           no version of an API that both sides speak
    ├── BrokerError                           the broker's answer was an error code; one class per
    │   │                                     code, named like Kafka's constant in CamelCase
    │   ├── NotLeaderOrFollower, UnknownTopicOrPartition, ...
    │   └── UnknownBrokerError                a code that this table does not know
    ├── SerializationError                    a serializer, or a value that is not bytes
    │   └── RecordDeserializationError        a record that a consumer's deserializer refused
    ├── PositionError                         a partition cannot be read on from where it stands
    │   ├── NoOffsetForPartitionError, OffsetOutOfRangeError, LogTruncationError
    ├── CommitFailedError                     the group has moved on: others read these partitions
    ├── WakeupError                           another thread called wakeup() or close()
    └── DeliveryError                         records that were not, or maybe not, delivered

All can be pickled: Spark carries them to the driver. This module imports Python's own ones only.
"""

from __future__ import annotations

import copy
import enum
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

__all__ = [
    "BROKER_ERRORS",
    "ERRORS",
    "AuthenticationError",
    "BrokerError",
    "CommitFailedError",
    "ConfigError",
    "CorruptBatchError",
    "DeliveryError",
    "ErrorCode",
    "FrameTooLargeError",
    "KafkaConnectionError",
    "KafkaError",
    "KafkaTimeoutError",
    "LogTruncationError",
    "MalformedError",
    "NoOffsetForPartitionError",
    "OffsetOutOfRangeError",
    "Outcome",
    "PositionError",
    "ProtocolError",
    "RecordDeserializationError",
    "SerializationError",
    "TlsError",
    "UnknownBrokerError",
    "UnreadableBatchError",
    "UnsupportedVersionError",
    "UsageError",
    "WakeupError",
    "WouldWaitError",
    "broker_error",
    "drop_frames",
    "error_name",
    "fresh_copy",
]


def _restore(cls: type[KafkaError], args: tuple[Any, ...], state: dict[str, Any]) -> KafkaError:
    """Build an unpickled error without its constructor, whose arguments may be keyword-only."""
    error = cls.__new__(cls, *args)
    error.args = args  # OSError.__new__ leaves args empty for subclasses that define __init__
    error.__dict__.update(state)
    return error


class KafkaError(Exception):
    """Base of every error that kafka_fast raises."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)


_Error = TypeVar("_Error", bound=KafkaError)


def fresh_copy(error: _Error) -> _Error:
    """Return a copy to raise of an error that is kept.

    An object that is raised again and again gathers tracebacks, and with them every caller's
    frames; raised by two threads at once, it shows each of them the other's.
    """
    copied = copy.copy(error)
    if error.__cause__ is not None:
        copied.__cause__ = error.__cause__
    return copied


def drop_frames(error: BaseException) -> None:
    """Let go of the frames that an error, and what led to it, was raised in.

    For errors that are kept: an answer that cannot be read stands in such a frame, whole.
    """
    chain: list[BaseException | None] = [error]
    seen: set[int] = set()
    while chain:
        link = chain.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            link.__traceback__ = None
            chain += [link.__cause__, link.__context__]


class ConfigError(KafkaError, ValueError):
    """An option is unknown, out of range or contradicts another one."""


class UsageError(KafkaError):
    """The call is not allowed in this state: closed client, wrong thread, forked child."""


class KafkaTimeoutError(KafkaError, TimeoutError):
    """A deadline passed before the operation ended."""


class WouldWaitError(KafkaError):
    """A call that never waits would have to: try again later, or use the call that waits.

    Attributes:
        topic: where the record was to go.
        size: bytes of buffer.memory that it needs; 0 if the topic's metadata are missing.
    """

    def __init__(self, message: str, *, topic: str, size: int = 0) -> None:
        super().__init__(message)
        self.topic = topic
        self.size = size


class KafkaConnectionError(KafkaError, ConnectionError):
    """A node could not be reached, or the connection to it broke."""


class AuthenticationError(KafkaConnectionError):
    """The broker refused the credentials; trying again with the same ones is pointless."""


class TlsError(KafkaConnectionError):
    """The TLS handshake failed, or a certificate is not trusted."""


class ProtocolError(KafkaError):
    """The peer broke Kafka's protocol; the connection that carried the bytes must be closed."""


class MalformedError(ProtocolError):
    """Bytes do not follow the schema of the message they were read as.

    Attributes:
        problem: what stands there instead, as in "an answer with ..."; "" where nobody has said.
        place: the field: "topics[3].name".
        pos: the byte at which that stands; -1: nobody has said. In an answer that came over a
            connection byte 0 is the first one of the correlation id.
    """

    def __init__(self, message: str, *, problem: str = "", place: str = "", pos: int = -1) -> None:
        super().__init__(message)
        self.problem = problem
        self.place = place
        self.pos = pos


class CorruptBatchError(ProtocolError):
    """A record batch has a wrong CRC, length or structure."""


class UnreadableBatchError(CorruptBatchError):
    """A consumer met a corrupt batch. Its partition stays there until somebody seeks past it.

    Attributes:
        topic: the batch's topic.
        partition: its partition.
        offset: where the consumer stands: the offset of the next record it would hand out.
        next_offset: where to seek to go on behind the batch; None if its end cannot be known.
    """

    def __init__(
        self, message: str, *, topic: str, partition: int, offset: int, next_offset: int | None
    ) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.next_offset = next_offset


class FrameTooLargeError(ProtocolError):
    """A frame announces more bytes than the limit allows."""


class UnsupportedVersionError(ProtocolError):
    """The two sides share no version of an API, or the version lacks a field that is set.

    Attributes:
        header: the request header (`protocol.frame.RequestHeader`) if a server side met the
            error while it read a request, so that it can still answer; else None.
    """

    def __init__(self, message: str, *, header: Any = None) -> None:
        super().__init__(message)
        self.header = header


class SerializationError(KafkaError):
    """A key, value or header could not be turned into bytes, or back."""


class RecordDeserializationError(SerializationError):
    """A deserializer refused a record. Its partition stays there until somebody seeks past it.

    Attributes:
        topic: the record's topic.
        partition: its partition.
        offset: its offset.
        next_offset: where to seek to go on behind it.
        part: `key` or `value`.
        record: the record, with key and value as bytes, for whoever wants to put it aside.
    """

    def __init__(
        self, message: str, *, topic: str, partition: int, offset: int, part: str, record: Any
    ) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.next_offset = offset + 1
        self.part = part
        self.record = record


class Outcome(enum.Enum):
    """What is known of a record whose delivery failed."""

    NOT_SENT = "not sent"  #: never reached a broker: sending it again cannot duplicate it
    REJECTED = "rejected"  #: a broker refused it: it is in no log
    MAYBE_WRITTEN = "maybe written"  #: the answer was lost: sending it again may duplicate it


class DeliveryError(KafkaError):
    """Records were not delivered, or nobody knows whether they were.

    Attributes:
        outcome: what is known of the records; of several, the least certain one.
        count: number of records concerned.
        first: the error of the first of them, or None.
        samples: a few errors, for the log.
        topic: where the record was to go, or None if the error is of several topics.
        partition: the partition it was assigned to, or None if there was none, or several.
        is_collateral: refused only because of another record in its batch: it may be sent again.
    """

    def __init__(
        self,
        message: str,
        *,
        outcome: Outcome,
        count: int = 1,
        first: BaseException | None = None,
        samples: Sequence[BaseException] = (),
        topic: str | None = None,
        partition: int | None = None,
        is_collateral: bool = False,
    ) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.count = count
        self.first = first
        self.samples = tuple(samples)
        self.topic = topic
        self.partition = partition
        self.is_collateral = is_collateral


class PositionError(KafkaError):
    """A partition cannot be read on from where it stands; `seek` says where to go on.

    Attributes:
        topic: the partition's topic.
        partition: its number.
        offset: the one in question, or None.
    """

    def __init__(
        self, message: str, *, topic: str, partition: int, offset: int | None = None
    ) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition
        self.offset = offset


class NoOffsetForPartitionError(PositionError):
    """The group has no committed offset, and auto.offset.reset=none names no other start."""


class OffsetOutOfRangeError(PositionError):
    """The log does not hold the position any more, or not yet, and auto.offset.reset is none."""


class LogTruncationError(PositionError):
    """What has been read is not in the log any more (KIP-320).

    Attributes:
        offset: where the log was cut off.
        position: up to where it had been read; records between the two were lost.
    """

    def __init__(
        self, message: str, *, topic: str, partition: int, offset: int, position: int
    ) -> None:
        super().__init__(message, topic=topic, partition=partition, offset=offset)
        self.position = position


class CommitFailedError(KafkaError):
    """A commit was refused: the group has moved on, and others read these partitions now."""


class WakeupError(KafkaError):
    """Another thread called `wakeup` or `close` while this one waited in the consumer."""


class BrokerError(KafkaError):
    """The broker answered with an error code.

    Attributes:
        code: Kafka's number.
        name: Kafka's constant, such as "NOT_LEADER_OR_FOLLOWER".
        retriable: the same request may succeed later.
        refresh_metadata: the client's picture of the cluster is stale: refresh it first.
        fatal: the client that met it cannot go on and must be closed.
        description: what the code means, in a sentence.
    """

    code: int = -1
    name: str = "UNKNOWN_SERVER_ERROR"
    retriable: ClassVar[bool] = False
    refresh_metadata: ClassVar[bool] = False
    fatal: ClassVar[bool] = False
    description: ClassVar[str] = "the broker answered with an error"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.name} ({self.code}): {self.args[0] or self.description}"


class UnknownBrokerError(BrokerError):
    """A code that this table does not know: a broker newer than this client."""

    description = "an error code that this client does not know"

    def __init__(self, message: str | None = None, *, code: int = -1) -> None:
        super().__init__(message)
        self.code = code
        self.name = f"UNKNOWN_{code}"


_RETRY = 1  # retriable
_STALE = 3  # retriable once the metadata has been refreshed
_FATAL = 4  # the client must be closed


class ErrorCode(enum.IntEnum):
    """The error codes of Kafka's protocol; each is a plain int, too.

    Attributes:
        flags: what may be done about it, as bits of this module.
        description: what the code means, in a sentence.
    """

    flags: int
    description: str

    def __new__(cls, code: int, flags: int, description: str) -> ErrorCode:
        """Make a member of its row."""
        made = int.__new__(cls, code)
        made._value_ = code
        made.flags = flags
        made.description = description
        return made

    UNKNOWN_SERVER_ERROR = -1, 0, "the broker failed in a way it did not expect"
    NONE = 0, 0, "no error"
    OFFSET_OUT_OF_RANGE = 1, 0, "the log does not hold this offset"
    CORRUPT_MESSAGE = 2, _RETRY, "the broker found a record corrupt, or without its key"
    UNKNOWN_TOPIC_OR_PARTITION = 3, _STALE, "the broker does not host this partition"
    INVALID_FETCH_SIZE = 4, 0, "the fetch size is not valid"
    LEADER_NOT_AVAILABLE = 5, _STALE, "the partition has no leader at the moment"
    NOT_LEADER_OR_FOLLOWER = 6, _STALE, "the broker does not lead, or hold, the partition"
    REQUEST_TIMED_OUT = 7, _RETRY, "the broker could not finish the request in time"
    BROKER_NOT_AVAILABLE = 8, 0, "the broker is not available"
    REPLICA_NOT_AVAILABLE = 9, _STALE, "the replica is not available"
    MESSAGE_TOO_LARGE = 10, 0, "the batch is larger than the broker or topic accepts"
    STALE_CONTROLLER_EPOCH = 11, 0, "the controller has moved"
    OFFSET_METADATA_TOO_LARGE = 12, 0, "the metadata string of a commit is too long"
    NETWORK_EXCEPTION = 13, _STALE, "the connection broke before the answer"
    COORDINATOR_LOAD_IN_PROGRESS = 14, _RETRY, "the coordinator is still loading its state"
    COORDINATOR_NOT_AVAILABLE = 15, _RETRY, "there is no coordinator at the moment"
    NOT_COORDINATOR = 16, _RETRY, "another broker is the coordinator"
    INVALID_TOPIC_EXCEPTION = 17, 0, "the topic's name is not valid, or it is internal"
    RECORD_LIST_TOO_LARGE = 18, 0, "the batch is larger than a log segment"
    NOT_ENOUGH_REPLICAS = 19, _RETRY, "too few replicas are in sync; nothing was written"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, _RETRY, "written, but to too few in-sync replicas"
    INVALID_REQUIRED_ACKS = 21, 0, "acks must be -1, 0 or 1"
    ILLEGAL_GENERATION = 22, 0, "the group has moved on to another generation"
    INCONSISTENT_GROUP_PROTOCOL = 23, 0, "no protocol in common with the group's members"
    INVALID_GROUP_ID = 24, 0, "the group id is not valid"
    UNKNOWN_MEMBER_ID = 25, 0, "the coordinator does not know this member"
    INVALID_SESSION_TIMEOUT = 26, 0, "the session timeout is outside the broker's range"
    REBALANCE_IN_PROGRESS = 27, 0, "the group rebalances: join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, 0, "the commit is too large"
    TOPIC_AUTHORIZATION_FAILED = 29, 0, "not authorized for the topic"
    GROUP_AUTHORIZATION_FAILED = 30, 0, "not authorized for the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, _FATAL, "not authorized for the cluster"
    INVALID_TIMESTAMP = 32, 0, "the timestamp is outside the topic's accepted range"
    UNSUPPORTED_SASL_MECHANISM = 33, _FATAL, "the broker does not offer this SASL mechanism"
    ILLEGAL_SASL_STATE = 34, _FATAL, "the request does not fit the state of authentication"
    UNSUPPORTED_VERSION = 35, _FATAL, "the broker does not support this version of the API"
    TOPIC_ALREADY_EXISTS = 36, 0, "a topic of this name exists"
    INVALID_PARTITIONS = 37, 0, "the number of partitions is not valid"
    INVALID_REPLICATION_FACTOR = 38, 0, "below 1, or more replicas than brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, 0, "the replica assignment is not valid"
    INVALID_CONFIG = 40, 0, "a configuration value is not valid"
    NOT_CONTROLLER = 41, _RETRY, "another broker is the controller"
    INVALID_REQUEST = 42, 0, "the broker found the request not valid; its log says why"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, 0, "the topic's message format is too old for this"
    POLICY_VIOLATION = 44, 0, "the request breaks a policy of the cluster"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, 0, "the batch does not follow the last one written"
    DUPLICATE_SEQUENCE_NUMBER = 46, 0, "the batch was written before"
    INVALID_PRODUCER_EPOCH = 47, 0, "the producer's epoch is older than the log's"
    INVALID_TXN_STATE = 48, _FATAL, "the transaction's state does not allow this"
    INVALID_PRODUCER_ID_MAPPING = 49, 0, "the transactional id has another producer id"
    INVALID_TRANSACTION_TIMEOUT = 50, _FATAL, "the timeout is above the broker's maximum"
    CONCURRENT_TRANSACTIONS = 51, _RETRY, "the last transaction of this id still completes"
    TRANSACTION_COORDINATOR_FENCED = 52, 0, "a newer transaction coordinator has taken over"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, _FATAL, "not authorized for the id"
    SECURITY_DISABLED = 54, 0, "the cluster has no authorizer"
    OPERATION_NOT_ATTEMPTED = 55, 0, "not tried, because another one of the request failed"
    KAFKA_STORAGE_ERROR = 56, _STALE, "the broker's disk failed"
    LOG_DIR_NOT_FOUND = 57, 0, "the broker has no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, _FATAL, "the credentials were refused"
    UNKNOWN_PRODUCER_ID = 59, 0, "the log no longer holds any record of this producer"
    REASSIGNMENT_IN_PROGRESS = 60, 0, "the partition is being reassigned"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, 0, "delegation tokens are switched off"
    DELEGATION_TOKEN_NOT_FOUND = 62, 0, "no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, 0, "the principal neither owns nor may renew it"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, 0, "not allowed on this kind of connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, 0, "not authorized for the delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, 0, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, 0, "the principal's type is not supported"
    NON_EMPTY_GROUP = 68, 0, "the group has members"
    GROUP_ID_NOT_FOUND = 69, 0, "no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, _RETRY, "the broker has dropped the fetch session"
    INVALID_FETCH_SESSION_EPOCH = 71, _RETRY, "the fetch session is at another epoch"
    LISTENER_NOT_FOUND = 72, _STALE, "the leader has no listener of the one asked through"
    TOPIC_DELETION_DISABLED = 73, 0, "the cluster does not allow topics to be deleted"
    FENCED_LEADER_EPOCH = 74, _STALE, "the request's leader epoch is older than the broker's"
    UNKNOWN_LEADER_EPOCH = 75, _RETRY, "the request's leader epoch is newer than the broker's"
    UNSUPPORTED_COMPRESSION_TYPE = 76, 0, "this version cannot carry the compression codec"
    STALE_BROKER_EPOCH = 77, 0, "the broker has registered again since"
    OFFSET_NOT_AVAILABLE = 78, _RETRY, "a new leader does not know its high watermark yet"
    MEMBER_ID_REQUIRED = 79, 0, "join again with the member id of this answer"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, _STALE, "the preferred leader is not available"
    GROUP_MAX_SIZE_REACHED = 81, 0, "the group takes no more members"
    FENCED_INSTANCE_ID = 82, _FATAL, "another member has taken over this group.instance.id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, _STALE, "no eligible leader is available"
    ELECTION_NOT_NEEDED = 84, _STALE, "the partition has its leader already"
    NO_REASSIGNMENT_IN_PROGRESS = 85, 0, "the partition is not being reassigned"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, 0, "the group still consumes the topic"
    INVALID_RECORD = 87, 0, "the broker's validation refused a record"
    UNSTABLE_OFFSET_COMMIT = 88, _RETRY, "a transaction's offsets are not decided yet"
    THROTTLING_QUOTA_EXCEEDED = 89, _RETRY, "a quota is used up for now"
    PRODUCER_FENCED = 90, _FATAL, "a newer producer uses the same transactional id"
    RESOURCE_NOT_FOUND = 91, 0, "no such resource"
    DUPLICATE_RESOURCE = 92, 0, "the request names a resource twice"
    UNACCEPTABLE_CREDENTIAL = 93, 0, "the credential does not meet the requirements"
    INCONSISTENT_VOTER_SET = 94, 0, "sender or receiver is not one of the voters"
    INVALID_UPDATE_VERSION = 95, 0, "the version to update to is not valid"
    FEATURE_UPDATE_FAILED = 96, 0, "the finalized features could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, 0, "a forwarded principal could not be read"
    SNAPSHOT_NOT_FOUND = 98, 0, "no such snapshot"
    POSITION_OUT_OF_RANGE = 99, 0, "the position is outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, _STALE, "the broker does not know this topic id"
    DUPLICATE_BROKER_REGISTRATION = 101, 0, "the broker id is in use"
    BROKER_ID_NOT_REGISTERED = 102, 0, "the broker id is not registered"
    INCONSISTENT_TOPIC_ID = 103, _STALE, "the log belongs to another topic id"
    INCONSISTENT_CLUSTER_ID = 104, 0, "the broker belongs to another cluster"
    TRANSACTIONAL_ID_NOT_FOUND = 105, 0, "no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, _RETRY, "the fetch session mixed ids and names"
    INELIGIBLE_REPLICA = 107, 0, "a replica may not join the in-sync set"
    NEW_LEADER_ELECTED = 108, 0, "the change was made and another leader elected"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, 0, "the offset is in tiered storage"
    FENCED_MEMBER_EPOCH = 110, 0, "the member is fenced: give up its partitions and rejoin"
    UNRELEASED_INSTANCE_ID = 111, 0, "another member still uses this group.instance.id"
    UNSUPPORTED_ASSIGNOR = 112, 0, "the group does not support this assignor"
    STALE_MEMBER_EPOCH = 113, 0, "wait for the member's new epoch and try again"
    MISMATCHED_ENDPOINT_TYPE = 114, 0, "the wrong kind of endpoint: broker or controller"
    UNSUPPORTED_ENDPOINT_TYPE = 115, 0, "this kind of endpoint is not supported"
    UNKNOWN_CONTROLLER_ID = 116, 0, "no such controller"
    UNKNOWN_SUBSCRIPTION_ID = 117, 0, "the telemetry subscription has changed"
    TELEMETRY_TOO_LARGE = 118, 0, "more telemetry than the broker accepts"
    INVALID_REGISTRATION = 119, 0, "the controller refused the broker's registration"
    TRANSACTION_ABORTABLE = 120, 0, "abort the transaction; the producer may go on"
    INVALID_RECORD_STATE = 121, 0, "the record can no longer be acknowledged"
    SHARE_SESSION_NOT_FOUND = 122, _RETRY, "the broker has dropped the share session"
    INVALID_SHARE_SESSION_EPOCH = 123, _RETRY, "the share session is at another epoch"
    FENCED_STATE_EPOCH = 124, 0, "the share group's state is at another epoch"
    INVALID_VOTER_KEY = 125, 0, "the voter's key is another replica's"
    DUPLICATE_VOTER = 126, 0, "the voter is in the set already"
    VOTER_NOT_FOUND = 127, 0, "the voter is not in the set"
    INVALID_REGULAR_EXPRESSION = 128, 0, "the broker could not parse the pattern"
    REBOOTSTRAP_REQUIRED = 129, 0, "start again from the bootstrap servers"
    STREAMS_INVALID_TOPOLOGY = 130, 0, "the topology is not valid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, 0, "the topology's epoch is not valid"
    STREAMS_TOPOLOGY_FENCED = 132, 0, "the topology's epoch is outdated"
    SHARE_SESSION_LIMIT_REACHED = 133, _RETRY, "the broker holds no more share sessions"
    GROUP_DELETION_FAILED = 134, 0, "a group could not be deleted; its result says why"
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135, 0, "the description was not stored"
    CONTROLLER_ID_NOT_REGISTERED = 136, 0, "the controller id is not registered"


def _class_of(code: ErrorCode) -> type[BrokerError]:
    """Make the class of one code and put it into this module, where pickle looks for it."""
    class_name = "".join(word.capitalize() for word in code.name.split("_"))
    attributes = {
        "__doc__": f"{code.name} ({int(code)}): {code.description}.",
        "__module__": __name__,
        "code": int(code),
        "name": code.name,
        "retriable": bool(code.flags & _RETRY),
        "refresh_metadata": code.flags & _STALE == _STALE,
        "fatal": bool(code.flags & _FATAL),
        "description": code.description,
    }
    made = type(class_name, (BrokerError,), attributes)
    globals()[class_name] = made
    return made


#: Error code -> its class. The class attributes are the data: code, name, retriable, ...
ERRORS: Mapping[int, type[BrokerError]] = MappingProxyType(
    {int(code): _class_of(code) for code in ErrorCode if code}
)

BROKER_ERRORS = frozenset(known.__name__ for known in ERRORS.values())
"""The names of the classes of the table."""


def __getattr__(name: str) -> type[BrokerError]:
    """Tell type checkers that the classes of the table exist; the package replaces this."""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def broker_error(code: int, message: str | None = None) -> BrokerError:
    """Return the error for a code from an answer.

    Args:
        code: any code but 0; an unknown one gives an UnknownBrokerError that keeps the number.
        message: what the broker said, or the context (topic, partition); None: the description.

    Raises:
        ValueError: the code is 0, which is no error.
    """
    if code == 0:
        raise ValueError("error code 0 means success")
    known = ERRORS.get(code)
    return UnknownBrokerError(message, code=code) if known is None else known(message)


def error_description(code: int) -> str:
    """Return what a code but 0 means, in a sentence, to go on from what was asked."""
    return ERRORS.get(code, UnknownBrokerError).description


def error_name(code: int) -> str:
    """Return Kafka's constant for a code, for logs: "NONE", "NOT_COORDINATOR", "UNKNOWN_999"."""
    if code == 0:
        return "NONE"
    known = ERRORS.get(code)
    return f"UNKNOWN_{code}" if known is None else known.name
