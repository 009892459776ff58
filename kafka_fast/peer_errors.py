"""What kafka_fast calls the errors of other clients, as tables like those of `peer_names`.

In confluent-kafka an error is a code, for which KafkaError has constants. kafka-python and aiokafka
have classes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from kafka_fast.peer_names import Names

_ATTRIBUTE = "an attribute of BrokerError, which is the base of all that brokers answer"
_NO_CLASS = "kafka_fast has no such code: KafkaError has a class for each kind of failure"
_NO_EVENT = "no such thing is reported as an error: leave it out"
_GROUP_NEWS = "a RebalanceListener hears of partitions that come and go"
_SERIALIZATION = "kafka_fast has the class SerializationError to catch"
_UNREACHABLE = "a client connects when it is used: KafkaTimeoutError says what kept it from that"


def _class(name: str) -> str:
    return f"kafka_fast has the class errors.{name} to catch"


_LIBRDKAFKA: Names = {
    **dict.fromkeys(
        (
            "_ALL_BROKERS_DOWN",
            "_APPLICATION",
            "_AUTO_OFFSET_RESET",
            "_BAD_COMPRESSION",
            "_CONFLICT",
            "_CRIT_SYS_RESOURCE",
            "_DESTROY",
            "_DESTROY_BROKER",
            "_EXISTING_SUBSCRIPTION",
            "_FAIL",
            "_FATAL",
            "_FS",
            "_GAPLESS_GUARANTEE",
            "_INCONSISTENT",
            "_INTR",
            "_INVALID_ARG",
            "_INVALID_DIFFERENT_RECORD",
            "_INVALID_TYPE",
            "_IN_PROGRESS",
            "_ISR_INSUFF",
            "_NODE_UPDATE",
            "_NOENT",
            "_NOOP",
            "_NOT_CONFIGURED",
            "_NOT_IMPLEMENTED",
            "_OUTDATED",
            "_PARTIAL",
            "_PREV_IN_PROGRESS",
            "_READ_ONLY",
            "_RETRY",
            "_UNDERFLOW",
            "_UNKNOWN_BROKER",
            "_UNKNOWN_GROUP",
            "_UNKNOWN_PROTOCOL",
            "_WAIT_CACHE",
            "_WAIT_COORD",
        ),
        _NO_CLASS,
    ),
    "_ASSIGNMENT_LOST": _GROUP_NEWS,
    "_ASSIGN_PARTITIONS": _GROUP_NEWS,
    "_AUTHENTICATION": _class("AuthenticationError"),
    "_BAD_MSG": _class("CorruptBatchError"),
    "_FENCED": _class("ProducerFenced"),
    "_KEY_DESERIALIZATION": _class("RecordDeserializationError"),
    "_KEY_SERIALIZATION": _SERIALIZATION,
    "_LOG_TRUNCATION": _class("LogTruncationError"),
    "_MAX_POLL_EXCEEDED": "the log tells it, and the listener hears that its partitions are lost",
    "_MSG_TIMED_OUT": _class("DeliveryError"),
    "_NO_OFFSET": _class("NoOffsetForPartitionError"),
    "_PARTITION_EOF": f"{_NO_EVENT}; an empty poll, or position and end_offsets, tell of the end",
    "_PURGE_INFLIGHT": _class("DeliveryError"),
    "_PURGE_QUEUE": _class("DeliveryError"),
    "_QUEUE_FULL": "send waits for room, up to max.block.ms; send_nowait raises WouldWaitError",
    "_RESOLVE": _class("KafkaConnectionError"),
    "_REVOKE_PARTITIONS": _GROUP_NEWS,
    "_SSL": _class("TlsError"),
    "_STATE": _class("UsageError"),
    "_TIMED_OUT": _class("KafkaTimeoutError"),
    "_TIMED_OUT_QUEUE": _class("KafkaTimeoutError"),
    "_TRANSPORT": _class("KafkaConnectionError"),
    "_UNKNOWN_PARTITION": _class("UnknownTopicOrPartition"),
    "_UNKNOWN_TOPIC": _class("UnknownTopicOrPartition"),
    "_UNSUPPORTED_FEATURE": _class("UnsupportedVersionError"),
    "_VALUE_DESERIALIZATION": _class("RecordDeserializationError"),
    "_VALUE_SERIALIZATION": _SERIALIZATION,
}

_ERROR: Names = {
    **_LIBRDKAFKA,
    "INVALID_MSG": _class("CorruptMessage"),
    "INVALID_MSG_SIZE": _class("InvalidFetchSize"),
    "MSG_SIZE_TOO_LARGE": _class("MessageTooLarge"),
    "NOT_LEADER_FOR_PARTITION": _class("NotLeaderOrFollower"),
    "NO_ERROR": "a callback's error is None if there was none",
    "STALE_CTRL_EPOCH": _class("StaleControllerEpoch"),
    "TOPIC_EXCEPTION": _class("InvalidTopicException"),
    "UNKNOWN": _class("UnknownServerError"),
    "UNKNOWN_TOPIC_OR_PART": _class("UnknownTopicOrPartition"),
    "code": _ATTRIBUTE,
    "description": _ATTRIBUTE,
    "errno": f"kafka_fast calls it code, {_ATTRIBUTE}",
    "fatal": _ATTRIBUTE,
    "invalid_metadata": f"kafka_fast calls it refresh_metadata, {_ATTRIBUTE}",
    "message": "kafka_fast has str(error)",
    "name": _ATTRIBUTE,
    "retriable": f"{_ATTRIBUTE}; clients themselves try again",
    "str": "kafka_fast has str(error)",
    "txn_requires_abort": "kafka_fast raises AbortableTransactionError",
}


def error_names(codes: Mapping[str, str]) -> Names:
    """Return what KafkaError answers to.

    Args:
        codes: Kafka's constants, and the class of each.
    """
    return {**{constant: _class(name) for constant, name in codes.items()}, **_ERROR}


_CALLS_IT = "kafka_fast calls it {}"
_MAYBE = "kafka_fast raises {} instead"

_ERRORS_MODULE: Names = {
    "AuthenticationFailedError": _CALLS_IT.format("AuthenticationError"),
    "AuthenticationMethodNotSupported": _MAYBE.format("AuthenticationError"),
    "AuthorizationError": "kafka_fast has a class for each: TopicAuthorizationFailed, "
    "GroupAuthorizationFailed, ...",
    "BrokerResponseError": _CALLS_IT.format("BrokerError"),
    "Cancelled": _MAYBE.format("WakeupError"),
    "ConsumeError": _MAYBE.format("KafkaError"),
    "ConsumerStoppedError": _CALLS_IT.format("WakeupError"),
    "CorrelationIdError": _MAYBE.format("ProtocolError"),
    "CorruptRecordError": "a broker's answer is CorruptMessage; a batch read is CorruptBatchError",
    "CorruptRecordException": "a broker's answer is CorruptMessage; a batch read is "
    "CorruptBatchError",
    "GroupCoordinatorNotAvailableError": _CALLS_IT.format("CoordinatorNotAvailable"),
    "GroupLoadInProgressError": _CALLS_IT.format("CoordinatorLoadInProgress"),
    "IllegalArgumentError": _MAYBE.format("UsageError, ValueError or TypeError"),
    "IllegalOperation": _CALLS_IT.format("UsageError"),
    "IllegalStateError": _CALLS_IT.format("UsageError"),
    "IncompatibleBrokerVersion": _CALLS_IT.format("UnsupportedVersionError"),
    "InvalidConfigurationError": "a broker's answer is InvalidConfig; a property is ConfigError",
    "InvalidFetchRequestError": _CALLS_IT.format("InvalidFetchSize"),
    "InvalidMessageError": _CALLS_IT.format("CorruptMessage"),
    "InvalidMetadataError": "kafka_fast has BrokerError.refresh_metadata",
    "InvalidReceiveError": _MAYBE.format("FrameTooLargeError"),
    "InvalidReplicationAssignmentError": _CALLS_IT.format("InvalidReplicaAssignment"),
    "InvalidTopicError": _CALLS_IT.format("InvalidTopicException"),
    "KafkaConfigurationError": _CALLS_IT.format("ConfigError"),
    "KafkaException": _CALLS_IT.format("KafkaError"),
    "KafkaProtocolError": _CALLS_IT.format("ProtocolError"),
    "KafkaUnavailableError": _UNREACHABLE,
    "KeyDeserializationError": _CALLS_IT.format("RecordDeserializationError"),
    "KeySerializationError": _CALLS_IT.format("SerializationError"),
    "MessageSizeTooLargeError": _CALLS_IT.format("MessageTooLarge"),
    "MetadataEmptyBrokerList": _UNREACHABLE,
    "NoBrokersAvailable": _UNREACHABLE,
    "NoError": "a callback's error is None if there was none",
    "NodeNotReadyError": _UNREACHABLE,
    "NotCoordinatorForGroupError": _CALLS_IT.format("NotCoordinator"),
    "NotLeaderForPartitionError": _CALLS_IT.format("NotLeaderOrFollower"),
    "OffsetOutOfRangeError": "a broker's answer is OffsetOutOfRange; a consumer raises "
    "PositionOutOfRangeError",
    "ProduceError": _CALLS_IT.format("DeliveryError"),
    "ProducerClosed": _MAYBE.format("UsageError"),
    "QuotaViolationError": "clients wait as long as a broker's quota asks for",
    "RecordTooLargeError": _MAYBE.format("MessageTooLarge, or UsageError before it is sent,"),
    "RetriableError": "kafka_fast has BrokerError.retriable",
    "StaleLeaderEpochCodeError": _CALLS_IT.format("NetworkException"),
    "StaleMetadata": "kafka_fast has BrokerError.refresh_metadata",
    "TooManyInFlightRequests": "max.in.flight.requests.per.connection waits: leave it out",
    "TransactionAbortedError": _CALLS_IT.format("TransactionError"),
    "UnknownBrokerIdError": _MAYBE.format("KafkaConnectionError"),
    "UnknownError": _CALLS_IT.format("UnknownServerError"),
    "UnrecognizedBrokerVersion": _CALLS_IT.format("UnsupportedVersionError"),
    "UnsupportedCodecError": _MAYBE.format("UnsupportedCompressionType"),
    "ValueDeserializationError": _CALLS_IT.format("RecordDeserializationError"),
    "ValueSerializationError": _CALLS_IT.format("SerializationError"),
    "for_code": _CALLS_IT.format("broker_error(code)"),
}


def errors_module(broker_errors: Iterable[str], others: Container[str]) -> Names:
    """Return what `kafka_fast.errors` answers to.

    Args:
        broker_errors: the classes of the table of codes, which kafka-python ends in "Error".
        others: the names of the other classes; some of these end like that, too.
    """
    theirs = {f"{name}Error": _CALLS_IT.format(name) for name in broker_errors}
    missing = {name: hint for name, hint in theirs.items() if name not in others}
    return {**missing, **_ERRORS_MODULE}
