"""What the log says of waits that have become long: once for each, and in words for users."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.control.consumer import diagnosis
from kafka_fast.errors import (
    CoordinatorLoadInProgress,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailable,
    NotEnoughReplicas,
    UsageError,
)
from kafka_fast.testing.broker.groups.settings import GroupSettings
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import (
    FETCH,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    METADATA,
    OFFSET_FETCH,
    PRODUCE,
)
from tests.embedded.conftest import LinesOfNobody
from tests.embedded.consuming import fill, partitions_of
from tests.waiting import TIMEOUT, eventually

pytestmark = [
    pytest.mark.usefixtures("short_waits"),
    pytest.mark.repeats("what the log says of a wait is decided in Python"),
]

NOBODY = "127.0.0.1:1"
QUICK = {
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 50,
}


@pytest.fixture(name="kafka")
def own_kafka() -> Iterator[EmbeddedKafka]:
    """One broker with a topic of two partitions; it makes no topics by itself."""
    groups = GroupSettings(consumer_heartbeat_interval_ms=50)
    with EmbeddedKafka(auto_create=False, groups=groups) as kafka:
        kafka.create_topic("t", 2)
        yield kafka


class Log:
    """What the clients' loggers say."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        caplog.set_level(logging.INFO, "kafka_fast")

    def lines(self, pattern: str) -> list[str]:
        """Return the lines that match, with their levels, without the client that each names."""
        lines = []
        ours = [
            entry
            for entry in self._caplog.records
            if not entry.name.startswith("kafka_fast.testing")
        ]
        for record in ours:
            client, _, text = record.getMessage().partition("] ")
            assert client.startswith(("[producer-", "[consumer-")), record.getMessage()
            lines.append(f"{record.levelname} {record.name}: {text}")
        return [line for line in lines if re.search(pattern, line)]

    def says_once(self, pattern: str, step: Callable[[], object], *, more: float = 0.4) -> None:
        """See that this comes once while `step` is repeated, and for a while after."""
        deadline = time.monotonic() + TIMEOUT
        while not self.lines(pattern):
            assert time.monotonic() < deadline, self.lines("")
            step()
        until = time.monotonic() + more
        while time.monotonic() < until:
            step()
        assert len(self.lines(pattern)) == 1, self.lines(pattern)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Log:
    return Log(caplog)


@contextmanager
def consumer_of(bootstrap: str, **config: object) -> Iterator[Consumer]:
    with Consumer(
        {"bootstrap.servers": bootstrap, **QUICK},
        auto_offset_reset="earliest",
        fetch_max_wait_ms=20,
        allow_auto_create_topics=False,
        **config,
    ) as consumer:
        yield consumer
        consumer.unsubscribe()


@contextmanager
def healed(kafka: EmbeddedKafka) -> Iterator[None]:
    """Let records go, after a failure, too: the close of the producer waits for them."""
    try:
        yield
    finally:
        kafka.heal()


def polling(consumer: Consumer) -> Callable[[], object]:
    return lambda: consumer.poll(0.02)


# ---- producers ----


def test_a_topic_that_does_not_exist(kafka: EmbeddedKafka, log: Log) -> None:
    with (
        Producer({"bootstrap.servers": kafka.bootstrap, **QUICK}, max_block_ms=600) as producer,
        pytest.raises(KafkaTimeoutError, match="there is no topic 'events'"),
    ):
        producer.send("events", b"v")
    (line,) = log.lines("events")
    said = "there is no topic 'events' (yet); waiting up to max.block.ms (0.6 s)"
    assert line == f"WARNING kafka_fast.producer: {said}"


def test_no_broker_at_all(log: Log) -> None:
    with (
        Producer({"bootstrap.servers": NOBODY, **QUICK}, max_block_ms=600) as producer,
        pytest.raises(KafkaTimeoutError, match=f"last trouble: {NOBODY}: Connection refused"),
    ):
        producer.send("events", b"v")
    refused, waited = log.lines("refused")
    assert refused == f"WARNING kafka_fast.producer: {NOBODY}: Connection refused"
    assert waited.startswith(
        "WARNING kafka_fast.producer: no metadata of topic 'events' yet; last trouble: "
        f"{NOBODY}: Connection refused ("
    )
    assert waited.endswith("; waiting up to max.block.ms (0.6 s)")


