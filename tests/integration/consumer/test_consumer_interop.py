"""What other people's clients write and commit on real Kafka, our consumer honours; and back."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from kafka_fast import OffsetAndMetadata
from kafka_fast.record.types import TimestampType
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.consuming import (
    PROTOCOLS,
    MakeConsumer,
    makers,
    partitions_of,
    read,
    write,
)
from tests.integration.peers import CODECS, NOTE, PEERS, RECORDS, Peer, rows, write_rows
from tests.integration.producing import new_topic

# The peers' own warnings are theirs; kafka-python warns already when it is imported.
pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", params=PEERS)
def peer(request: pytest.FixtureRequest, real_kafka: RealKafka) -> Iterator[Peer]:
    """Each of them in turn."""
    with closing(PEERS[request.param](real_kafka.bootstrap)) as made:
        yield made


@pytest.fixture
def consumer_on(real_kafka: RealKafka, consumer_class: Any) -> Iterator[MakeConsumer]:
    """Consumers that begin with the first record and are closed in the end."""
    yield from makers(real_kafka, consumer_class)


@pytest.fixture
def topic(real_kafka: RealKafka) -> str:
    return new_topic(real_kafka)


def check_rows(topic: str, make: MakeConsumer) -> None:
    """Read `rows`, exactly, and in that order."""
    consumer = make()
    consumer.assign(partitions_of(topic, 1))
    records = read(consumer, RECORDS)
    assert [(one.timestamp_ms, one.key, one.value, one.headers) for one in records] == rows()
    assert {one.timestamp_type for one in records} == {TimestampType.CREATE_TIME}
    assert [one.offset for one in records] == list(range(RECORDS))


@pytest.mark.parametrize("codec", CODECS)
def test_what_others_write_is_read_exactly(
    topic: str, consumer_on: MakeConsumer, peer: Peer, codec: str
) -> None:
    peer.write(topic, codec)
    check_rows(topic, consumer_on)


@pytest.mark.parametrize("codec", CODECS)
def test_what_we_write_is_read_exactly(
    real_kafka: RealKafka, topic: str, consumer_on: MakeConsumer, codec: str
) -> None:
    write_rows(real_kafka.bootstrap, topic, codec)
    check_rows(topic, consumer_on)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_offsets_that_others_commit_and_read(
    real_kafka: RealKafka, topic: str, consumer_on: MakeConsumer, peer: Peer, protocol: str
) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    (partition,) = partitions_of(topic, 1)
    write(real_kafka, topic, 100)
    peer.commit(group, topic, 70)
    consumer = consumer_on(group_id=group, enable_auto_commit=False, group_protocol=protocol)
    consumer.subscribe([topic])
    assert read(consumer, 30)[0].offset == 70
    committed = consumer.committed([partition])[partition]
    assert committed is not None
    # librdkafka's note comes with the end of a C string.
    assert (committed.offset, committed.metadata.rstrip("\0")) == (70, NOTE)
    consumer.commit({partition: OffsetAndMetadata(33, -1, "ours")})
    consumer.close()
    assert peer.committed(group, topic) == 33
