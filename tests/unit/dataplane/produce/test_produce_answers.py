"""Produce requests as a broker reads them, and every way to spoil their answers."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_fast.control.messages import BadAnswer, CloseReason, LinkClosed, Misfit, Throttled
from kafka_fast.control.producer.producer_messages import ProducePunt
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.records.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    ProduceResponse,
)
from kafka_fast.record import Codec, Record, codecs_available
from tests.unit.dataplane.rig import (
    EPOCH,
    PRODUCER_ID,
    UNIX_MS,
    ProduceRig,
    Sent,
    encode,
    response_to,
)

VERSIONS = (3, 8, 9, 12, 13)
FIRST_WITH_LOG_START = 5
FIRST_WITH_MESSAGES = 8
FIRST_WITH_LEADERS = 10


def closing(rig: ProduceRig) -> list[CloseReason]:
    return [event.reason for event in rig.take(LinkClosed)]


def in_flight(version: int, partitions: int = 2) -> tuple[ProduceRig, Sent]:
    """One request with a batch for each partition."""
    rig = ProduceRig(version=version, partitions=partitions, linger=3600.0)
    for partition in range(partitions):
        rig.send_nowait(b"v%d" % partition, partition)
    rig.turner.begin_flush()
    (sent,) = rig.requests()
    rig.turner.end_flush()
    return rig, sent


# ---- requests ----


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_are_what_the_table_codec_reads(version: int) -> None:
    rig = ProduceRig(version=version, partitions=2, linger=3600.0)
    first = rig.add_topic("u", 1)
    rig.route(first[0], 1)
    headers = [("h", b"x"), ("null", None)]
    rig.send(b"one", 0, key=b"k", timestamp_ms=5, headers=headers)
    rig.send(b"two", 0, timestamp_ms=9)
    rig.accumulator.send("t", None, partition=1)
    rig.send(b"three", topic="u")
    rig.turner.begin_flush()
    (sent,) = rig.requests()
    assert sent.version == version
    assert (sent.request.acks, sent.request.timeout_ms) == (-1, 30_000)
    assert sent.request.transactional_id is None
    assert len(sent.request.topic_data) == 2
    batches = sent.batches  # checks each CRC
    assert sorted(batches) == [("t", 0), ("t", 1), ("u", 0)]
    for batch in batches.values():
        numbers = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
        assert numbers == (PRODUCER_ID, EPOCH, 0)
        assert (batch.base_offset, batch.leader_epoch, batch.attributes) == (0, -1, 0)
    assert (batches["t", 0].base_timestamp, batches["t", 0].max_timestamp) == (5, 9)
    records = list(batches["t", 0].records())
    assert all(isinstance(record, Record) for record in records)
    assert [(record.key, record.value, record.timestamp_ms) for record in records] == [
        (b"k", b"one", 5),
        (None, b"two", 9),
    ]
    assert [tuple(header) for header in records[0].headers] == headers
    assert sent.values(1) == [None]
    assert batches["t", 1].base_timestamp >= UNIX_MS


def test_topics_stand_in_a_request_in_the_order_of_their_first_use() -> None:
    """Never by address: a simulated run must have the same bytes again."""
    rig = ProduceRig(linger=3600.0)
    names = [f"topic-{number}" for number in range(20)]
    for name in names:
        rig.route(rig.add_topic(name, 1)[0], 1)
    for name in reversed(names):
        rig.send(topic=name)
    rig.turner.begin_flush()
    (sent,) = rig.requests()
    assert [topic.name for topic in sent.request.topic_data] == names


@pytest.mark.parametrize("version", VERSIONS)
def test_correlation_ids_count_up_and_sequences_follow_each_other(version: int) -> None:
    rig = ProduceRig(warm=True, version=version)
    requests = []
    for count in (1, 2, 1):
        for _ in range(count):
            rig.send_nowait()
        requests += rig.requests()
    assert [sent.correlation_id for sent in requests] == [1, 2, 3]
    assert [sent.batches["t", 0].base_sequence for sent in requests] == [1, 2, 4]


def test_a_batch_is_resent_with_the_same_bytes() -> None:
    rig = ProduceRig()
    rig.send(b"value", key=b"key")
    (first,) = rig.requests()
    rig.answer(first, {0: 6})
    (report,) = rig.reports()
    rig.thaw(report)
    (again,) = rig.requests()
    assert again.request == first.request


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_compressed_batches_say_so_and_read_the_same(codec: int) -> None:
    rig = ProduceRig(codec=codec, linger=3600.0)
    for number in range(50):
        rig.send_nowait(b"value %d" % number)
    rig.send_nowait(b"x", headers=[("h", b"x")])
    rig.turner.begin_flush()
    (sent,) = rig.requests()
    batch = sent.batches["t", 0]
    # The rig has the compiled codecs only: without them batches go out as they are.
    is_native = codecs_available()[Codec(codec).name.lower()] == "native"
    assert batch.attributes == (codec if is_native else 0)
    assert sent.values() == [b"value %d" % number for number in range(50)] + [b"x"]
    rig.answer(sent)
    assert rig.reserved == 0


def test_records_that_compression_makes_larger_are_sent_as_they_are() -> None:
    rig = ProduceRig(codec=3)
    noise = random.Random(1).randbytes(2000)
    rig.send(noise)
    (sent,) = rig.requests()
    assert sent.batches["t", 0].attributes == 0
    assert sent.values() == [noise]


def test_without_idempotence_batches_carry_no_producer_id() -> None:
    rig = ProduceRig(idempotent=False)
    rig.send()
    (sent,) = rig.requests()
    batch = sent.batches["t", 0]
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)


def test_without_acks_a_batch_ends_when_it_is_written() -> None:
    rig = ProduceRig(acks_zero=True, idempotent=False, choppiness=200)
    futures = [rig.send(b"v" * 1000) for _ in range(20)]
    requests = rig.requests()
    assert [sent.request.acks for sent in requests] == [0] * len(requests)
    assert [future.result().offset for future in futures] == [-1] * 20
    assert rig.reserved == 0


# ---- answers ----


@pytest.mark.parametrize("version", VERSIONS)
def test_success_completes_every_batch_at_its_offset(version: int) -> None:
    rig = ProduceRig(version=version, partitions=2, choppiness=128)
    futures = [rig.send(b"v", partition) for partition in (0, 1)]
    for number, sent in enumerate(rig.requests()):
        rig.answer(sent, base_offset=100 + number)
    assert [future.result().partition for future in futures] == [0, 1]
    assert all(future.result().offset >= 100 for future in futures)
    assert closing(rig) == []
    assert rig.reserved == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_that_a_broker_may_add_is_skipped(version: int) -> None:
    rig, sent = in_flight(version)
    response = response_to(sent, {1: 87}, throttle_ms=7)
    refused = response.responses[0].partition_responses[1]
    if version >= FIRST_WITH_LOG_START:
        refused.log_start_offset = 3
    if version >= FIRST_WITH_MESSAGES:
        refused.error_message = "a record was bad"
        refused.record_errors = [
            BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="bad"),
            BatchIndexAndErrorMessage(batch_index=1),
        ]
    if version >= FIRST_WITH_LEADERS:
        refused.current_leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
        response.node_endpoints = [NodeEndpoint(node_id=2, host="host", port=9092, rack="rack")]
    rig.links[1].arrive(encode(response, sent))
    (punt,) = rig.take(ProducePunt)
    assert punt.version == version
    correlation_id, read = frame.decode_response(ProduceResponse, punt.frame, version)
    assert (correlation_id, read) == (sent.correlation_id, response)
    assert [event.throttle_ms for event in rig.take(Throttled)] == [7]
    (report,) = rig.reports()
    assert [row.error_code for row in report.batches] == [87]
    assert rig.queues.stats()["batches_acked"] == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_may_be_answered_in_any_order(version: int) -> None:
    rig, sent = in_flight(version, partitions=5)
    response = response_to(sent)
    response.responses[0].partition_responses.reverse()
    rig.links[1].arrive(encode(response, sent))
    rig.turn()
    assert rig.queues.stats()["batches_acked"] == 5
    assert closing(rig) == []


def lose_partition(response: ProduceResponse) -> None:
    response.responses[0].partition_responses.pop()


def repeat_partition(response: ProduceResponse) -> None:
    partitions = response.responses[0].partition_responses
    partitions[1] = partitions[0]


def add_partition(response: ProduceResponse) -> None:
    partitions = response.responses[0].partition_responses
    partitions.append(partitions[0])


def name_other_partition(response: ProduceResponse) -> None:
    response.responses[0].partition_responses[0].index = 77


def name_other_topic(response: ProduceResponse) -> None:
    response.responses[0].name = "x"
    response.responses[0].topic_id = b"x" * 16


def lose_topics(response: ProduceResponse) -> None:
    response.responses = []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("spoil", "misfit"),
    [
        (lose_partition, (Misfit.MISSING, 1)),
        (repeat_partition, (Misfit.TWICE, 1)),
        (add_partition, (Misfit.TWICE, 2)),
        (name_other_partition, (Misfit.FOREIGN, 0)),
        (name_other_topic, (Misfit.FOREIGN, 0)),
        (lose_topics, (Misfit.MISSING, 0)),
    ],
)
def test_an_answer_to_something_else_is_told_and_closes_the_link(
    version: int, spoil: Callable[[ProduceResponse], None], misfit: tuple[Misfit, int]
) -> None:
    rig, sent = in_flight(version)
    response = response_to(sent)
    spoil(response)
    rig.links[1].arrive(encode(response, sent))
    (bad,) = rig.take(BadAnswer)
    assert (bad.link_id, bad.version, bad.frame) == (1, version, encode(response, sent)[4:])
    which = bad.asked if misfit[0] is Misfit.MISSING else bad.place
    assert (bad.misfit, which, bad.was_well) == (*misfit, False)
    assert closing(rig) == [CloseReason.BAD_RESPONSE]
    check_all_came_back(rig, 2)


def check_all_came_back(rig: ProduceRig, count: int) -> None:
    """Each batch is unresolved, maybe written; with a new link it is sent again and completes."""
    reports = rig.reports()
    assert len(reports) == count
    assert all(
        report.batches[0].maybe_written and report.batches[0].error_code == 0 for report in reports
    )
    assert rig.queues.stats()["batches_acked"] == 0
    rig.add_link(2)
    for report in reports:
        rig.route(report.queue.queue_id, 2)
        rig.thaw(report)
    for sent in rig.requests(2):
        rig.answer(sent, link_id=2)
    assert rig.queues.stats()["batches_acked"] == count
    assert rig.reserved == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_cut_anywhere_is_waited_for_or_refused(version: int) -> None:
    rig, sent = in_flight(version)
    whole = encode(response_to(sent), sent)
    for size in range(len(whole)):
        rig, sent = in_flight(version)
        rig.links[1].arrive(whole[:size])
        assert closing(rig) == []
        rig.links[1].end()
        assert closing(rig) == [CloseReason.EOF]
        check_all_came_back(rig, 2)
    for size in range(8, len(whole)):  # the length says that this is all
        rig, sent = in_flight(version)
        rig.links[1].arrive(struct.pack(">i", size - 4) + whole[4:size])
        assert closing(rig) == [CloseReason.BAD_RESPONSE]
        check_all_came_back(rig, 2)


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_behind_an_answer_are_refused(version: int) -> None:
    rig, sent = in_flight(version)
    whole = encode(response_to(sent), sent)
    rig.links[1].arrive(struct.pack(">i", len(whole) - 3) + whole[4:] + b"\0")
    assert closing(rig) == [CloseReason.BAD_RESPONSE]


@settings(max_examples=150, deadline=None)
@given(
    version=st.sampled_from(VERSIONS),
    spots=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=3),
    extra=st.binary(max_size=20),
)
def test_no_damage_completes_a_batch_twice_or_loses_one(
    version: int, spots: list[tuple[int, int]], extra: bytes
) -> None:
    rig, sent = in_flight(version)
    data = bytearray(encode(response_to(sent), sent))
    for pos, value in spots:
        data[pos % len(data)] = value
    rig.links[1].arrive(bytes(data) + extra)
    rig.turn()
    reported = sum(len(report.batches) for report in rig.reports())
    acked = rig.queues.stats()["batches_acked"]
    waiting = 0 if rig.links[1].is_closed or acked + reported == 2 else 2
    assert acked + reported + waiting == 2
    assert rig.queues.pending() == 2 - acked
    rig.queues.shut_down()
    assert rig.reserved == 0


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 3, (1 << 20) + 1, 2**31 - 1])
def test_a_length_out_of_range_closes_the_link(length: int) -> None:
    rig, _ = in_flight(12)
    rig.links[1].arrive(struct.pack(">i", length) + b"whatever")
    (event,) = rig.take(LinkClosed)
    assert (event.reason, event.detail) == (CloseReason.BAD_FRAME, length)
    check_all_came_back(rig, 2)


@pytest.mark.parametrize("change", [1, -1, 1 << 30])
def test_an_answer_to_another_request_closes_the_link(change: int) -> None:
    rig, sent = in_flight(12)
    wrong = sent._replace(correlation_id=sent.correlation_id + change)
    rig.links[1].arrive(encode(response_to(sent), wrong))
    assert closing(rig) == [CloseReason.CORRELATION]
    check_all_came_back(rig, 2)


def test_an_answer_before_any_request_closes_the_link() -> None:
    rig = ProduceRig()
    rig.links[1].arrive(struct.pack(">ii", 4, 0))
    assert closing(rig) == [CloseReason.CORRELATION]


def test_an_answer_that_was_not_asked_for_closes_the_link() -> None:
    """The records are taken for written all the same: nothing was to say more."""
    rig = ProduceRig(acks_zero=True, idempotent=False)
    future = rig.send()
    (sent,) = rig.requests()
    rig.links[1].arrive(encode(response_to(sent, {0: 6}), sent))
    assert closing(rig) == [CloseReason.CORRELATION]
    assert future.result().offset == -1
    assert rig.reserved == 0


def test_answers_out_of_turn_close_the_link() -> None:
    rig = ProduceRig(warm=True)
    rig.send()
    rig.requests()
    rig.send()
    (second,) = rig.requests()
    rig.links[1].arrive(encode(response_to(second), second))
    assert closing(rig) == [CloseReason.CORRELATION]


def test_a_huge_throttle_time_or_a_negative_one_does_no_harm() -> None:
    for throttle_ms in (-1, -(2**31), 2**31 - 1):
        rig, sent = in_flight(12)
        rig.answer(sent, throttle_ms=throttle_ms)
        assert closing(rig) == []
        assert rig.queues.stats()["batches_acked"] == 2


def test_a_recreated_topic_is_answered_under_the_id_that_it_was_sent_with() -> None:
    """Regression: the answer was compared with the topic's present id, and the link closed."""
    rig = ProduceRig(version=13, warm=True)
    future = rig.send(b"for the old topic")
    (sent,) = rig.requests()
    rig.name_topic("t", b"n" * 16)
    rig.send_nowait(b"for the new one")
    (next_sent,) = rig.requests()
    assert next_sent.request.topic_data[0].topic_id == b"n" * 16
    rig.answer(sent)
    rig.answer(next_sent, {0: 100})
    assert closing(rig) == []
    assert future.result().offset == 100
    (report,) = rig.reports()
    assert [row.error_code for row in report.batches] == [100]


@pytest.mark.parametrize(("before", "after"), [(12, 13), (13, 12), (13, 8), (3, 13), (9, 3)])
def test_a_link_may_be_programmed_again_while_requests_are_in_flight(
    before: int, after: int
) -> None:
    rig = ProduceRig(version=before, warm=True)
    rig.send(b"as before")
    (old,) = rig.requests()
    rig.program(1, after)
    rig.send(b"from now on")
    (new,) = rig.requests()
    assert (old.version, new.version) == (before, after)
    assert (old.values(), new.values()) == ([b"as before"], [b"from now on"])
    rig.answer(old)
    rig.answer(new, {0: 87})
    assert closing(rig) == []
    (punt,) = rig.take(ProducePunt)
    assert punt.version == after
    assert rig.queues.stats()["batches_acked"] == 2