def test_records_that_cannot_be_sent(kafka: EmbeddedKafka, log: Log) -> None:
    kafka.faults.error(INIT_PRODUCER_ID, CoordinatorLoadInProgress)
    with Producer({"bootstrap.servers": kafka.bootstrap, **QUICK}) as producer:
        future = producer.send("t", b"v", partition=0)
        late = r"not known after 0.8 s; t-0: there is no pro"
        with healed(kafka):
            eventually(lambda: log.lines("wait"))  # who waits from here on has nothing to add
            with pytest.raises(KafkaTimeoutError, match=late):
                future.result(0.8)
        future.result(TIMEOUT)
    (line,) = log.lines("wait")
    assert line.startswith(
        "WARNING kafka_fast.producer: records of t-0 wait to be sent: there is no producer id "
        "yet: COORDINATOR_LOAD_IN_PROGRESS (14)"
    )
    assert line.endswith("; they fail after delivery.timeout.ms (120 s)")


def test_a_leader_that_does_not_answer(kafka: EmbeddedKafka, log: Log) -> None:
    with Producer({"bootstrap.servers": kafka.bootstrap, **QUICK}) as producer:
        producer.send("t", b"v", partition=0).result(TIMEOUT)
        rule = kafka.faults.delay(TIMEOUT, api=PRODUCE)
        producer.send("t", b"v", partition=0)
        pending = producer.flush(0.8)
        rule.cancel()
        kafka.kill(1)
        kafka.restart(1)
        assert (pending, producer.flush(TIMEOUT)) == (1, 0)
    (line,) = log.lines("wait")
    assert re.fullmatch(
        r"WARNING kafka_fast.producer: flush\(\) waits; not delivered yet: 1 record; t-0: its "
        r"leader, node 1 at 127.0.0.1:\d+, has not answered",
        line,
    )


def test_a_quota_is_the_cause_while_the_broker_has_the_client_wait(
    kafka: EmbeddedKafka, log: Log
) -> None:
    """Regression: its leader was said not to have answered."""
    with Producer({"bootstrap.servers": kafka.bootstrap, **QUICK}) as producer:
        producer.send("t", b"v", partition=0).result(TIMEOUT)
        kafka.faults.throttle(900, count=1, api=PRODUCE)
        producer.send("t", b"v", partition=0).result(TIMEOUT)
        producer.send("t", b"v", partition=0).result(TIMEOUT)
    (line,) = log.lines("waits")
    assert re.fullmatch(
        r"WARNING kafka_fast.producer: result\(\) waits; not delivered yet: 1 record; t-0: its "
        r"leader, node 1 at 127.0.0.1:\d+, has this client wait for 0.9 s: a quota",
        line,
    )


def test_one_warning_for_each_partition_and_cause(kafka: EmbeddedKafka, log: Log) -> None:
    kafka.faults.error(PRODUCE, NotEnoughReplicas)
    config = {"bootstrap.servers": kafka.bootstrap, **QUICK}
    with Producer(config, delivery_timeout_ms=500, request_timeout_ms=400, linger_ms=0) as producer:
        futures = [producer.send("t", b"v", partition=number) for number in (0, 1, 0)]
        errors = [future.exception(TIMEOUT) for future in futures]
    assert all("NOT_ENOUGH_REPLICAS (19)" in str(error) for error in errors)
    assert (
        len(log.lines(r"WARNING kafka_fast.producer: NOT_ENOUGH_REPLICAS \(19\): t-0, says")) == 1
    )
    assert (
        len(log.lines(r"WARNING kafka_fast.producer: NOT_ENOUGH_REPLICAS \(19\): t-1, says")) == 1
    )


def test_no_room_in_the_buffer(kafka: EmbeddedKafka) -> None:
    kafka.faults.error(PRODUCE, NotEnoughReplicas)
    config = {"bootstrap.servers": kafka.bootstrap, **QUICK}
    producer = Producer(config, buffer_memory=65_536, max_block_ms=300)
    try:
        with pytest.raises(KafkaTimeoutError, match=r"no room in buffer\.memory") as caught:
            deque((producer.send("t", bytes(10_000), partition=0) for _ in range(100)), maxlen=0)
        assert "; t-0: last trouble: NOT_ENOUGH_REPLICAS (19)" in str(caught.value)
        assert isinstance(caught.value.__cause__, NotEnoughReplicas)
    finally:
        with suppress(KafkaError):
            producer.close(0)


