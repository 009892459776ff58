"""What clients tell of their connections."""

from __future__ import annotations

import re
import time
from datetime import datetime

from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.errors import OffsetNotAvailable
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import LIST_OFFSETS
from tests.embedded.producing import TIMEOUT
from tests.waiting import eventually


def test_debug_dump_tells_what_the_links_did_and_no_payload() -> None:
    with EmbeddedKafka() as kafka, Producer({"bootstrap.servers": kafka.bootstrap}) as producer:
        producer.send("t", b"secret payload").result(TIMEOUT)
        dump = producer.debug_dump()
        assert re.search(r"^link 2 to node 1, 0 requests in flight$", dump, re.MULTILINE)
        assert re.search(r" sent Produce v\d+ #1, batch 1, \d+ bytes$", dump, re.MULTILINE)
        assert re.search(r" received Metadata v\d+ #1, \d+ bytes$", dump, re.MULTILINE)
        assert "secret" not in dump


def unix(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f").astimezone().timestamp()


def test_times_are_those_of_the_clock_on_the_wall() -> None:
    """Regression: monotonic seconds, which no other log has."""
    began = time.time()  # a producer connects at once
    with EmbeddedKafka() as kafka, Producer({"bootstrap.servers": kafka.bootstrap}) as producer:
        producer.send("t", b"value").result(TIMEOUT)
        head, *lines = producer.debug_dump().splitlines()
        ended = time.time()
    client, _, at = head.partition(" at ")
    assert client == f"producer {producer.client_id!r}"
    line_times = [unix(line[2:28]) for line in lines if line.startswith("  ")]
    grace = 0.002  # the clock is read to the millisecond
    assert began - grace <= min(line_times)
    assert max(line_times) <= unix(at[:26]) <= ended + grace
    assert at[26:] == time.strftime(" %z")
    rings = "\n".join(lines).split("link ")[1:]
    for ring in rings:
        times = [line[2:28] for line in ring.splitlines() if line.startswith("  ")]
        assert times == sorted(times)


def test_a_consumer_tells_what_its_links_did() -> None:
    with EmbeddedKafka() as kafka:
        with Producer({"bootstrap.servers": kafka.bootstrap}) as producer:
            producer.send("t", b"secret payload").result(TIMEOUT)
        with Consumer(
            {"bootstrap.servers": kafka.bootstrap, "auto.offset.reset": "earliest"}
        ) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            assert consumer.poll(TIMEOUT).values() == [b"secret payload"]
            at_end = r"^t-0: AT_END, handed over up to offset 1; FETCHING for "
            eventually(lambda: re.search(at_end, consumer.debug_dump(), re.MULTILINE), "the end")
            consumer.pause(TopicPartition("t", 0))
            dump = consumer.debug_dump()
            assert "to node 1, " in dump
            assert re.search(r" sent Fetch v\d+ #\d+, \d+ bytes$", dump, re.MULTILINE)
            assert "secret" not in dump
            (line,) = [text for text in dump.splitlines() if text.startswith("t-0: ")]
            assert re.match(
                r"t-0: PAUSED, handed over up to offset 1; "
                r"FETCHING for [\d.]+ m?s, from offset 0 over link \d+ to node 1 at ",
                line,
            )


def test_a_consumer_tells_why_it_does_not_read() -> None:
    with EmbeddedKafka() as kafka, Consumer(bootstrap_servers=kafka.bootstrap) as consumer:
        kafka.create_topic("t", 1)
        kafka.faults.error(LIST_OFFSETS, OffsetNotAvailable)
        consumer.assign([TopicPartition("t", 0)])
        said = (
            r"^t-0: AWAITS_OFFSET for [\d.]+ m?s, no position, nothing handed over yet; "
            r"it looks up where to start, but its leader answers OFFSET_NOT_AVAILABLE \(78\)"
        )
        eventually(lambda: re.search(said, consumer.debug_dump(), re.MULTILINE), "the reason")
