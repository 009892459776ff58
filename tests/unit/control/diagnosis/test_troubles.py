"""The last trouble of each subject: kept, told once, and made the cause of a wait in vain."""

from __future__ import annotations

import gc
import logging
import pickle
import weakref

import pytest

from kafka_fast.control.connections.connection_key import (
    BOOTSTRAP,
    SECOND_BOOTSTRAP,
    ConnectionKey,
    Role,
)
from kafka_fast.control.diagnosis.troubles import (
    GATHERING,
    LOADING,
    QUIET,
    SETTLING,
    About,
    Reason,
    Troubles,
    last_trouble,
    timeout_error,
)
from kafka_fast.errors import (
    ConnectionReason,
    KafkaConnectionError,
    KafkaError,
    MalformedError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    broker_error,
)
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse
from kafka_fast.types import TopicPartition

T0 = TopicPartition("t", 0)
NODE_1 = ConnectionKey(Role.DATA, 1)
REFUSED = KafkaConnectionError(
    "node 1 at h:9092: Connection refused", reason=ConnectionReason.REFUSED
)
RESET = KafkaConnectionError("reset", reason=ConnectionReason.RESET)


@pytest.fixture
def troubles() -> Troubles:
    return Troubles(logging.getLogger("kafka_fast.test"))


def test_a_row_of_the_same_is_one_warning(
    troubles: Troubles, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5):
        troubles.note(NODE_1, KafkaConnectionError(f"no answer within {number} s"), float(number))
    assert caplog.messages == ["no answer within 0 s"]
    trouble = troubles.last_of(NODE_1)
    assert trouble is not None
    assert str(trouble) == "no answer within 4 s (5 times in 4 s)"


@pytest.mark.parametrize(
    ("error", "after"),
    [(RESET, 1.0), (MalformedError(str(REFUSED)), 1.0), (REFUSED, QUIET)],
)
def test_another_cause_or_a_long_quiet_makes_it_news(
    troubles: Troubles, caplog: pytest.LogCaptureFixture, error: KafkaError, after: float
) -> None:
    troubles.note(NODE_1, REFUSED, 0.0)
    troubles.note(NODE_1, error, after)
    assert len(caplog.messages) == 2
    assert str(troubles.last_of(NODE_1)) == str(error)


