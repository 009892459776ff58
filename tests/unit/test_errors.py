"""kafka_fast.errors: the table of codes, the tree, and pickling."""

from __future__ import annotations

import contextlib
import copy
import pickle

import pytest

from kafka_fast import errors

PLAIN = [
    errors.KafkaError,
    errors.ConfigError,
    errors.UsageError,
    errors.MissingPackageError,
    errors.InternalError,
    errors.KafkaTimeoutError,
    errors.KafkaConnectionError,
    errors.AuthenticationError,
    errors.TlsError,
    errors.ProtocolError,
    errors.MalformedError,
    errors.CorruptBatchError,
    errors.FrameTooLargeError,
    errors.UnsupportedVersionError,
    errors.SerializationError,
    errors.AssignorError,
]


@pytest.mark.parametrize("cls", PLAIN)
def test_plain_errors_keep_message_class_and_attributes_through_pickle(cls):
    error = cls("node 3: what happened")
    error.node = 3
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is cls
    assert str(back) == "node 3: what happened"
    assert back.args == error.args
    assert back.node == 3


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (errors.ConfigError, ValueError),
        (errors.MissingPackageError, ImportError),
        (errors.KafkaTimeoutError, TimeoutError),
        (errors.KafkaConnectionError, ConnectionError),
        (errors.AuthenticationError, ConnectionError),
    ],
)
def test_errors_are_also_the_builtin_that_a_caller_expects(cls, builtin):
    with pytest.raises(builtin, match="why"):
        raise cls("why")


@pytest.mark.parametrize("copied", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_missing_package_is_named_in_each_copy(copied):
    error = errors.MissingPackageError("why", package="pyjks", extra="jks", name="jks")
    back = copied(error)
    assert (str(back), back.package, back.extra, back.name) == ("why", "pyjks", "jks", "jks")


def test_an_internal_error_keeps_its_dump_through_pickle():
    back = pickle.loads(pickle.dumps(errors.InternalError("why", dump="producer 'a' at ...")))
    assert back.dump == "producer 'a' at ..."


def test_a_version_that_a_broker_lacks_breaks_no_protocol():
    """Who catches a ProtocolError closes the connection, which is in order here."""
    assert not issubclass(errors.UnsupportedVersionError, errors.ProtocolError)


@pytest.mark.parametrize("code", errors.ERRORS)
def test_each_code_has_a_class_that_pickles_and_names_itself(code):
    cls = errors.ERRORS[code]
    assert getattr(errors, cls.__name__) is cls
    assert cls.__name__.lower() == cls.name.replace("_", "").lower()
    back = pickle.loads(pickle.dumps(errors.broker_error(code, "topic t, partition 1")))
    assert type(back) is cls
    assert str(back) == f"{cls.name} ({code}): topic t, partition 1"
    assert str(cls()) == f"{cls.name} ({code}): {cls.description}"


def test_flags_of_well_known_codes():
    leader = errors.broker_error(6)
    assert (leader.retriable, leader.refresh_metadata, leader.fatal) == (True, True, False)
    replicas = errors.broker_error(19)
    assert (replicas.retriable, replicas.refresh_metadata, replicas.fatal) == (True, False, False)
    fenced = errors.broker_error(90)
    assert (fenced.retriable, fenced.refresh_metadata, fenced.fatal) == (False, False, True)


def test_stale_metadata_and_fatal_never_mix():
    for cls in errors.ERRORS.values():
        assert not (cls.fatal and cls.retriable)
        assert cls.retriable or not cls.refresh_metadata


def test_an_unknown_code_keeps_its_number():
    error = errors.broker_error(9999, "new")
    assert isinstance(error, errors.UnknownBrokerError)
    assert (error.code, error.name, error.retriable) == (9999, "UNKNOWN_9999", False)
    back = pickle.loads(pickle.dumps(error))
    assert (back.code, str(back)) == (9999, "UNKNOWN_9999 (9999): new")


def test_code_zero_is_no_error():
    with pytest.raises(ValueError, match="success"):
        errors.broker_error(0)


def test_error_name():
    assert [errors.error_name(code) for code in (0, 16, 9999)] == [
        "NONE",
        "NOT_COORDINATOR",
        "UNKNOWN_9999",
    ]


def test_delivery_error_carries_its_causes_through_pickle():
    first = errors.broker_error(10, "topic t, partition 0")
    error = errors.DeliveryError(
        "2 records were not delivered",
        outcome=errors.Outcome.REJECTED,
        count=2,
        first=first,
        samples=[first],
    )
    back = pickle.loads(pickle.dumps(error))
    assert back.outcome is errors.Outcome.REJECTED
    assert back.count == 2
    assert type(back.first) is errors.ERRORS[10]
    assert [str(sample) for sample in back.samples] == [str(first)]


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        errors.ERRORS[1] = errors.BrokerError
    with pytest.raises(AttributeError, match="NoSuchError"):
        _ = errors.NoSuchError


def test_table_matches_kafka_python():
    """An independent table agrees on names and on what may be retried, but for known cases."""
    theirs = pytest.importorskip("kafka.errors")
    renamed = {-1, 6, 10, 17, 39}  # kafka-python keeps older names of these
    stricter = {2}  # CORRUPT_MESSAGE is retriable in Apache Kafka
    known = {
        cls.errno: cls
        for cls in vars(theirs).values()
        if isinstance(cls, type)
        and issubclass(cls, theirs.BrokerResponseError)
        and isinstance(getattr(cls, "errno", None), int)
        and cls.errno != 0
    }
    assert len(known) > 90
    for code, cls in known.items():
        assert code in renamed or errors.ERRORS[code].name == cls.message
        assert code in stricter or errors.ERRORS[code].retriable == cls.retriable


def test_a_fresh_copy_is_the_same_error_without_its_history() -> None:
    kept = errors.DeliveryError("lost", outcome=errors.Outcome.REJECTED, count=3, topic="t")
    kept.__cause__ = OSError("why")
    with contextlib.suppress(errors.DeliveryError):
        raise kept
    copied = errors.fresh_copy(kept)
    assert copied is not kept
    assert type(copied) is errors.DeliveryError
    assert vars(copied) == vars(kept)
    assert copied.args == kept.args
    assert copied.__cause__ is kept.__cause__
    assert copied.__traceback__ is None
    assert kept.__traceback__ is not None


@pytest.mark.parametrize(
    "cls", [errors.KafkaConnectionError, errors.AuthenticationError, errors.TlsError]
)
@pytest.mark.parametrize("copied", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_connection_error_keeps_its_reason_in_each_copy(cls, copied):
    assert copied(cls("why")).reason is errors.ConnectionReason.OTHER
    error = copied(cls("why", reason=errors.ConnectionReason.REFUSED))
    assert error.reason is errors.ConnectionReason.REFUSED
    assert (str(error), error.args) == ("why", ("why",))


def test_an_error_in_other_words_keeps_its_class_and_attributes():
    error = errors.MalformedError("answered badly", problem="an answer", place="topics", pos=3)
    named = errors.reworded(error, "node 1 answered badly")
    assert (type(named), str(named)) == (errors.MalformedError, "node 1 answered badly")
    assert (named.problem, named.place, named.pos) == ("an answer", "topics", 3)
    assert str(error) == "answered badly"
    unknown = errors.reworded(errors.broker_error(900, "no"), "never")
    assert str(unknown) == "UNKNOWN_900 (900): never"
