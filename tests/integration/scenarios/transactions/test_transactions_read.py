"""What readers get of transactions: the last stable offset, and which of them were aborted."""

from __future__ import annotations

from kafka_fast.protocol.apis.records.fetch import PartitionData
from kafka_fast.record import ControlType, read_batches
from tests.integration.scenarios.steps import EARLIEST, LATEST, list_offset
from tests.integration.scenarios.transactions.conftest import Site
from tests.integration.scenarios.transactions.producers import READ_COMMITTED, fetch
from tests.integration.scenarios.wire import batch


def spans(data: PartitionData) -> list[tuple[int, int, bool]]:
    batches = read_batches(data.records or b"")
    return [(one.base_offset, one.last_offset, one.is_control) for one in batches]


def test_an_open_transaction_holds_back_what_follows_it(site: Site, topic: str) -> None:
    def read(offset: int) -> PartitionData:
        return fetch(site.client, topic, offset, isolation=READ_COMMITTED)

    site.client.produce(topic, batch(2))
    producer = site.producer()
    producer.written(topic, count=2)
    site.client.produce(topic, batch(1))
    data = read(0)
    assert (data.last_stable_offset, data.high_watermark) == (2, 5)
    assert (spans(data), data.aborted_transactions) == ([(0, 1, False)], [])
    beyond = read(3)
    assert (beyond.records, beyond.aborted_transactions) == (b"", [])
    everything = fetch(site.client, topic)
    assert spans(everything) == [(0, 1, False), (2, 3, False), (4, 4, False)]
    assert (everything.last_stable_offset, everything.aborted_transactions) == (2, None)
    producer.end(commit=True)
    data = read(0)
    assert (data.last_stable_offset, data.aborted_transactions) == (6, [])
    assert spans(data) == [(0, 1, False), (2, 3, False), (4, 4, False), (5, 5, True)]
    marker = read_batches(data.records or b"")[-1].control_record()
    assert marker.type == ControlType.COMMIT


def test_aborted_transactions_come_in_the_order_of_their_ends(site: Site, topic: str) -> None:
    def read(offset: int) -> PartitionData:
        return fetch(site.client, topic, offset, isolation=READ_COMMITTED)

    first, second = site.producer(), site.producer()
    first.written(topic)
    second.written(topic)
    second.end(commit=False)
    first.end(commit=False)
    second.written(topic, count=2)
    second.end(commit=False)

    def listed(offset: int) -> list[tuple[int, int]]:
        aborted = read(offset).aborted_transactions
        assert aborted is not None
        return [(one.producer_id, one.first_offset) for one in aborted]

    one, two = (first.producer_id, 0), (second.producer_id, 1)
    assert listed(0) == [two, one, (second.producer_id, 4)]
    assert listed(2) == [two, one, (second.producer_id, 4)]
    assert listed(3) == [one, (second.producer_id, 4)]
    assert listed(4) == [(second.producer_id, 4)]
    assert listed(6) == [(second.producer_id, 4)]
    assert listed(7) == []


def test_offsets_as_a_committed_reader_sees_them(site: Site, topic: str) -> None:
    site.client.produce(topic, batch(2, timestamp=1000))
    producer = site.producer()
    producer.written(topic)
    site.client.produce(topic, batch(1, timestamp=5000))

    def offset(timestamp: int, isolation: int) -> tuple[int, int]:
        answer = list_offset(site.client, topic, timestamp, isolation=isolation)
        assert answer.error_code == 0
        return answer.offset, answer.leader_epoch

    assert offset(LATEST, 0) == (4, 0)
    assert offset(LATEST, READ_COMMITTED) == (2, 0)
    assert offset(EARLIEST, READ_COMMITTED) == (0, 0)
    assert offset(1001, READ_COMMITTED) == (1, 0)
    assert offset(1002, 0) == (2, 0)
    assert offset(1002, READ_COMMITTED) == (-1, -1)
    producer.end(commit=True)
    assert offset(1002, READ_COMMITTED) == (2, 0)
    assert offset(LATEST, READ_COMMITTED) == (5, 0)