def test_the_same_in_other_words_is_no_news(
    troubles: Troubles, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: the addresses of a host, in another order each time, were news each time."""
    reason = ConnectionReason.TIMED_OUT
    for text in ("[::1]: 980 ms; 127.0.0.1: 1.1 s", "127.0.0.1: 1.2 s; [::1]: 1.2 s"):
        error = KafkaConnectionError(f"node 1: none of 2 addresses answered: {text}", reason=reason)
        troubles.note(NODE_1, error, 1.0)
    for name in ("a", "b"):
        troubles.note("t", broker_error(7, f"ListOffsets of {name}-0"), 1.0)
    assert len(caplog.messages) == 2
    trouble = troubles.last_of(NODE_1)
    assert trouble is not None
    assert trouble.tries == 2


def test_another_code_in_the_same_words_is_news(
    troubles: Troubles, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: two codes that this client does not know differ in nothing but numbers."""
    for code in (900, 901):
        troubles.note("t", broker_error(code), 1.0)
    for reason in (ConnectionReason.REFUSED, ConnectionReason.UNREACHABLE):
        troubles.note(NODE_1, KafkaConnectionError("node 1 does not answer", reason=reason), 1.0)
    assert len(caplog.messages) == 4


def test_success_makes_the_next_one_news(
    troubles: Troubles, caplog: pytest.LogCaptureFixture
) -> None:
    error = NotEnoughReplicas("t-0")
    troubles.note(T0, error, 0.0)
    assert troubles.now(T0) is not None
    troubles.end_trouble(T0, 0.5)
    assert troubles.now(T0) is None
    assert troubles.last_of(T0) is not None, "whoever has waited until then is told all the same"
    troubles.note(T0, error, 1.0)
    assert len(caplog.messages) == 2


@pytest.mark.parametrize(
    ("subject", "error", "patience"),
    [
        (T0, NotLeaderOrFollower(), SETTLING),
        (About.GROUP, broker_error(15), GATHERING),
        (About.PRODUCER_ID, broker_error(15), GATHERING),
        (About.GROUP, broker_error(14), LOADING),
    ],
)
def test_what_passes_soon_is_no_news_until_it_lasts(
    troubles: Troubles,
    caplog: pytest.LogCaptureFixture,
    subject: TopicPartition | About,
    error: KafkaError,
    patience: float,
) -> None:
    for part in range(10):
        troubles.note(subject, error, part / 10 * patience)
    assert caplog.messages == []
    troubles.note(subject, error, patience)
    troubles.note(subject, error, patience + 0.1)
    assert caplog.messages == [str(error)]


def test_what_passes_soon_is_no_news_when_it_comes_again(
    troubles: Troubles, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: of two leaders that moved half a minute apart the second was a WARNING."""
    for at in (0.0, 0.1, 30.0, 30.1, 60.0, 60.1):
        troubles.note(T0, NotLeaderOrFollower(), at)
    assert caplog.messages == []
    trouble = troubles.last_of(T0)
    assert trouble is not None
    assert (trouble.began, trouble.tries) == (60.0, 2)


def test_errors_at_the_pace_of_slow_retries_are_a_row(caplog: pytest.LogCaptureFixture) -> None:
    troubles = Troubles(logging.getLogger("kafka_fast.test"), retry_backoff_max=10.0)
    for number in range(5):
        troubles.note(T0, NotLeaderOrFollower(), 11.0 * number)
    assert caplog.messages == [str(NotLeaderOrFollower())]


def test_the_last_one_of_any_node_or_of_some_subjects(troubles: Troubles) -> None:
    troubles.note(NODE_1, REFUSED, 1.0)
    troubles.note(BOOTSTRAP, KafkaConnectionError("bootstrap"), 2.0)
    troubles.note(T0, broker_error(19), 3.0)
    assert str(troubles.last(0.0)) == "bootstrap"
    assert troubles.last(2.5) is None
    assert str(troubles.last(0.0, [NODE_1, "u"])) == str(REFUSED)
    assert str(troubles.last(0.0, [NODE_1, T0])).startswith("NOT_ENOUGH_REPLICAS (19)")
    troubles.pass_by(BOOTSTRAP, 3.0)  # there is a link again: no reason why there is none
    assert troubles.now(BOOTSTRAP) is None
    assert str(troubles.last(0.0)) == "bootstrap"


def test_a_wait_in_vain_has_text_and_cause_and_can_be_pickled(troubles: Troubles) -> None:
    troubles.note(NODE_1, REFUSED, 1.0)
    error = timeout_error(
        "no metadata", None, last_trouble(troubles.last_of(NODE_1)), Reason("and more")
    )
    assert str(error) == f"no metadata; last trouble: {REFUSED}; and more"
    assert str(error.__cause__) == str(REFUSED)
    assert error.__cause__ is not REFUSED
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert timeout_error("no metadata", None).__cause__ is None


def test_what_both_connections_to_bootstrap_servers_meet_is_told_once(
    troubles: Troubles, caplog: pytest.LogCaptureFixture
) -> None:
    refused = [
        KafkaConnectionError(f"{host}:9092: refused", reason=ConnectionReason.REFUSED)
        for host in ("one", "two")
    ]
    for now in (1.0, 2.0):
        troubles.note(BOOTSTRAP, refused[0], now)
        troubles.note(SECOND_BOOTSTRAP, refused[1], now)
    assert [record.getMessage() for record in caplog.records] == ["one:9092: refused"]
    troubles.note(SECOND_BOOTSTRAP, RESET, 3.0)
    assert [record.getMessage() for record in caplog.records][1:] == ["reset"]


def test_what_cannot_be_read_is_not_kept(troubles: Troubles) -> None:
    """Regression: the last malformed answer of each node, of any size, stayed in memory."""

    class Answer(bytearray):
        """One that a weak reference may tell of."""

    def read(answer: Answer) -> None:
        try:
            frame.decode_response(MetadataResponse, answer, 9)
        except MalformedError as error:
            named = MalformedError(f"node 1: {error}")
            named.__cause__ = error
            troubles.note(NODE_1, named, 0.0)

    answer = Answer(bytes(9) + b"\xff" * 9)
    left = weakref.ref(answer)
    read(answer)
    del answer
    gc.collect()
    assert left() is None
    trouble = troubles.last_of(NODE_1)
    assert trouble is not None
    assert isinstance(trouble.error.__cause__, MalformedError)


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        (About.METADATA, "metadata are there, after 7.5 s"),
        (About.COORDINATOR, "the group's coordinator is found, after 7.5 s"),
        (About.GROUP, "the group's coordinator answers without an error, after 7.5 s"),
        (About.PRODUCER_ID, "there is a producer id, after 7.5 s"),
        (T0, "t-0: no more errors, after 7.5 s"),
    ],
)
def test_that_a_trouble_is_over_is_told_if_the_trouble_was(
    troubles: Troubles, caplog: pytest.LogCaptureFixture, subject: TopicPartition | About, text: str
) -> None:
    caplog.set_level(logging.INFO)
    troubles.note(subject, broker_error(15), 0.0)
    troubles.end_trouble(subject, 0.5)
    told = len(caplog.messages)
    for second in range(1, 9):
        troubles.note(subject, broker_error(15), float(second))
    troubles.end_trouble(subject, 8.5)
    troubles.end_trouble(subject, 9.0)
    assert caplog.messages[-1] == text
    assert len(caplog.messages) == told + 2
    assert told in (0, 2), "what passes soon is told neither when it comes nor when it goes"


def test_what_is_no_more_had_its_trouble_without_an_end(
    troubles: Troubles, caplog: pytest.LogCaptureFixture
) -> None:
    """Its topic was deleted and created again: nothing was mended, and the next trouble is new."""
    caplog.set_level(logging.INFO)
    error = NotEnoughReplicas("t-0")
    troubles.forget_subject(T0)
    troubles.note(T0, error, 0.0)
    troubles.forget_subject(T0)
    assert troubles.now(T0) is None
    troubles.note(T0, error, 1.0)
    assert caplog.messages == [str(error)] * 2


def test_what_is_explained_is_no_news_until_the_explanation_ends(
    troubles: Troubles, caplog: pytest.LogCaptureFixture
) -> None:
    for second in range(20):
        troubles.note(T0, NotLeaderOrFollower(), float(second), is_no_news=True)
    assert not caplog.messages
    assert troubles.now(T0) is not None
    troubles.note(T0, NotLeaderOrFollower(), 20.0)
    assert caplog.messages == [str(NotLeaderOrFollower())]
