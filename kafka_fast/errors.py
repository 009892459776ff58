"""Every error that kafka_fast raises: the class says what the caller may do.

    KafkaError
    ├── ConfigError (ValueError)              an option is unknown, out of range or contradictory
    ├── UsageError                            a call that the object's state does not allow
    ├── MissingPackageError (ImportError)     an optional package is needed; names its extra
    ├── InternalError                         a fault of kafka_fast itself: please report it
    ├── KafkaTimeoutError (TimeoutError)      a deadline passed; the message names it
    ├── KafkaConnectionError (ConnectionError)  no link to a node, or the link broke
    │   ├── AuthenticationError               the broker refused the credentials
    │   └── TlsError                          handshake or certificate
    ├── ProtocolError                         the peer sent something that is not Kafka's protocol
    │   ├── MalformedError                    bytes that do not follow the message's schema
    │   ├── CorruptBatchError                 a record batch whose CRC or structure is wrong
    │   │   └── UnreadableBatchError          one in the way of a consumer: says how to go past it
    │   └── FrameTooLargeError                a length prefix above the limit
    ├── UnsupportedVersionError               no version of an API that both sides speak
    ├── BrokerError                           the broker's answer was an error code; one class per
    │   │                                     code, named like Kafka's constant in CamelCase
    │   ├── NotLeaderOrFollower, UnknownTopicOrPartition, ...
    │   └── UnknownBrokerError                a code that this table does not know
    ├── SerializationError                    a serializer, or a value that is not bytes
    │   └── RecordDeserializationError        a record that a consumer's deserializer refused
    ├── PositionError                         a partition cannot be read on from where it stands
    │   ├── NoOffsetForPartitionError, PositionOutOfRangeError, LogTruncationError
    ├── CommitFailedError                     the group has moved on: others read these partitions
    ├── AssignorError                         an assignor of the user's has failed
    ├── WakeupError                           another thread called wakeup() or close()
    ├── TransactionError                      a transaction has no good end
    │   ├── AbortableTransactionError         abort it; the producer goes on
    │   ├── ProducerFencedError               another producer has the transactional id: close
    │   └── TransactionOutcomeUnknownError (KafkaTimeoutError)  call commit_transaction() again
    └── DeliveryError                         records that were not, or maybe not, delivered

All can be pickled: Spark carries them to the driver. This module imports only Python's own,
and the table of codes.
"""

from __future__ import annotations

import copy
import enum
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from kafka_fast._error_codes import FATAL, RETRY, STALE, ErrorCode

__all__ = [
    "BROKER_ERRORS",
    "ERRORS",
    "AbortableTransactionError",
    "AssignorError",
    "AuthenticationError",
    "BrokerError",
    "CommitFailedError",
    "ConfigError",
    "ConnectionReason",
    "CorruptBatchError",
    "DeliveryError",
    "ErrorCode",
    "FrameTooLargeError",
    "InternalError",
    "KafkaConnectionError",
    "KafkaError",
    "KafkaTimeoutError",
    "LogTruncationError",
    "MalformedError",
    "MissingPackageError",
    "NoOffsetForPartitionError",
    "Outcome",
    "PositionError",
    "PositionOutOfRangeError",
    "ProducerFencedError",
    "ProtocolError",
    "RecordDeserializationError",
    "SerializationError",
    "TlsError",
    "TransactionError",
    "TransactionOutcomeUnknownError",
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
    "reworded",
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


def reworded(error: _Error, message: str) -> _Error:
    """Return a copy of an error with another message: its class and attributes stay."""
    copied = copy.copy(error)
    copied.args = (message,)
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


class MissingPackageError(KafkaError, ImportError):
    """What was asked for needs a package that kafka_fast does not require.

    Attributes:
        name: the module that could not be imported, as every ImportError has it.
        package: what pip calls it.
        extra: the extra of kafka_fast that requires it, as in `kafka_fast[arrow]`; None: no extra
            does.
    """

    def __init__(
        self, message: str, *, package: str = "", extra: str | None = None, name: str | None = None
    ) -> None:
        super().__init__(message, name=name or package)
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"name": self.name}  # it is no entry of __dict__