class Meanwhile(logging.Handler):
    """Has another thread do something while it is logged that a topic is waited for."""

    def __init__(self, topic: str, what: Callable[[], object]) -> None:
        super().__init__()
        self._topic = topic
        self._what = what
        self.was_done: list[bool] = []

    def emit(self, record: logging.LogRecord) -> None:
        if f"'{self._topic}'" in record.getMessage():  # not what the other thread may wait for
            thread = threading.Thread(target=self._what)
            thread.start()
            thread.join(5.0 if all(self.was_done) else 0)
            self.was_done.append(not thread.is_alive())

    @contextmanager
    def used(self) -> Iterator[None]:
        loggers = logging.getLogger("kafka_fast")
        loggers.addHandler(self)
        try:
            yield
        finally:
            loggers.removeHandler(self)


def test_a_log_handler_may_wait_for_the_producer_that_waits(kafka: EmbeddedKafka) -> None:
    """Regression: the wait was told of under the lock by which topics become known."""
    config = {"bootstrap.servers": kafka.bootstrap, **QUICK}
    with Producer(config, max_block_ms=2_000) as producer:
        handler = Meanwhile("events", lambda: producer.send("t", b"log").result(TIMEOUT))
        with handler.used(), pytest.raises(KafkaTimeoutError):
            producer.send("events", b"v")
    assert handler.was_done == [True]


