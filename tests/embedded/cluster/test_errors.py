"""Error codes of the broker: those that are retried, those that fail records, those that end it."""

from __future__ import annotations

import re
import struct
import threading
import time

import pytest

from kafka_fast import Producer
from kafka_fast.control.producer import limits
from kafka_fast.errors import (
    BrokerError,
    ClusterAuthorizationFailed,
    CoordinatorLoadInProgress,
    DeliveryError,
    InternalError,
    InvalidRecord,
    InvalidTopicException,
    MessageTooLarge,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    Outcome,
    RequestTimedOut,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
    UnsupportedVersionError,
    UsageError,
)
from kafka_fast.testing.broker.handlers import OFFERED
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import DESCRIBE_CONFIGS, INIT_PRODUCER_ID, PRODUCE
from tests.embedded.producing import TIMEOUT, MakeProducer, new_topic, send_and_check, values
from tests.waiting import eventually

DRIVERS = True  # every test runs with threads and with asyncio


def test_no_batch_overtakes_the_first_one_of_a_partition(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    """Regression: a broker that does not know a producer takes it at any sequence."""
    producer = producer_on(max_request_size=1_000, linger_ms=0)
    producer.partitions_for(topic)
    kafka.faults.error(PRODUCE, NotLeaderOrFollower, topic=topic, count=1)
    send_and_check(kafka, producer, topic, 1_000)


@pytest.mark.parametrize("applied", [False, True], ids=["refused", "written"])
@pytest.mark.parametrize(
    "error", [NotLeaderOrFollower, NotEnoughReplicas, RequestTimedOut, UnknownTopicOrPartition]
)
def test_a_retriable_error_loses_and_doubles_nothing(
    kafka: EmbeddedKafka,
    topic: str,
    producer_on: MakeProducer,
    error: type[BrokerError],
    applied: bool,
) -> None:
    producer = producer_on(batch_size=100)
    producer.send(topic, b"first").result(TIMEOUT)
    kafka.faults.error(PRODUCE, error, topic=topic, count=3, applied=applied)
    send_and_check(kafka, producer, topic)
    assert producer.metrics()["retries"] > 0


def test_an_error_for_good_names_the_record_and_its_cause(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on(batch_size=0)
    kafka.faults.error(PRODUCE, InvalidRecord, topic=topic, count=1, skip=1)
    futures = []
    for number in range(10):
        futures.append(producer.send(topic, b"%d" % number))
        if number == 3:
            producer.flush()
    errors = [future.exception(TIMEOUT) for future in futures]
    failed = [number for number, error in enumerate(errors) if error is not None]
    assert failed, "the rule must have struck"
    error = errors[failed[0]]
    assert error is not None
    assert error.outcome is Outcome.REJECTED
    assert isinstance(error.__cause__, InvalidRecord)
    assert topic in str(error)
    expected = [b"%d" % number for number in range(10) if number not in failed]
    assert values(kafka, topic) == expected


def test_flush_raises_what_nobody_can_observe(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on()
    kafka.faults.error(PRODUCE, InvalidRecord, topic=topic, count=1)
    for _ in range(5):
        producer.send_nowait(topic, b"x")
    with pytest.raises(DeliveryError) as caught:
        producer.flush()
    assert caught.value.count == 5
    assert caught.value.outcome is Outcome.REJECTED
    assert producer.flush() == 0


def test_a_batch_too_large_is_split_until_it_fits(
    kafka: EmbeddedKafka, producer_on: MakeProducer
) -> None:
    topic = new_topic(kafka, "split", max_message_bytes="20000")
    producer = producer_on(batch_size=200_000, linger_ms=300)
    sent = [b"%06d" % number * 50 for number in range(500)]
    futures = [producer.send(topic, value) for value in sent]
    assert [future.result(TIMEOUT).offset for future in futures] == list(range(500))
    assert values(kafka, topic) == sent
    assert producer.metrics()["splits"] > 0


def test_a_record_too_large_fails_alone(kafka: EmbeddedKafka, producer_on: MakeProducer) -> None:
    topic = new_topic(kafka, "large", max_message_bytes="5000")
    producer = producer_on(linger_ms=200)
    sent = [b"%d" % number for number in range(20)]
    sent[7] = b"x" * 6_000
    errors = [future.exception(TIMEOUT) for future in [producer.send(topic, v) for v in sent]]
    assert [number for number, error in enumerate(errors) if error is not None] == [7]
    assert isinstance(errors[7], DeliveryError)
    assert isinstance(errors[7].__cause__, MessageTooLarge)
    assert values(kafka, topic) == [value for value in sent if len(value) < 100]


class TestWhatIsTooLarge:
    """The error names the size and what the topic takes, which one more question brings."""

    @staticmethod
    def failure(producer: Producer, topic: str) -> DeliveryError:
        error = producer.send(topic, b"x" * 6_000).exception(TIMEOUT)
        assert error is not None
        assert error.outcome is Outcome.REJECTED
        assert isinstance(error.__cause__, MessageTooLarge)
        return error

    @pytest.fixture
    def small_topic(self, kafka: EmbeddedKafka, request: pytest.FixtureRequest) -> str:
        return new_topic(kafka, request.node.name, max_message_bytes="5000")

    def test_the_limit_is_named_and_asked_for_once(
        self, kafka: EmbeddedKafka, small_topic: str, producer_on: MakeProducer
    ) -> None:
        producer = producer_on()
        asked: list[int] = []
        kafka.faults.script(DESCRIBE_CONFIGS, lambda response, node: asked.append(node))
        for _ in range(3):
            error = self.failure(producer, small_topic)
            assert re.search(
                rf"MESSAGE_TOO_LARGE \(10\): a record of {small_topic}-0 takes 60\d\d bytes in a "
                r"batch of its own: more than the topic's max.message.bytes \(5000\) allows",
                str(error),
            )
        assert len(asked) == 1

    @pytest.mark.parametrize("fault", ["not allowed", "not known", "not answered soon", "nonsense"])
    def test_without_the_limit_its_setting_is_named(
        self,
        small_topic: str,
        kafka: EmbeddedKafka,
        producer_on: MakeProducer,
        fault: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(limits, "LIMIT_PATIENCE", 0.2)
        match fault:
            case "not allowed":
                kafka.faults.error(DESCRIBE_CONFIGS, TopicAuthorizationFailed)
            case "not known":
                offered = {
                    api: versions for api, versions in OFFERED.items() if api != DESCRIBE_CONFIGS
                }
                kafka.faults.limit_versions(offered)
            case "not answered soon":
                kafka.faults.delay(0.5, api=DESCRIBE_CONFIGS)
            case "nonsense":
                nothing = struct.pack(">i", 4)
                kafka.faults.garble(lambda answer: nothing + answer[4:8], api=DESCRIBE_CONFIGS)
        producer = producer_on()
        error = self.failure(producer, small_topic)
        assert "more than the topic's max.message.bytes allows" in str(error)
        producer.send(small_topic, b"small").result(TIMEOUT)

    def test_what_may_be_written_is_not_split_and_the_error_says_so(
        self, small_topic: str, kafka: EmbeddedKafka, producer_on: MakeProducer
    ) -> None:
        kafka.faults.drop(api=PRODUCE, applied=False, count=1)
        producer = producer_on(request_timeout_ms=300, linger_ms=200)
        futures = [producer.send(small_topic, b"x" * 1_000) for _ in range(6)]
        errors = [future.exception(TIMEOUT) for future in futures]
        error = errors[5]
        assert error is not None
        assert {failure.outcome for failure in errors if failure is not None} == {
            Outcome.MAYBE_WRITTEN
        }
        assert re.search(
            rf"a batch of 6 records of {small_topic}-0 takes 6\d\d\d bytes: more than the topic's "
            r"max.message.bytes \(5000\) allows; it is not split, because an earlier try",
            str(error),
        )


def test_an_illegal_topic_fails_at_once(producer_on: MakeProducer) -> None:
    with pytest.raises(InvalidTopicException):
        producer_on().send("no spaces allowed", b"x")


@pytest.mark.parametrize("name", ["\udcff", "t" * 2**15], ids=["no UTF-8", "long"])
def test_a_topic_that_no_request_can_name_fails_as_others_do(
    producer_on: MakeProducer, topic: str, name: str
) -> None:
    """Regression: the first ended the control thread; a broker closes the connection of others."""
    producer = producer_on()
    for refused in (
        lambda: producer.send(name, b"x"),
        lambda: producer.send_nowait(name, b"x"),
        lambda: producer.send_many(name, [b"x"]),
        lambda: producer.partitions_for(name),
    ):
        with pytest.raises(InvalidTopicException, match="the name of a topic"):
            refused()
    assert producer.send(topic, b"x").result(TIMEOUT).offset == 0


def test_a_fatal_error_is_raised_by_sends_and_ends_what_waits() -> None:
    """Nobody waits for delivery.timeout.ms when there will never be a producer id."""
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t")
        kafka.faults.error(INIT_PRODUCER_ID, ClusterAuthorizationFailed, skip=1)
        kafka.faults.error(INIT_PRODUCER_ID, CoordinatorLoadInProgress, count=1)
        properties = {"bootstrap.servers": kafka.bootstrap, "retry.backoff.ms": 500}
        with Producer(properties) as producer:
            failure = producer.send("t", b"waits").exception(TIMEOUT)
            assert failure is not None
            assert failure.outcome is Outcome.NOT_SENT
            assert isinstance(failure.first, ClusterAuthorizationFailed)
            for topic in ("t", "unknown"):
                raised = []
                for _ in range(3):
                    with pytest.raises(ClusterAuthorizationFailed) as caught:
                        producer.send(topic, b"refused")
                    raised.append(caught.value)
                assert len(set(map(id, raised))) == 3, "one object would gather tracebacks"


def test_a_broker_that_has_lost_an_api_is_the_error_of_records_that_wait() -> None:
    """Regression: the error's class was that of a broker's answer, which nobody has given."""
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t")
        kafka.faults.error(INIT_PRODUCER_ID, CoordinatorLoadInProgress)
        properties = {"bootstrap.servers": kafka.bootstrap, "reconnect.backoff.ms": 10}
        with Producer(properties) as producer:
            future = producer.send("t", b"waits")
            kafka.kill(1)
            lacking = {api: offered for api, offered in OFFERED.items() if api != INIT_PRODUCER_ID}
            kafka.faults.limit_versions(lacking)
            kafka.restart(1)
            failure = future.exception(TIMEOUT)
            assert failure is not None
            assert isinstance(failure.first, UnsupportedVersionError)
            assert "InitProducerId" in str(failure.first)


@pytest.mark.parametrize("waiting", [False, True], ids=["died before", "dies meanwhile"])
def test_the_control_threads_end_is_raised_at_once(waiting: bool) -> None:
    with EmbeddedKafka(auto_create=False) as kafka:
        producer = Producer(bootstrap_servers=kafka.bootstrap)
        core = producer._core
        if waiting:
            threading.Timer(0.2, core.call, [lambda now: 1 / 0]).start()
        else:
            core.call(lambda now: 1 / 0)
            eventually(lambda: core._failure is not None, "the control thread to fail")
        start = time.monotonic()
        for call in (producer.partitions_for, lambda topic: producer.send(topic, b"")):
            with pytest.raises(InternalError, match="control thread has failed") as caught:
                call("absent")
            assert isinstance(caught.value.__cause__, ZeroDivisionError)
            assert caught.value.dump.startswith(f"producer '{core.client_id}' at ")
        assert time.monotonic() - start < 10, "max.block.ms is a minute"
        producer.close()


@pytest.mark.parametrize("timeout", [-1, float("nan")])
@pytest.mark.parametrize("call", ["flush", "close", "debug_dump"])
def test_a_negative_timeout_is_refused(
    topic: str, producer_on: MakeProducer, call: str, timeout: float
) -> None:
    """As a consumer does: Java's clients refuse it, too."""
    producer = producer_on()
    producer.send_nowait(topic, b"x")
    with pytest.raises(UsageError, match=rf"^a timeout of {timeout} s$"):
        getattr(producer, call)(timeout)
    assert producer.flush(TIMEOUT) == 0, "the call has done nothing"
