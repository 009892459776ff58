"""Fetch sessions of one broker: how many there may be, and what ends them."""

from __future__ import annotations

from kafka_fast import errors
from kafka_fast.protocol.apis.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tests.unit.testing.broker.memory import Client, World, batch

VERSION = 12


def full(client: Client, *partitions: int) -> FetchResponse:
    asked = [FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in partitions]
    topics = [FetchTopic(topic="t", partitions=asked)]
    response: FetchResponse = client.ask(
        FetchRequest(max_bytes=1 << 20, session_epoch=0, topics=topics), VERSION
    )
    assert response.error_code == 0
    return response


def code(client: Client, session_id: int, epoch: int) -> int:
    request = FetchRequest(max_bytes=1 << 20, session_id=session_id, session_epoch=epoch)
    error_code: int = client.ask(request, VERSION).error_code
    return error_code


def world(sessions: int = 1000) -> World:
    made = World(nodes=2, partitions=3, replication_factor=2, fetch_sessions=sessions)
    made.cluster.create_topic("t")
    return made


def test_a_cache_that_is_full_opens_no_session() -> None:
    client = world(sessions=2).connect()
    assert [full(client, 0).session_id for _ in range(3)] == [1, 2, 0]
    assert full(world(sessions=0).connect(), 0).session_id == 0


def test_an_unused_session_makes_room_after_two_minutes() -> None:
    here = world(sessions=1)
    client = here.connect()
    assert full(client, 0, 1).session_id == 1
    here.run_until(120.0)
    assert full(client, 0).session_id == 0
    here.run_until(121.0)
    assert full(client, 0).session_id == 2
    assert code(client, 1, 1) == errors.FetchSessionIdNotFound.code


def test_an_old_session_makes_room_for_a_larger_one() -> None:
    here = world(sessions=1)
    client = here.connect()
    full(client, 0)
    here.run_until(100.0)
    assert code(client, 1, 1) == 0
    here.run_until(130.0)
    assert full(client, 0).session_id == 0
    assert full(client, 0, 1).session_id == 2


def test_sessions_die_with_their_broker_and_their_ids_do_not_return() -> None:
    here = world()
    assert full(here.connect(), 0).session_id == 1
    assert code(here.connect(2), 1, 1) == errors.FetchSessionIdNotFound.code
    here.cluster.kill(1)
    here.settle()
    here.cluster.restart(1)
    client = here.connect()
    assert code(client, 1, 1) == errors.FetchSessionIdNotFound.code
    here.cluster.move_leader("t", 0, 1)
    assert full(client, 0).session_id == 2


def test_sessions_that_are_forgotten_on_order() -> None:
    here = world()
    client = here.connect()
    session_id = full(client, 0).session_id
    here.cluster.forget_fetch_sessions(1)
    assert code(client, session_id, 1) == errors.FetchSessionIdNotFound.code


def test_an_answer_that_was_overtaken_is_refused() -> None:
    here = world()
    first, second = here.connect(), here.connect()
    session_id = full(first, 0).session_id
    waiting = FetchRequest(max_bytes=100, max_wait_ms=500, session_id=session_id, session_epoch=1)
    waiting.min_bytes = 1
    first.send(waiting, VERSION)
    assert code(second, session_id, 2) == 0
    second.produce("t", batch())
    response = first.take(waiting, VERSION)
    assert response.error_code == errors.InvalidFetchSessionEpoch.code
    assert response.session_id == session_id


def test_a_replica_that_lags_shows_less() -> None:
    here = world()
    leader, follower = here.connect(1), here.connect(2)
    for _ in range(2):
        leader.produce("t", batch())
    here.cluster.set_replica_end("t", 0, 2, 1)
    assert follower.fetch("t", 0).high_watermark == 1
    assert follower.fetch("t", 1).records == b""
    assert follower.fetch("t", 2).error_code == errors.OffsetOutOfRange.code
    here.cluster.set_replica_end("t", 0, 2, None)
    assert follower.fetch("t", 2).high_watermark == 2


def test_scripts_change_answers() -> None:
    here = world()

    def twice(response: FetchResponse, node: int) -> None:
        response.responses += response.responses

    here.cluster.faults.script(FetchRequest.api_key, twice)
    assert len(full(here.connect(), 0).responses) == 2
    here.cluster.faults.clear()
    assert len(full(here.connect(), 0).responses) == 1