class InternalError(KafkaError):
    """kafka_fast itself has failed: please report it, with this text and what `dump` holds."""

    def __init__(self, message: str, *, dump: str = "") -> None:
        super().__init__(message)
        self.dump = dump
        """The client's state when it failed, as `debug_dump` gives it; "" if there is none."""


class KafkaTimeoutError(KafkaError, TimeoutError):
    """A deadline passed before the operation ended."""


class WouldWaitError(KafkaError):
    """A call that never waits would have to: try again later, or use the call that waits."""

    def __init__(self, message: str, *, topic: str, size: int = 0) -> None:
        super().__init__(message)
        self.topic = topic
        """Where the record was to go."""
        self.size = size
        """Bytes of buffer.memory that it needs; 0 if the topic's metadata are missing."""


class ConnectionReason(enum.Enum):
    """Why there is no connection, as far as this client can tell."""

    UNRESOLVED = "unresolved"  #: the name of the host does not resolve
    REFUSED = "refused"  #: the host is there, but nothing listens at the port
    UNREACHABLE = "unreachable"  #: the network knows no way to the host
    TIMED_OUT = "timed out"  #: no answer came in time
    RESET = "reset"  #: the other side, or something between, broke the connection off
    CLOSED = "closed"  #: the other side closed the connection
    LEFT = "left"  #: this client closed the connection: the node moved, or nothing was asked
    LOGIN = "login"  #: a login could not be tried: for example, a token's issuer does not answer
    SEVERAL = "several"  #: of several addresses, not all failed for the same reason
    OTHER = "other"  #: anything else; the message says what


class KafkaConnectionError(KafkaError, ConnectionError):
    """A node could not be reached, or the connection to it broke."""

    def __init__(self, *args: object, reason: ConnectionReason = ConnectionReason.OTHER) -> None:
        super().__init__(*args)
        self.reason = reason
        """Why. It is OTHER if the class says more: AuthenticationError, TlsError."""


class AuthenticationError(KafkaConnectionError):
    """The broker refused the credentials; trying again with the same ones is pointless."""


class TlsError(KafkaConnectionError):
    """The TLS handshake failed, or a certificate is not trusted."""


class ProtocolError(KafkaError):
    """The peer broke Kafka's protocol; the connection that carried the bytes must be closed."""


class MalformedError(ProtocolError):
    """Bytes do not follow the schema of the message they were read as."""

    def __init__(self, message: str, *, problem: str = "", place: str = "", pos: int = -1) -> None:
        super().__init__(message)
        self.problem = problem
        """What stands there instead, as in "an answer with ..."; "" where nobody has said."""
        self.place = place
        """The field: "topics[3].name"."""
        self.pos = pos
        """The byte at which that stands; -1: nobody has said. In an answer that came over a
        connection byte 0 is the first one of the correlation id.
        """


class CorruptBatchError(ProtocolError):
    """A record batch has a wrong CRC, length or structure."""


class UnreadableBatchError(CorruptBatchError):
    """A consumer met a corrupt batch. Its partition stays there until somebody seeks past it."""

    def __init__(
        self, message: str, *, topic: str, partition: int, offset: int, next_offset: int | None
    ) -> None:
        super().__init__(message)
        self.topic = topic
        """The batch's topic."""
        self.partition = partition
        """Its partition."""
        self.offset = offset
        """Where the consumer stands: the offset of the next record it would hand out."""
        self.next_offset = next_offset
        """Where to seek to go on behind the batch; None if its end cannot be known."""


class FrameTooLargeError(ProtocolError):
    """A frame announces more bytes than the limit allows."""


class UnsupportedVersionError(KafkaError):
    """The two sides share no version of an API, or the version lacks a field that is set."""

    def __init__(self, message: str, *, header: Any = None) -> None:
        super().__init__(message)
        self.header = header
        """The request header (`protocol.frame.RequestHeader`) if a server side met the error while
        it read a request, so that it can still answer; else None.
        """


class SerializationError(KafkaError):
    """A key, value or header could not be turned into bytes, or back."""


