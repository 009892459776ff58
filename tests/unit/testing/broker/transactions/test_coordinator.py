"""Coordinators among several brokers, in virtual time: markers, moves, faults, timeouts."""

from __future__ import annotations

import time

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.transactions.init_producer_id import InitProducerIdRequest
from kafka_fast.testing.broker.transactions.settings import TransactionSettings
from kafka_fast.testing.broker.versions import INIT_PRODUCER_ID, WRITE_TXN_MARKERS
from tests.integration.scenarios.transactions.producers import TransactionalProducer, log_of
from tests.unit.testing.broker.memory import World

NAME = "x"
PARTITIONS = 3
INTERVAL = 10.0
TIMEOUT_MS = 60_000


@pytest.fixture
def world() -> World:
    """Three brokers; each leads a partition of `t`, and node 1 coordinates `NAME`."""
    world = World(
        nodes=3,
        partitions=PARTITIONS,
        replication_factor=3,
        auto_create=False,
        unix_ms_at_zero=int(time.time() * 1000),
    )
    world.cluster.create_topic("t")
    client = world.connect()
    TransactionalProducer(client, NAME).find_coordinator_once()
    world.cluster.move_transaction_coordinator(NAME, 1)
    world.settle()
    return world


@pytest.fixture
def producer(world: World) -> TransactionalProducer:
    """A producer of version 2."""
    return began(world)


def began(world: World, protocol: int = 2) -> TransactionalProducer:
    made = TransactionalProducer(world.connect(), NAME, protocol=protocol)
    assert made.ask_for_id(timeout_ms=TIMEOUT_MS).error_code == 0
    return made


def state(world: World) -> str | None:
    return world.cluster.transaction_state(NAME)


def write(world: World, producer: TransactionalProducer, partition: int) -> int:
    """Produce to whoever leads the partition."""
    leader = world.cluster.state.partition("t", partition).leader
    with_leader = producer.copy()
    with_leader.client = world.connect(leader)
    code = with_leader.write("t", partition)
    producer.sequences = with_leader.sequences
    return code


def logs(world: World) -> list[list[str]]:
    """Return what the batches of all partitions are."""
    return [
        [
            one.control_record().type.name if one.is_control else "data"
            for one in world.cluster.batches("t", index)
        ]
        for index in range(PARTITIONS)
    ]


def test_a_transaction_on_all_brokers(world: World, producer: TransactionalProducer) -> None:
    assert [write(world, producer, index) for index in range(PARTITIONS)] == [0] * PARTITIONS
    assert producer.ask_to_end(commit=True).error_code == 0
    assert state(world) == "CompleteCommit"
    assert logs(world) == [["data", "COMMIT"]] * PARTITIONS


def test_only_the_coordinator_answers(world: World, producer: TransactionalProducer) -> None:
    stranger = producer.copy()
    stranger.client = world.connect(2)
    elsewhere = errors.NotCoordinator.code
    assert stranger.ask_for_id().error_code == elsewhere
    assert stranger.add("t") == elsewhere
    assert stranger.add_offsets("g") == elsewhere
    assert stranger.ask_to_end(commit=True).error_code == elsewhere
    assert stranger.described().error_code == elsewhere
    assert stranger.add_as_broker("t", 0) == [elsewhere]
    world.cluster.move_transaction_coordinator(NAME, 2)
    assert producer.add("t") == elsewhere
    assert stranger.add("t") == 0


def test_a_leader_that_is_gone_gets_its_marker_later(
    world: World, producer: TransactionalProducer
) -> None:
    for index in range(PARTITIONS):
        assert write(world, producer, index) == 0
    world.cluster.state.partition("t", 1).isr = [2]
    world.cluster.kill(2)
    producer.ask_to_end(commit=False)
    assert (state(world), logs(world)[1]) == ("PrepareAbort", ["data"])
    assert [topic.partitions for topic in producer.described().topics] == [[1]]
    assert world.cluster.state.partition("t", 1).log.last_stable_offset == 0
    assert producer.add("t") == errors.ConcurrentTransactions.code
    world.cluster.restart(2)
    world.settle()
    assert (state(world), logs(world)[1]) == ("CompleteAbort", ["data", "ABORT"])