def test_a_log_handler_in_the_control_thread_does_not_wait_for_it(kafka: EmbeddedKafka) -> None:
    """Regression: it waited for max.block.ms, and so did all that the producer had to do."""
    config = {"bootstrap.servers": kafka.bootstrap, **QUICK}
    errors: list[BaseException] = []
    with Producer(config) as producer:

        class ToKafka(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                if threading.current_thread().name == "kf-control":
                    try:
                        producer.send("logs", record.getMessage())
                    except KafkaError as error:
                        errors.append(error)

        producer.send("t", b"v").result(TIMEOUT)
        handler = ToKafka(logging.WARNING)
        logging.getLogger("kafka_fast").addHandler(handler)
        try:
            kafka.kill(1)
            eventually(lambda: errors != [])
        finally:
            logging.getLogger("kafka_fast").removeHandler(handler)
        kafka.restart(1)
        producer.send("t", b"v").result(TIMEOUT)
    assert isinstance(errors[0], UsageError)
    assert "it would wait for itself" in str(errors[0])


# ---- consumers ----


def test_the_end_of_the_log_is_normal(kafka: EmbeddedKafka, log: Log) -> None:
    fill(kafka, "t", 3)
    with consumer_of(kafka.bootstrap) as consumer:
        consumer.assign(partitions_of("t", 2))
        eventually(lambda: bool(consumer.poll(0.1)))
        said = (
            "INFO kafka_fast.consumer: at the end of the log of t-0, t-1, waiting for new records$"
        )
        log.says_once(said, polling(consumer))
        fill(kafka, "t", 3)
        eventually(lambda: bool(consumer.poll(0.1)))
        log.says_once(said, polling(consumer))


def test_a_quota_holds_a_consumer_up(kafka: EmbeddedKafka, log: Log) -> None:
    """Regression: it was said to be at the end of the log."""
    with consumer_of(kafka.bootstrap) as consumer:
        consumer.assign(partitions_of("t", 1))
        kafka.faults.throttle(900, api=FETCH)
        said = (
            r"INFO kafka_fast.consumer: waiting for records of t-0: its leader, node 1 at "
            r"127.0.0.1:\d+, has this client wait for 0.9 s: a quota$"
        )
        log.says_once(said, polling(consumer))
        assert not log.lines("at the end of the log")


def test_whoever_begins_at_the_end_is_told_so(kafka: EmbeddedKafka, log: Log) -> None:
    fill(kafka, "t", 3)
    with Consumer(bootstrap_servers=kafka.bootstrap, fetch_max_wait_ms=20) as consumer:
        consumer.assign(partitions_of("t", 1))
        said = "new records; auto.offset.reset is latest: what was there before is not read$"
        log.says_once(said, polling(consumer))


def test_a_member_that_has_waited_for_its_group_is_told_of_the_end(log: Log) -> None:
    """Regression: on a stock Kafka, where a group begins with 3 s of rest, nobody was told."""
    groups = GroupSettings(initial_rebalance_delay_ms=400)
    with (
        EmbeddedKafka(auto_create=False, groups=groups) as kafka,
        Consumer(bootstrap_servers=kafka.bootstrap, group_id="g", fetch_max_wait_ms=20) as consumer,
    ):
        kafka.create_topic("t", 1)
        consumer.subscribe(["t"])
        log.says_once("answers JoinGroup once all members have joined", polling(consumer))
        log.says_once("new records; auto.offset.reset is latest: what was", polling(consumer))


def test_paused_partitions(kafka: EmbeddedKafka, log: Log) -> None:
    with consumer_of(kafka.bootstrap) as consumer:
        consumer.assign(partitions_of("t", 2))
        consumer.pause(*partitions_of("t", 2))
        said = "INFO .*: all partitions that are assigned are paused: t-0, t-1$"
        log.says_once(said, polling(consumer))


def test_a_partition_that_is_held_up(kafka: EmbeddedKafka, log: Log) -> None:
    kafka.faults.error(FETCH, 56)  # KAFKA_STORAGE_ERROR
    with consumer_of(kafka.bootstrap) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        said = r"WARNING .*waiting for records of t-0 \(KAFKA_STORAGE_ERROR \(56\): Fetch of t-0: "
        log.says_once(said, polling(consumer))
        eventually(lambda: log.lines(r"WARNING kafka_fast.consumer: KAFKA_STORAGE_ERROR \(56\)"))
        assert len(log.lines("consumer: KAFKA_STORAGE_ERROR")) == 1


def test_an_answer_that_is_over_is_not_blamed(
    log: Log, monkeypatch: pytest.MonkeyPatch, short_waits: float
) -> None:
    """Regression: each leader that moved made idle consumers warn, seconds after all was well."""
    monkeypatch.setattr(diagnosis, "ANSWER_GRACE", short_waits / 3)
    with EmbeddedKafka(2, auto_create=False) as kafka, consumer_of(kafka.bootstrap) as consumer:
        kafka.create_topic("t", 1)
        consumer.assign([TopicPartition("t", 0)])
        log.says_once("at the end of the log of t-0, waiting", polling(consumer))
        leader = kafka.on_cluster(lambda cluster: cluster.state.partition("t", 0).leader)
        kafka.move_leader("t", 0, node_id=3 - leader)
        troubles = consumer._core.control.troubles
        eventually(lambda: troubles.last_of(TopicPartition("t", 0)) is not None)
        until = time.monotonic() + 6 * short_waits
        while time.monotonic() < until:
            consumer.poll(0.02)
        assert log.lines("waiting for records") == []


def test_the_other_members_of_a_group_are_waited_for(kafka: EmbeddedKafka, log: Log) -> None:
    group = {"group_id": "g", "heartbeat_interval_ms": 50}
    with consumer_of(kafka.bootstrap, **group) as lazy:
        lazy.subscribe(["t"])
        eventually(lambda: lazy.poll(0.02) is not None and len(lazy.assignment()) == 2)
        with consumer_of(kafka.bootstrap, **group) as late:
            late.subscribe(["t"])
            said = (
                r"INFO .*: waiting for group 'g': its coordinator, node 1 at 127.0.0.1:\d+, "
                r"answers JoinGroup once all members have joined"
            )
            log.says_once(said, polling(late))
            eventually(lambda: [lazy.poll(0.02), late.poll(0.02)] and len(late.assignment()) == 1)


def test_a_member_too_many(kafka: EmbeddedKafka, log: Log) -> None:
    kafka.create_topic("one", 1)
    group = {"group_id": "g", "heartbeat_interval_ms": 50}
    with consumer_of(kafka.bootstrap, **group) as first:
        first.subscribe(["one"])
        eventually(lambda: first.poll(0.02) is not None and bool(first.assignment()))
        with consumer_of(kafka.bootstrap, **group) as second:
            second.subscribe(["one"])
            said = r"INFO .*: generation \d+ has no partition for this member: others have them all"
            log.says_once(said, lambda: [first.poll(0.02), second.poll(0.02)])


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_topic_to_subscribe_to_that_is_not_there(
    kafka: EmbeddedKafka, log: Log, protocol: str
) -> None:
    with consumer_of(kafka.bootstrap, group_id="g", group_protocol=protocol) as consumer:
        consumer.subscribe(["events"])
        said = "WARNING .*: there is no topic 'events' .yet.; it is read once there is one"
        log.says_once(said, polling(consumer))
        assert len(log.lines("no topic")) == 1
        kafka.create_topic("events", 1)
        fill(kafka, "events", 1)
        eventually(lambda: bool(consumer.poll(0.02)))


def test_a_pattern_that_matches_nothing(kafka: EmbeddedKafka, log: Log) -> None:
    with consumer_of(kafka.bootstrap, group_id="g") as consumer:
        consumer.subscribe(pattern=re.compile("x.*"))
        said = r"WARNING .*: waiting for group 'g': no topic matches the pattern 'x\.\*' \(yet\)"
        log.says_once(said, polling(consumer))


def test_a_coordinator_that_is_still_loading(kafka: EmbeddedKafka, log: Log) -> None:
    kafka.faults.error(JOIN_GROUP, CoordinatorLoadInProgress)
    with consumer_of(kafka.bootstrap, group_id="g") as consumer:
        consumer.committed([TopicPartition("t", 0)])  # from now on it has its coordinator
        consumer.subscribe(["t"])
        said = (
            r"{} .*: waiting for group 'g': its coordinator, node 1 at 127.0.0.1:\d+, answers "
            r"COORDINATOR_LOAD_IN_PROGRESS \(14\): JoinGroup in group 'g'"
        )
        log.says_once(said.format("INFO"), polling(consumer))
        assert not log.lines("WARNING"), "that is how a new coordinator begins"
        log.says_once(said.format("WARNING"), polling(consumer))


def test_no_broker_for_a_group(log: Log) -> None:
    with consumer_of(NOBODY, group_id="g", default_api_timeout_ms=200) as consumer:
        consumer.subscribe(["t"])
        said = f"WARNING .*: waiting for group 'g': .*; last trouble: {NOBODY}: Connection refused"
        log.says_once(said, polling(consumer))
        assert len(log.lines(f"consumer: {NOBODY}: Connection refused$")) == 1


def test_questions(kafka: EmbeddedKafka, log: Log) -> None:
    with consumer_of(kafka.bootstrap, group_id="g") as consumer:
        consumer.committed([TopicPartition("t", 0)])  # from now on it has its coordinator
        kafka.faults.error(OFFSET_FETCH, CoordinatorLoadInProgress)
        with pytest.raises(KafkaTimeoutError):
            consumer.committed([TopicPartition("t", 0)], timeout=0.6)
        with pytest.raises(KafkaTimeoutError):
            consumer.partitions_for("absent", timeout=0.6)
        kafka.create_topic("events")
        kafka.faults.error(METADATA, LeaderNotAvailable, topic="events")
        with pytest.raises(KafkaTimeoutError):
            consumer.partitions_for("events", timeout=0.6)
        consumer.assign([TopicPartition("t", 0)])
        with pytest.raises(KafkaTimeoutError):
            consumer.position(TopicPartition("t", 0), timeout=0.6)
    # A wait has what its call has left: a little less than its timeout.
    limit = r"waiting up to 0\.[56]\d* s"
    (committed,) = log.lines(f"fetching committed offsets: {limit}; its coordinator, ")
    assert "answers COORDINATOR_LOAD_IN_PROGRESS (14): OffsetFetch in group 'g'" in committed
    assert not log.lines("there is no topic 'absent'"), "an error says so soon"
    said = rf"no metadata of topic 'events' yet; .*LEADER_NOT_AVAILABLE \(5\).*; {limit}"
    assert len(log.lines(said)) == 1
    assert len(log.lines(f"position of t-0: {limit}; it waits for its committed")) == 1


def test_a_log_handler_may_wait_for_the_control_thread(kafka: EmbeddedKafka) -> None:
    kafka.faults.error(METADATA, LeaderNotAvailable, topic="t")
    with consumer_of(kafka.bootstrap) as consumer:
        handler = Meanwhile("t", consumer._core.driver.wake)
        with handler.used(), pytest.raises(KafkaTimeoutError):
            consumer.partitions_for("t", timeout=0.6)
    assert handler.was_done == [True]


@pytest.mark.parametrize(
    ("name", "client_id", "lacks_one"),
    [
        ("kafka_fast.connection", "", True),
        ("kafka_fast.connection", "producer-1", False),
        ("kafka_fast.testing.broker.serving.server", "", False),
        ("kafka_fast.spark.report", "", False),
    ],
)
def test_a_line_that_names_no_client_is_noticed(name: str, client_id: str, lacks_one: bool) -> None:
    """Every test here fails on such a line (conftest.py)."""
    handler = LinesOfNobody()
    record = logging.LogRecord(name, logging.WARNING, "p", 1, "node %d is away", (2,), None)
    record.client_id = client_id
    handler.emit(record)
    assert handler.lines == ([f"{name}: node 2 is away"] if lacks_one else [])