class RecordDeserializationError(SerializationError):
    """A deserializer refused a record. Its partition stays there until somebody seeks past it."""

    def __init__(
        self, message: str, *, topic: str, partition: int, offset: int, part: str, record: Any
    ) -> None:
        super().__init__(message)
        self.topic = topic
        """The record's topic."""
        self.partition = partition
        """Its partition."""
        self.offset = offset
        """Its offset."""
        self.next_offset = offset + 1
        """Where to seek to go on behind it."""
        self.part = part
        """`key` or `value`."""
        self.record = record
        """The record, with key and value as bytes, for whoever wants to put it aside."""


class Outcome(enum.Enum):
    """What is known of a record whose delivery failed."""

    NOT_SENT = "not sent"  #: never reached a broker: sending it again cannot duplicate it
    REJECTED = "rejected"  #: a broker refused it: it is in no log
    MAYBE_WRITTEN = "maybe written"  #: the answer was lost: sending it again may duplicate it


class DeliveryError(KafkaError):
    """Records were not delivered, or nobody knows whether they were."""

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
        """What is known of the records; of several, the least certain one."""
        self.count = count
        """Number of records concerned."""
        self.first = first
        """The error of the first of them, or None."""
        self.samples = tuple(samples)
        """A few errors, for the log."""
        self.topic = topic
        """Where the record was to go, or None if the error is of several topics."""
        self.partition = partition
        """The partition it was assigned to, or None if there was none, or several."""
        self.is_collateral = is_collateral
        """Refused only because of another record in its batch: it may be sent again."""


class PositionError(KafkaError):
    """A partition cannot be read on from where it stands; `seek` says where to go on."""

    def __init__(
        self, message: str, *, topic: str, partition: int, offset: int | None = None
    ) -> None:
        super().__init__(message)
        self.topic = topic
        """The partition's topic."""
        self.partition = partition
        """Its number."""
        self.offset = offset
        """The one in question, or None."""


class NoOffsetForPartitionError(PositionError):
    """The group has no committed offset, and auto.offset.reset=none names no other start."""


class PositionOutOfRangeError(PositionError):
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


class AssignorError(KafkaError):
    """An assignor of the user's has failed; its exception is the cause."""


class WakeupError(KafkaError):
    """Another thread called `wakeup` or `close` while this one waited in the consumer."""


class TransactionError(KafkaError):
    """A transaction was not, or perhaps not, committed."""


class AbortableTransactionError(TransactionError):
    """The transaction cannot be committed. Abort it; then the producer can begin another one."""


class ProducerFencedError(TransactionError):
    """The transactional id belongs to a newer producer. Close this one: it will never write again.

    The broker does not tell who that is, or why. The message names what is likely.
    """


class TransactionOutcomeUnknownError(TransactionError, KafkaTimeoutError):
    """The commit was sent, and no answer has come in time.

    Call `commit_transaction()` again: it waits for the same decision, and never commits twice.
    """


class BrokerError(KafkaError):
    """The broker answered with an error code."""

    code: int = -1
    """Kafka's number."""
    name: str = "UNKNOWN_SERVER_ERROR"
    """Kafka's constant, such as "NOT_LEADER_OR_FOLLOWER"."""
    retriable: ClassVar[bool] = False
    """The same request may succeed later."""
    refresh_metadata: ClassVar[bool] = False
    """The client's picture of the cluster is stale: refresh it first."""
    fatal: ClassVar[bool] = False
    """The client that met it cannot go on and must be closed."""
    description: ClassVar[str] = "the broker answered with an error"
    """What the code means, in a sentence."""

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


def _class_of(code: ErrorCode) -> type[BrokerError]:
    """Make the class of one code and put it into this module, where pickle looks for it."""
    class_name = "".join(word.capitalize() for word in code.name.split("_"))
    attributes = {
        "__doc__": f"{code.name} ({int(code)}): {code.description}.",
        "__module__": __name__,
        "code": int(code),
        "name": code.name,
        "retriable": bool(code.flags & RETRY),
        "refresh_metadata": code.flags & STALE == STALE,
        "fatal": bool(code.flags & FATAL),
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