def test_a_leader_that_stands_still_gets_its_marker_later(
    world: World, producer: TransactionalProducer
) -> None:
    assert write(world, producer, 1) == 0
    world.cluster.pause(2)
    producer.ask_to_end(commit=True)
    assert state(world) == "PrepareCommit"
    world.cluster.resume(2, world.now)
    world.settle()
    assert state(world) == "CompleteCommit"


def test_a_coordinator_that_takes_over_goes_on(
    world: World, producer: TransactionalProducer
) -> None:
    assert write(world, producer, 1) == 0
    world.cluster.faults.delay(30.0, api=WRITE_TXN_MARKERS, node=2, count=1)
    producer.ask_to_end(commit=True)
    assert state(world) == "PrepareCommit"
    world.cluster.kill(1)
    world.settle()
    assert world.cluster.transaction_coordinator(NAME) != 1
    assert state(world) == "CompleteCommit"
    assert [one.coordinator_epoch for one in world.cluster.state.partition("t", 1).producers] == [2]
    world.run_until(60.0)
    assert logs(world)[1] == ["data", "COMMIT"]


def test_markers_that_are_delayed_or_refused(world: World, producer: TransactionalProducer) -> None:
    assert write(world, producer, 0) == 0
    assert write(world, producer, 1) == 0
    faults = world.cluster.faults
    faults.delay(5.0, api=WRITE_TXN_MARKERS, node=1, count=1)
    faults.error(WRITE_TXN_MARKERS, errors.NotLeaderOrFollower, topic="t", partition=1, count=2)
    producer.ask_to_end(commit=True)
    assert (state(world), logs(world)[:2]) == ("PrepareCommit", [["data"], ["data"]])
    world.run_until(0.25)
    assert logs(world)[:2] == [["data"], ["data", "COMMIT"]]
    world.run_until(5.0)
    world.settle()
    assert logs(world)[:2] == [["data", "COMMIT"]] * 2
    assert state(world) == "CompleteCommit"


def test_a_marker_whose_answer_is_lost_is_written_twice(world: World) -> None:
    producer = began(world, protocol=1)
    producer.added("t")
    assert producer.write("t") == 0
    world.cluster.faults.error(
        WRITE_TXN_MARKERS, errors.RequestTimedOut, topic="t", applied=True, count=1
    )
    producer.ask_to_end(commit=True)
    assert state(world) == "PrepareCommit"
    world.run_until(1.0)
    assert (state(world), logs(world)[0]) == ("CompleteCommit", ["data", "COMMIT", "COMMIT"])


def test_the_next_batch_waits_a_moment_for_the_markers(
    world: World, producer: TransactionalProducer
) -> None:
    """KAFKA-18654: the leader asks the coordinator again, for a tenth of a second."""
    assert producer.write("t") == 0
    world.cluster.faults.delay(0.05, api=WRITE_TXN_MARKERS, count=1)
    producer.ask_to_end(commit=True)
    client = producer.client
    request = producer.produce_request("t", 0)
    client.send(request, 12)
    assert client.take(request, 12) is None
    world.run_until(world.now + 0.06)
    world.settle()
    assert client.take(request, 12).responses[0].partition_responses[0].error_code == 0
    assert logs(world)[0] == ["data", "COMMIT", "data"]
    producer.ask_to_end(commit=True)
    world.cluster.faults.delay(5.0, api=WRITE_TXN_MARKERS, count=1)
    request = producer.produce_request("t", 0)
    client.send(request, 12)
    assert client.take(request, 12).responses[0].partition_responses[0].error_code == 0
    producer.ask_to_end(commit=True)
    request = producer.produce_request("t", 0)
    client.send(request, 12)
    assert client.take(request, 12) is None
    world.run_until(world.now + 0.2)
    answer = client.take(request, 12).responses[0].partition_responses[0]
    assert answer.error_code == errors.ConcurrentTransactions.code


