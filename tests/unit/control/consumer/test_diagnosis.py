"""Why a partition is not read: a sentence for each state, in the log, in errors and in the dump."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.consumer.consumer_messages import StartStream, StreamRow, StreamsStopped
from kafka_fast.control.consumer.partition import FetchState, Position
from kafka_fast.control.messages import Throttled
from kafka_fast.errors import ErrorCode
from kafka_fast.protocol.apis.groups.offset_fetch import OffsetFetchRequest
from kafka_fast.protocol.apis.records.fetch import EpochEndOffset
from kafka_fast.protocol.apis.records.list_offsets import ListOffsetsRequest
from kafka_fast.protocol.apis.records.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from tests.unit.control.consumer.scripted import (
    OUT_OF_RANGE,
    T0,
    Cluster,
    assigned,
    make,
    punt,
    starts,
)
from tests.unit.control.fake_machine import FakeMachine
from tests.unit.control.metadata.metadata_answers import make_topic_id


def unassigned() -> FakeMachine:
    return make(Cluster())


def alone(cluster: Cluster, *, committed: bool = False, **given: object) -> FakeMachine:
    """Return a consumer to which the first partition is assigned; nothing has happened yet."""
    machine = make(cluster, **{"auto_offset_reset": "earliest", **given})
    machine.control.assign([(T0, 0)], machine.now, committed=committed)
    return machine


def silent(machine: FakeMachine, *kinds: type) -> FakeMachine:
    """Leave these requests unanswered."""
    machine.handlers.update(dict.fromkeys(kinds, lambda request, key: None))
    machine.run(1.0)
    return machine


def without_coordinator() -> FakeMachine:
    cluster = Cluster()
    cluster.commit_errors = [int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)] * 100
    machine = alone(cluster, committed=True, group_id="g")
    machine.run(1.0)
    return machine


def recreated_before_the_committed_offset() -> FakeMachine:
    cluster = Cluster()
    machine = silent(alone(cluster, committed=True, group_id="g"), OffsetFetchRequest)
    cluster.topic_id = make_topic_id(2)
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    return machine


def looked_up() -> FakeMachine:
    return silent(alone(Cluster()), ListOffsetsRequest)


def refused_look_up() -> FakeMachine:
    cluster = Cluster()
    cluster.offset_errors = [int(ErrorCode.OFFSET_NOT_AVAILABLE)] * 100
    machine = alone(cluster)
    machine.run(1.0)
    return machine


def validated() -> FakeMachine:
    machine = assigned(Cluster())
    machine.control.seek(T0, Position(7, 3), 1, machine.now)
    return silent(machine, OffsetForLeaderEpochRequest)


def leaderless() -> FakeMachine:
    cluster = Cluster()
    cluster.leaders[0] = (-1, 5)
    machine = make(cluster)
    machine.control.assign([(T0, 0)], machine.now, committed=False)
    machine.control.seek(T0, Position(7), 1, machine.now)
    machine.run(1.0)
    return machine


def linkless() -> FakeMachine:
    machine = make(Cluster())
    machine.control.assign([(T0, 0)], machine.now, committed=False)
    machine.control.seek(T0, Position(7), 1, machine.now)
    machine.run(0.0)
    machine.control.fetch_routes.halt(machine.control.partitions[T0], machine.now)
    machine.close(ConnectionKey(Role.DATA, 1))
    machine.control.fetch_routes.start_fetching(machine.control.partitions[T0], machine.now)
    return machine


def replica_without_a_link() -> FakeMachine:
    machine = assigned(Cluster())
    machine.close(ConnectionKey(Role.DATA, 2))
    machine.hung.add(9092)
    first = starts(machine)[0]
    punt(machine, first, 100, preferred_read_replica=2)
    return machine


def fetched() -> FakeMachine:
    return assigned(Cluster())


def throttled() -> FakeMachine:
    machine = assigned(Cluster())
    machine.event(Throttled(machine.link_to(1), 1500))
    return machine


def refused_once() -> FakeMachine:
    machine = assigned(Cluster())
    punt(machine, starts(machine)[0], 100, int(ErrorCode.KAFKA_STORAGE_ERROR))
    while not any(isinstance(command, StartStream) for command in machine.kept):
        machine.run(0.01)
    return machine


def stopping() -> FakeMachine:
    cluster = Cluster()
    machine = assigned(cluster)
    cluster.leaders[0] = (2, 6)
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    return machine


def backing_off() -> FakeMachine:
    machine = assigned(Cluster())
    punt(machine, starts(machine)[0], 100, int(ErrorCode.KAFKA_STORAGE_ERROR))
    return machine


def truncated() -> FakeMachine:
    machine = assigned(Cluster())
    diverging = EpochEndOffset(epoch=4, end_offset=350)
    punt(machine, starts(machine)[0], 400, diverging_epoch=diverging)
    return machine


def recreated() -> FakeMachine:
    cluster = Cluster()
    machine = assigned(cluster)
    cluster.topic_id = make_topic_id(2)
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    return machine


def failed() -> FakeMachine:
    return assigned(Cluster(), auto_offset_reset="none")


def failed_out_of_range() -> FakeMachine:
    machine = assigned(Cluster(), auto_offset_reset="none")
    machine.control.seek(T0, Position(5000), 1, machine.now)
    machine.run()
    punt(machine, starts(machine)[0], 5000, OUT_OF_RANGE)
    return machine


LEADER, COORDINATOR = "node 1 at kafka:9092", "node 2 at kafka:9092"
CASES: list[tuple[Callable[[], FakeMachine], FetchState | None, str]] = [
    (unassigned, None, "it was assigned just now"),
    (
        without_coordinator,
        FetchState.AWAITS_COMMITTED,
        f"it waits for its committed offset, but its coordinator, {COORDINATOR}, answers",
    ),
    (
        recreated_before_the_committed_offset,
        FetchState.AWAITS_COMMITTED_ANEW,
        "it waits for its committed offset in the topic that was recreated",
    ),
    (
        looked_up,
        FetchState.AWAITS_OFFSET,
        f"it looks up where to start, but its leader, {LEADER}, does not answer",
    ),
    (
        refused_look_up,
        FetchState.AWAITS_OFFSET,
        "it looks up where to start, but its leader answers OFFSET_NOT_AVAILABLE (78)",
    ),
    (
        validated,
        FetchState.AWAITS_VALIDATION,
        f"it has its position validated, but its leader, {LEADER}, does not answer",
    ),
    (leaderless, FetchState.AWAITS_LEADER, "it has no leader"),
    (linkless, FetchState.AWAITS_LINK, "no connection to its leader: node 1"),
    (
        replica_without_a_link,
        FetchState.AWAITS_LINK,
        "no connection to the replica that its leader prefers: node 2",
    ),
    (fetched, FetchState.FETCHING, f"its leader, {LEADER}, does not answer"),
    (
        throttled,
        FetchState.FETCHING,
        f"its leader, {LEADER}, has this client wait for 1.5 s: a quota",
    ),
    (refused_once, FetchState.FETCHING, "KAFKA_STORAGE_ERROR (56): Fetch of t-0: "),
    (
        stopping,
        FetchState.STOPPING,
        "it waits for the end of its last fetch, to go on at another node",
    ),
    (backing_off, FetchState.BACKING_OFF, "KAFKA_STORAGE_ERROR (56): Fetch of t-0: "),
    (
        truncated,
        FetchState.TRUNCATED,
        "it waits for a poll() to go back to where its log was truncated",
    ),
    (
        recreated,
        FetchState.RECREATED,
        "it waits for a poll() to begin again, because its topic was deleted and recreated",
    ),
    (failed, FetchState.FAILED, "no committed offset for t-0, and auto.offset.reset is none"),
    (failed_out_of_range, FetchState.FAILED, "offset 5000 of t-0 is not in its log"),
]


@pytest.mark.parametrize(
    ("begin", "state", "sentence"), CASES, ids=[case[0].__name__ for case in CASES]
)
def test_a_sentence_for_each_state(
    begin: Callable[[], FakeMachine], state: FetchState | None, sentence: str
) -> None:
    machine = begin()
    control, now = machine.control, machine.now
    said = control.view.why_waiting(T0, now).text
    assert said.startswith(sentence)
    if state is None:
        return
    assert control.partitions[T0].state is state
    status = control.view.status_of(T0, now)
    assert str(status).startswith(f"{state.name} for ")
    nothing_is_wrong = begin in (fetched, throttled)
    assert control.view.is_fetched(T0, now) is nothing_is_wrong
    assert status.is_undisturbed is nothing_is_wrong
    assert nothing_is_wrong or str(status).endswith(f"; {said}")


def test_each_state_that_lasts_has_its_case() -> None:
    passing = {FetchState.ASSIGNED, FetchState.STOPPED}  # left in the same event
    assert {state for _, state, _ in CASES if state is not None} == set(FetchState) - passing


def test_who_backs_off_says_why_and_for_what_it_waits() -> None:
    machine = backing_off()
    why = machine.control.view.why_waiting(T0, machine.now)
    assert why.text.endswith("; it waits for its backoff")
    assert why.cause is not None


def test_the_dump_says_since_when_from_where_and_over_which_link() -> None:
    machine = fetched()
    started = machine.control.partitions[T0].since
    link_id = machine.link_to(1)
    said = str(machine.control.view.status_of(T0, started + 12.5))
    assert said == f"FETCHING for 12.5 s, from offset 100 over link {link_id} to {LEADER}"
    stream = starts(machine)[0]
    machine.event(StreamsStopped((StreamRow(0, stream.generation, 0, 333, -1),)))
    machine.control.partitions[T0].enter(FetchState.AWAITS_LEADER, machine.now)
    said = str(machine.control.view.status_of(T0, machine.now))
    assert said.startswith("AWAITS_LEADER for 0 s, position 333; ")
