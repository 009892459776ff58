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

All of them can be pickled: Spark carries them from a worker to the driver. This module imports
the standard library only and stands below every other one.
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
    ) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.count = count
        self.first = first
        self.samples = tuple(samples)
        self.topic = topic
        self.partition = partition


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

# code, Kafka's constant, flags, description. The order is the code's; 0 is no error.
_TABLE: tuple[tuple[int, str, int, str], ...] = (
    (-1, "UNKNOWN_SERVER_ERROR", 0, "the broker failed in a way it did not expect"),
    (1, "OFFSET_OUT_OF_RANGE", 0, "the log does not hold this offset"),
    (2, "CORRUPT_MESSAGE", _RETRY, "the broker found a record corrupt, or without its key"),
    (3, "UNKNOWN_TOPIC_OR_PARTITION", _STALE, "the broker does not host this partition"),
    (4, "INVALID_FETCH_SIZE", 0, "the fetch size is not valid"),
    (5, "LEADER_NOT_AVAILABLE", _STALE, "the partition has no leader at the moment"),
    (6, "NOT_LEADER_OR_FOLLOWER", _STALE, "the broker does not lead, or hold, the partition"),
    (7, "REQUEST_TIMED_OUT", _RETRY, "the broker could not finish the request in time"),
    (8, "BROKER_NOT_AVAILABLE", 0, "the broker is not available"),
    (9, "REPLICA_NOT_AVAILABLE", _STALE, "the replica is not available"),
    (10, "MESSAGE_TOO_LARGE", 0, "the batch is larger than the broker or topic accepts"),
    (11, "STALE_CONTROLLER_EPOCH", 0, "the controller has moved"),
    (12, "OFFSET_METADATA_TOO_LARGE", 0, "the metadata string of a commit is too long"),
    (13, "NETWORK_EXCEPTION", _STALE, "the connection broke before the answer"),
    (14, "COORDINATOR_LOAD_IN_PROGRESS", _RETRY, "the coordinator is still loading its state"),
    (15, "COORDINATOR_NOT_AVAILABLE", _RETRY, "there is no coordinator at the moment"),
    (16, "NOT_COORDINATOR", _RETRY, "another broker is the coordinator"),
    (17, "INVALID_TOPIC_EXCEPTION", 0, "the topic's name is not valid, or it is internal"),
    (18, "RECORD_LIST_TOO_LARGE", 0, "the batch is larger than a log segment"),
    (19, "NOT_ENOUGH_REPLICAS", _RETRY, "too few replicas are in sync; nothing was written"),
    (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", _RETRY, "written, but to too few in-sync replicas"),
    (21, "INVALID_REQUIRED_ACKS", 0, "acks must be -1, 0 or 1"),
    (22, "ILLEGAL_GENERATION", 0, "the group has moved on to another generation"),
    (23, "INCONSISTENT_GROUP_PROTOCOL", 0, "no protocol in common with the group's members"),
    (24, "INVALID_GROUP_ID", 0, "the group id is not valid"),
    (25, "UNKNOWN_MEMBER_ID", 0, "the coordinator does not know this member"),
    (26, "INVALID_SESSION_TIMEOUT", 0, "the session timeout is outside the broker's range"),
    (27, "REBALANCE_IN_PROGRESS", 0, "the group rebalances: join again"),
    (28, "INVALID_COMMIT_OFFSET_SIZE", 0, "the commit is too large"),
    (29, "TOPIC_AUTHORIZATION_FAILED", 0, "not authorized for the topic"),
    (30, "GROUP_AUTHORIZATION_FAILED", 0, "not authorized for the group"),
    (31, "CLUSTER_AUTHORIZATION_FAILED", _FATAL, "not authorized for the cluster"),
    (32, "INVALID_TIMESTAMP", 0, "the timestamp is outside the topic's accepted range"),
    (33, "UNSUPPORTED_SASL_MECHANISM", _FATAL, "the broker does not offer this SASL mechanism"),
    (34, "ILLEGAL_SASL_STATE", _FATAL, "the request does not fit the state of authentication"),
    (35, "UNSUPPORTED_VERSION", _FATAL, "the broker does not support this version of the API"),
    (36, "TOPIC_ALREADY_EXISTS", 0, "a topic of this name exists"),
    (37, "INVALID_PARTITIONS", 0, "the number of partitions is not valid"),
    (38, "INVALID_REPLICATION_FACTOR", 0, "below 1, or more replicas than brokers"),
    (39, "INVALID_REPLICA_ASSIGNMENT", 0, "the replica assignment is not valid"),
    (40, "INVALID_CONFIG", 0, "a configuration value is not valid"),
    (41, "NOT_CONTROLLER", _RETRY, "another broker is the controller"),
    (42, "INVALID_REQUEST", 0, "the broker found the request not valid; its log says why"),
    (43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", 0, "the topic's message format is too old for this"),
    (44, "POLICY_VIOLATION", 0, "the request breaks a policy of the cluster"),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", 0, "the batch does not follow the last one written"),
    (46, "DUPLICATE_SEQUENCE_NUMBER", 0, "the batch was written before"),
    (47, "INVALID_PRODUCER_EPOCH", 0, "the producer's epoch is older than the log's"),
    (48, "INVALID_TXN_STATE", _FATAL, "the transaction's state does not allow this"),
    (49, "INVALID_PRODUCER_ID_MAPPING", 0, "the transactional id has another producer id"),
    (50, "INVALID_TRANSACTION_TIMEOUT", _FATAL, "the timeout is above the broker's maximum"),
    (51, "CONCURRENT_TRANSACTIONS", _RETRY, "the last transaction of this id still completes"),
    (52, "TRANSACTION_COORDINATOR_FENCED", 0, "a newer transaction coordinator has taken over"),
    (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", _FATAL, "not authorized for the id"),
    (54, "SECURITY_DISABLED", 0, "the cluster has no authorizer"),
    (55, "OPERATION_NOT_ATTEMPTED", 0, "not tried, because another one of the request failed"),
    (56, "KAFKA_STORAGE_ERROR", _STALE, "the broker's disk failed"),
    (57, "LOG_DIR_NOT_FOUND", 0, "the broker has no such log directory"),
    (58, "SASL_AUTHENTICATION_FAILED", _FATAL, "the credentials were refused"),
    (59, "UNKNOWN_PRODUCER_ID", 0, "the log no longer holds any record of this producer"),
    (60, "REASSIGNMENT_IN_PROGRESS", 0, "the partition is being reassigned"),
    (61, "DELEGATION_TOKEN_AUTH_DISABLED", 0, "delegation tokens are switched off"),
    (62, "DELEGATION_TOKEN_NOT_FOUND", 0, "no such delegation token"),
    (63, "DELEGATION_TOKEN_OWNER_MISMATCH", 0, "the principal neither owns nor may renew it"),
    (64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", 0, "not allowed on this kind of connection"),
    (65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", 0, "not authorized for the delegation token"),
    (66, "DELEGATION_TOKEN_EXPIRED", 0, "the delegation token has expired"),
    (67, "INVALID_PRINCIPAL_TYPE", 0, "the principal's type is not supported"),
    (68, "NON_EMPTY_GROUP", 0, "the group has members"),
    (69, "GROUP_ID_NOT_FOUND", 0, "no such group"),
    (70, "FETCH_SESSION_ID_NOT_FOUND", _RETRY, "the broker has dropped the fetch session"),
    (71, "INVALID_FETCH_SESSION_EPOCH", _RETRY, "the fetch session is at another epoch"),
    (72, "LISTENER_NOT_FOUND", _STALE, "the leader has no listener of the one asked through"),
    (73, "TOPIC_DELETION_DISABLED", 0, "the cluster does not allow topics to be deleted"),
    (74, "FENCED_LEADER_EPOCH", _STALE, "the request's leader epoch is older than the broker's"),
    (75, "UNKNOWN_LEADER_EPOCH", _RETRY, "the request's leader epoch is newer than the broker's"),
    (76, "UNSUPPORTED_COMPRESSION_TYPE", 0, "this version cannot carry the compression codec"),
    (77, "STALE_BROKER_EPOCH", 0, "the broker has registered again since"),
    (78, "OFFSET_NOT_AVAILABLE", _RETRY, "a new leader does not know its high watermark yet"),
    (79, "MEMBER_ID_REQUIRED", 0, "join again with the member id of this answer"),
    (80, "PREFERRED_LEADER_NOT_AVAILABLE", _STALE, "the preferred leader is not available"),
    (81, "GROUP_MAX_SIZE_REACHED", 0, "the group takes no more members"),
    (82, "FENCED_INSTANCE_ID", _FATAL, "another member has taken over this group.instance.id"),
    (83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", _STALE, "no eligible leader is available"),
    (84, "ELECTION_NOT_NEEDED", _STALE, "the partition has its leader already"),
    (85, "NO_REASSIGNMENT_IN_PROGRESS", 0, "the partition is not being reassigned"),
    (86, "GROUP_SUBSCRIBED_TO_TOPIC", 0, "the group still consumes the topic"),
    (87, "INVALID_RECORD", 0, "the broker's validation refused a record"),
    (88, "UNSTABLE_OFFSET_COMMIT", _RETRY, "a transaction's offsets are not decided yet"),
    (89, "THROTTLING_QUOTA_EXCEEDED", _RETRY, "a quota is used up for now"),
    (90, "PRODUCER_FENCED", _FATAL, "a newer producer uses the same transactional id"),
    (91, "RESOURCE_NOT_FOUND", 0, "no such resource"),
    (92, "DUPLICATE_RESOURCE", 0, "the request names a resource twice"),
    (93, "UNACCEPTABLE_CREDENTIAL", 0, "the credential does not meet the requirements"),
    (94, "INCONSISTENT_VOTER_SET", 0, "sender or receiver is not one of the voters"),
    (95, "INVALID_UPDATE_VERSION", 0, "the version to update to is not valid"),
    (96, "FEATURE_UPDATE_FAILED", 0, "the finalized features could not be updated"),
    (97, "PRINCIPAL_DESERIALIZATION_FAILURE", 0, "a forwarded principal could not be read"),
    (98, "SNAPSHOT_NOT_FOUND", 0, "no such snapshot"),
    (99, "POSITION_OUT_OF_RANGE", 0, "the position is outside the snapshot"),
    (100, "UNKNOWN_TOPIC_ID", _STALE, "the broker does not know this topic id"),
    (101, "DUPLICATE_BROKER_REGISTRATION", 0, "the broker id is in use"),
    (102, "BROKER_ID_NOT_REGISTERED", 0, "the broker id is not registered"),
    (103, "INCONSISTENT_TOPIC_ID", _STALE, "the log belongs to another topic id"),
    (104, "INCONSISTENT_CLUSTER_ID", 0, "the broker belongs to another cluster"),
    (105, "TRANSACTIONAL_ID_NOT_FOUND", 0, "no such transactional id"),
    (106, "FETCH_SESSION_TOPIC_ID_ERROR", _RETRY, "the fetch session mixed ids and names"),
    (107, "INELIGIBLE_REPLICA", 0, "a replica may not join the in-sync set"),
    (108, "NEW_LEADER_ELECTED", 0, "the change was made and another leader elected"),
    (109, "OFFSET_MOVED_TO_TIERED_STORAGE", 0, "the offset is in tiered storage"),
    (110, "FENCED_MEMBER_EPOCH", 0, "the member is fenced: give up its partitions and rejoin"),
    (111, "UNRELEASED_INSTANCE_ID", 0, "another member still uses this group.instance.id"),
    (112, "UNSUPPORTED_ASSIGNOR", 0, "the group does not support this assignor"),
    (113, "STALE_MEMBER_EPOCH", 0, "wait for the member's new epoch and try again"),
    (114, "MISMATCHED_ENDPOINT_TYPE", 0, "the wrong kind of endpoint: broker or controller"),
    (115, "UNSUPPORTED_ENDPOINT_TYPE", 0, "this kind of endpoint is not supported"),
    (116, "UNKNOWN_CONTROLLER_ID", 0, "no such controller"),
    (117, "UNKNOWN_SUBSCRIPTION_ID", 0, "the telemetry subscription has changed"),
    (118, "TELEMETRY_TOO_LARGE", 0, "more telemetry than the broker accepts"),
    (119, "INVALID_REGISTRATION", 0, "the controller refused the broker's registration"),
    (120, "TRANSACTION_ABORTABLE", 0, "abort the transaction; the producer may go on"),
    (121, "INVALID_RECORD_STATE", 0, "the record can no longer be acknowledged"),
    (122, "SHARE_SESSION_NOT_FOUND", _RETRY, "the broker has dropped the share session"),
    (123, "INVALID_SHARE_SESSION_EPOCH", _RETRY, "the share session is at another epoch"),
    (124, "FENCED_STATE_EPOCH", 0, "the share group's state is at another epoch"),
    (125, "INVALID_VOTER_KEY", 0, "the voter's key is another replica's"),
    (126, "DUPLICATE_VOTER", 0, "the voter is in the set already"),
    (127, "VOTER_NOT_FOUND", 0, "the voter is not in the set"),
    (128, "INVALID_REGULAR_EXPRESSION", 0, "the broker could not parse the pattern"),
    (129, "REBOOTSTRAP_REQUIRED", 0, "start again from the bootstrap servers"),
    (130, "STREAMS_INVALID_TOPOLOGY", 0, "the topology is not valid"),
    (131, "STREAMS_INVALID_TOPOLOGY_EPOCH", 0, "the topology's epoch is not valid"),
    (132, "STREAMS_TOPOLOGY_FENCED", 0, "the topology's epoch is outdated"),
    (133, "SHARE_SESSION_LIMIT_REACHED", _RETRY, "the broker holds no more share sessions"),
    (134, "GROUP_DELETION_FAILED", 0, "a group could not be deleted; its result says why"),
    (135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", 0, "the description was not stored"),
    (136, "CONTROLLER_ID_NOT_REGISTERED", 0, "the controller id is not registered"),
)


def _class_of(code: int, name: str, flags: int, description: str) -> type[BrokerError]:
    """Make the class of one row and put it into this module, where pickle looks for it."""
    class_name = "".join(word.capitalize() for word in name.split("_"))
    attributes = {
        "__doc__": f"{name} ({code}): {description}.",
        "__module__": __name__,
        "code": code,
        "name": name,
        "retriable": bool(flags & _RETRY),
        "refresh_metadata": flags & _STALE == _STALE,
        "fatal": bool(flags & _FATAL),
        "description": description,
    }
    made = type(class_name, (BrokerError,), attributes)
    globals()[class_name] = made
    return made


#: Error code -> its class. The class attributes are the data: code, name, retriable, ...
ERRORS: Mapping[int, type[BrokerError]] = MappingProxyType(
    {row[0]: _class_of(*row) for row in _TABLE}
)

BROKER_ERRORS = frozenset(known.__name__ for known in ERRORS.values())
"""The names of the classes of the table."""


def __getattr__(name: str) -> type[BrokerError]:
    """Tell type checkers that the classes of the table exist; at run time they are real names."""
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