def test_who_cannot_reach_the_coordinator(world: World, producer: TransactionalProducer) -> None:
    producer.client = world.connect(2)
    world.cluster.pause(1)
    assert producer.write("t", 1) == errors.NotEnoughReplicas.code
    assert producer.write("t", 1, version=11) == errors.NotEnoughReplicas.code
    world.cluster.resume(1, world.now)
    assert producer.write("t", 1) == 0


def test_a_transaction_times_out_at_the_next_search(
    world: World, producer: TransactionalProducer
) -> None:
    world.now = 3.0
    assert write(world, producer, 0) == 0
    limit = 3.0 + TIMEOUT_MS / 1000
    world.run_until(limit)
    assert state(world) == "Ongoing"
    world.run_until(limit // INTERVAL * INTERVAL + INTERVAL)
    world.settle()
    assert (state(world), logs(world)[0]) == ("CompleteAbort", ["data", "ABORT"])
    assert producer.ask_to_end(commit=True).error_code == errors.InvalidTxnState.code


def test_time_goes_on_when_the_coordinator_moves(
    world: World, producer: TransactionalProducer
) -> None:
    assert write(world, producer, 1) == 0
    world.run_until(25.0)
    world.cluster.kill(1)
    world.run_until(71.0)
    world.settle()
    assert (state(world), logs(world)[1]) == ("CompleteAbort", ["data", "ABORT"])


def test_a_deleted_topic_needs_no_marker(world: World, producer: TransactionalProducer) -> None:
    assert write(world, producer, 0) == 0
    world.cluster.delete_topic("t")
    producer.ask_to_end(commit=True)
    assert state(world) == "CompleteCommit"


def test_an_id_is_forgotten(world: World, producer: TransactionalProducer) -> None:
    assert producer.write("t") == 0
    with pytest.raises(ValueError, match="Ongoing"):
        world.cluster.forget_transactional_id(NAME)
    producer.ask_to_end(commit=True)
    world.cluster.forget_transactional_id(NAME)
    assert state(world) is None
    assert producer.write("t") == errors.InvalidProducerIdMapping.code


def test_a_coordinator_that_loads(world: World) -> None:
    loading = errors.CoordinatorLoadInProgress
    world.cluster.faults.error(INIT_PRODUCER_ID, loading, count=1)
    producer = TransactionalProducer(world.connect(), NAME)
    assert producer.ask_for_id().error_code == loading.code
    assert producer.ask_for_id().error_code == 0
    world.cluster.faults.error(INIT_PRODUCER_ID, loading, count=1, applied=True)
    request = InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=TIMEOUT_MS)
    assert producer.client.ask(request, 5).error_code == loading.code
    assert producer.ask_for_id().producer_epoch == 2


def test_producers_whose_ids_wear_out_soon() -> None:
    world = World(first_epoch=32765, auto_create=False, unix_ms_at_zero=int(time.time() * 1000))
    world.cluster.create_topic("t")
    producer = TransactionalProducer(world.connect(), NAME, protocol=2)
    producer.find_coordinator_once()
    assert producer.ask_for_id().producer_epoch == 32765
    first = producer.producer_id
    identities = []
    for _ in range(3):
        assert producer.write("t") == 0
        assert producer.ask_to_end(commit=True).error_code == 0
        identities.append((producer.producer_id > first, producer.epoch))
    assert identities == [(False, 32766), (True, 0), (True, 1)]
    markers = [one.producer_epoch for one in world.cluster.batches("t", 0) if one.is_control]
    assert markers == [32766, 32767, 1]


def test_without_verification_anything_is_taken() -> None:
    settings = TransactionSettings(verification=False)
    world = World(auto_create=False, transactions=settings, unix_ms_at_zero=int(time.time() * 1000))
    world.cluster.create_topic("t")
    producer = TransactionalProducer(world.connect(), NAME)
    producer.find_coordinator_once()
    assert producer.ask_for_id().error_code == 0
    assert producer.write("t", version=11) == 0
    assert log_of(producer.client, "t") == [("data", 0)]
