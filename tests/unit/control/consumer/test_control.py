"""Where partitions are read from: resets, seeks, validation, leaders, replicas, errors."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.config import consumer_settings
from kafka_fast.control.consumer.assigned import Phase, Position
from kafka_fast.control.consumer.control import ConsumerControl
from kafka_fast.control.consumer.plane import (
    FetchPunt,
    PartitionFailed,
    ProgramFetch,
    Recreated,
    RemoveStream,
    Reposition,
    StartStream,
    StopStream,
    StreamRow,
    StreamsStopped,
    generation,
)
from kafka_fast.control.metadata import BESIDE_BASE, COORDINATOR_BASE
from kafka_fast.control.plane import TopicSettled
from kafka_fast.errors import (
    LogTruncationError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailed,
)
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kafka_fast.protocol.apis.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafka_fast.protocol.apis.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_fast.protocol.apis.metadata import MetadataRequest, MetadataResponse
from kafka_fast.protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kafka_fast.protocol.apis.offset_for_leader_epoch import (
    EpochEndOffset as EpochEnd,
)
from kafka_fast.protocol.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.unit.control.fake_machine import FakeMachine
from tests.unit.control.metadata_answers import answer, broker, make_topic_id, topic

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NOT_LEADER = 6
OUT_OF_RANGE = 1
WALL_MS = 1_700_000_000_000


class Cluster:
    """Two scripted brokers."""

    def __init__(self) -> None:
        self.leaders = [(1, 5), (2, 7)]
        self.topic_id = make_topic_id(1)
        self.topic_error = 0
        self.offsets: dict[int, int] = {-2: 100, -1: 900}  # by timestamp
        self.offset_errors: list[int] = []  # for the next answers
        self.epoch_ends: dict[int, tuple[int, int]] = {}  # epoch -> (epoch, end offset)
        self.committed: dict[int, tuple[int, int]] = {}  # partition -> (offset, epoch)
        self.commit_errors: list[int] = []  # for the next answers to OffsetFetch

    def metadata(self, request: MetadataRequest, node_id: int) -> MetadataResponse:
        return answer(
            topic("t", self.leaders, topic_id=self.topic_id, error=self.topic_error),
            brokers=[broker(1), broker(2)],
        )

    def list_offsets(self, request: ListOffsetsRequest, node_id: int) -> ListOffsetsResponse:
        def one(part: Any) -> ListOffsetsPartitionResponse:
            leader = self.leaders[part.partition_index][0]
            code = self.offset_errors.pop(0) if self.offset_errors else 0
            return ListOffsetsPartitionResponse(
                partition_index=part.partition_index,
                error_code=code or (0 if leader == node_id % BESIDE_BASE else NOT_LEADER),
                offset=self.offsets.get(part.timestamp, -1),
            )

        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(name=t.name, partitions=[one(p) for p in t.partitions])
                for t in request.topics
            ]
        )

    def epoch_end(
        self, request: OffsetForLeaderEpochRequest, node_id: int
    ) -> OffsetForLeaderEpochResponse:
        def one(part: Any) -> EpochEnd:
            epoch, end = self.epoch_ends.get(part.leader_epoch, (-1, -1))
            return EpochEnd(partition=part.partition, leader_epoch=epoch, end_offset=end)

        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(topic=t.topic, partitions=[one(p) for p in t.partitions])
                for t in request.topics
            ]
        )

    def find_coordinator(
        self, request: FindCoordinatorRequest, node_id: int
    ) -> FindCoordinatorResponse:
        found = Coordinator(key="g", node_id=2, host="kafka", port=9092)
        return FindCoordinatorResponse(coordinators=[found])

    def offset_fetch(self, request: OffsetFetchRequest, node_id: int) -> OffsetFetchResponse:
        assert node_id == COORDINATOR_BASE + 2
        code = self.commit_errors.pop(0) if self.commit_errors else 0

        def one(partition: int) -> OffsetFetchResponsePartitions:
            offset, epoch = self.committed.get(partition, (-1, -1))
            return OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=epoch,
                metadata="",
                error_code=code,
            )

        (group,) = request.groups
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group_id=group.group_id,
                    topics=[
                        OffsetFetchResponseTopics(
                            name=topic.name, partitions=[one(p) for p in topic.partition_indexes]
                        )
                        for topic in group.topics or ()
                    ],
                )
            ]
        )


def make(cluster: Cluster, **given: object) -> FakeMachine:
    settings = consumer_settings({"bootstrap.servers": "kafka:9092"}, given)
    control = ConsumerControl(settings, "test", lambda: 0.5, lambda: WALL_MS)
    return FakeMachine(
        control,
        {
            MetadataRequest: cluster.metadata,
            ListOffsetsRequest: cluster.list_offsets,
            OffsetForLeaderEpochRequest: cluster.epoch_end,
            FindCoordinatorRequest: cluster.find_coordinator,
            OffsetFetchRequest: cluster.offset_fetch,
        },
    )


def assigned(cluster: Cluster, **given: object) -> FakeMachine:
    """Return a consumer to which both partitions are assigned, and whose streams run."""
    machine = make(cluster, **{"auto_offset_reset": "earliest", **given})
    machine.control.assign([(T0, 0), (T1, 1)], machine.now, committed=False)
    machine.run(1.0)
    return machine


def starts(machine: FakeMachine) -> dict[int, StartStream]:
    return {start.stream_id: start for start in machine.take(StartStream)}


def punt(machine: FakeMachine, stream: StartStream, at: int, code: int = 0, **data: Any) -> None:
    """Let the data plane punt an answer for partition 0 or 1."""
    nodes = data.pop("node_endpoints", [])
    body = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic_id=make_topic_id(1),
                partitions=[
                    PartitionData(partition_index=stream.stream_id, error_code=code, **data)
                ],
            )
        ],
        node_endpoints=nodes,
    )
    row = StreamRow(stream.stream_id, stream.generation, code, at, -1)
    event = FetchPunt(stream.link_id, 17, frame.encode_response(body, 17, 0)[4:], (row,))
    machine.event(event)


def test_each_partition_starts_at_its_leader_where_the_policy_says() -> None:
    machine = assigned(Cluster())
    started = starts(machine)
    assert {it.offset for it in started.values()} == {100}
    assert started[0].link_id == machine.link_to(1)
    assert started[1].link_id == machine.link_to(2)
    assert started[0].leader_epoch == 5
    assert started[0].generation == generation(0, 1)
    programs = machine.take(ProgramFetch)
    assert {program.link_id for program in programs} == {machine.link_to(1), machine.link_to(2)}
    assert all(program.version >= 13 for program in programs)


def asked(machine: FakeMachine, kind: type[Any]) -> list[int]:
    """Return over which connections such requests went since the last call."""
    found = [node for body, node in machine.asked if isinstance(body, kind)]
    machine.asked = [it for it in machine.asked if not isinstance(it[0], kind)]
    return found


def test_questions_go_beside_the_fetches_and_before_them_need_no_connection() -> None:
    machine = assigned(Cluster())
    assert sorted(asked(machine, ListOffsetsRequest)) == [1, 2], "nothing was fetched yet"
    assert max(machine.links.values()) == 2
    found: list[object] = []
    machine.control.lookup.begin({T0: -1}, found.append, machine.now)
    machine.run(0.1)
    assert [answer[T0].offset for answer in found] == [900]
    assert asked(machine, ListOffsetsRequest) == [BESIDE_BASE + 1]
    assert BESIDE_BASE + 2 not in machine.links.values(), "nobody asked node 2"
    machine.control.seek(T0, Position(150, 4), 1, machine.now)
    machine.run(0.1)
    assert asked(machine, OffsetForLeaderEpochRequest) == [BESIDE_BASE + 1]


def test_metadata_are_not_asked_for_behind_fetches() -> None:
    machine = assigned(Cluster())
    machine.close(-1)
    asked(machine, MetadataRequest)
    machine.control.want_topic("other", machine.now)
    machine.run(0.1)
    (beside,) = set(asked(machine, MetadataRequest))
    assert beside in (BESIDE_BASE + 1, BESIDE_BASE + 2)


def test_a_node_that_is_gone_takes_its_connection_for_questions_with_it() -> None:
    cluster = Cluster()
    machine = assigned(cluster)
    machine.control.lookup.begin({T0: -1}, lambda found: None, machine.now)
    machine.run(0.1)
    links = machine.control.links
    links.forget(1, "it left the cluster", machine.now)
    assert links.link_to(1) is None
    assert links.link_to(BESIDE_BASE + 1) is None
    assert links.asking_id(1) == 1


def test_topics_without_ids_are_fetched_by_name() -> None:
    cluster = Cluster()
    cluster.topic_id = bytes(16)
    machine = assigned(cluster)
    assert {program.version for program in machine.take(ProgramFetch)} == {12}


def test_by_duration_counts_back_from_now_and_falls_back_to_the_end() -> None:
    cluster = Cluster()
    cluster.offsets[WALL_MS - 60_000] = 500
    started = starts(assigned(cluster, auto_offset_reset="by_duration:PT1M"))
    assert {it.offset for it in started.values()} == {500}
    started = starts(assigned(cluster, auto_offset_reset="by_duration:PT2M"))
    assert {it.offset for it in started.values()} == {900}


def test_policy_none_is_an_error_until_the_user_seeks() -> None:
    machine = assigned(Cluster(), auto_offset_reset="none")
    assert not starts(machine)
    failed = machine.take(PartitionFailed)
    assert {it.partition for it in failed} == {T0, T1}
    machine.control.seek(T0, Position(42), 1, machine.now)
    machine.run()
    assert starts(machine)[0].offset == 42


def test_a_lookup_is_asked_again_after_errors() -> None:
    cluster = Cluster()
    cluster.offset_errors = [NOT_LEADER, 78, NOT_LEADER]
    assert set(starts(assigned(cluster))) == {0, 1}


def test_a_refused_lookup_fails_its_partition_only() -> None:
    cluster = Cluster()
    cluster.offset_errors = [29]
    machine = assigned(cluster)
    (failed,) = machine.take(PartitionFailed)
    assert isinstance(failed.error, TopicAuthorizationFailed)
    assert len(starts(machine)) == 1


def test_a_seek_outdates_the_stream_and_the_lookup_under_way() -> None:
    machine = assigned(Cluster())
    starts(machine)
    machine.control.seek(T0, Position(7), 1, machine.now)
    machine.run()
    again = starts(machine)[0]
    assert (again.offset, again.generation) == (7, generation(1, 1))
    # What the first start brings is of another life.
    machine.event(StreamsStopped((StreamRow(0, generation(0, 1), 0, 5000, -1),)))
    assert machine.control.positions.partitions[T0].position == Position(7)
    assert not starts(machine)


def test_assignment_keeps_what_stays() -> None:
    machine = assigned(Cluster())
    starts(machine)
    machine.control.assign([(T1, 1)], machine.now, committed=False)
    machine.run()
    assert machine.take(RemoveStream) == [RemoveStream(0)]
    assert not starts(machine)
    assert list(machine.control.positions.partitions) == [T1]


def test_committed_offsets_come_first_and_are_validated() -> None:
    cluster = Cluster()
    machine = make(cluster, group_id="g", auto_offset_reset="earliest")
    cluster.commit_errors = [14, 88]  # loading, then unstable
    cluster.committed[0] = (250, 4)
    cluster.epoch_ends[4] = (4, 300)
    machine.control.assign([(T0, 0), (T1, 1)], machine.now, committed=True)
    machine.run(0.05)
    assert machine.control.positions.without_committed() == [T0, T1]
    assert not starts(machine)
    machine.run(2.0)
    assert {id_: it.offset for id_, it in starts(machine).items()} == {0: 250, 1: 100}


def test_a_truncated_log_is_read_from_where_it_was_cut() -> None:
    cluster = Cluster()
    cluster.epoch_ends[4] = (3, 180)
    cluster.committed[0] = (250, 4)
    machine = make(cluster, group_id="g", auto_offset_reset="earliest")
    machine.control.assign([(T0, 0)], machine.now, committed=True)
    machine.run(1.0)
    assert machine.take(Reposition) == [Reposition(T0, 0, 180, 3)]
    assert not starts(machine)  # the user's thread seeks there, which drops what it has


def test_truncation_with_policy_none_is_the_users_to_decide() -> None:
    cluster = Cluster()
    cluster.epoch_ends[4] = (3, 180)
    cluster.committed[0] = (250, 4)
    machine = make(cluster, group_id="g", auto_offset_reset="none")
    machine.control.assign([(T0, 0)], machine.now, committed=True)
    machine.run(1.0)
    (failed,) = machine.take(PartitionFailed)
    assert isinstance(failed.error, LogTruncationError)
    assert (failed.error.offset, failed.error.position) == (180, 250)


def test_an_epoch_that_the_leader_does_not_know_is_no_truncation() -> None:
    cluster = Cluster()
    cluster.committed[0] = (250, 4)
    machine = make(cluster, group_id="g")
    machine.control.assign([(T0, 0)], machine.now, committed=True)
    machine.run(1.0)
    assert starts(machine)[0].offset == 250


def test_a_new_leader_is_read_from_where_the_old_one_ended() -> None:
    cluster = Cluster()
    machine = assigned(cluster)
    first = starts(machine)[0]
    cluster.leaders[0] = (2, 6)
    cluster.epoch_ends[5] = (5, 2000)
    punt(machine, first, 400, NOT_LEADER)
    machine.run(2.0)
    again = starts(machine)[0]
    assert again.link_id == machine.link_to(2)
    assert (again.offset, again.leader_epoch) == (400, 6)


def test_a_running_stream_is_stopped_before_it_moves_and_validated_after() -> None:
    cluster = Cluster()
    machine = assigned(cluster)
    starts(machine)
    cluster.leaders[0] = (2, 6)
    cluster.epoch_ends[5] = (5, 2000)
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    (stop,) = machine.take(StopStream)
    assert not starts(machine)
    machine.event(StreamsStopped((StreamRow(0, stop.generation, 0, 650, 5),)))
    machine.run(1.0)
    asked = [it for it, _ in machine.asked if isinstance(it, OffsetForLeaderEpochRequest)]
    assert [it.topics[0].partitions[0].leader_epoch for it in asked] == [5]
    again = starts(machine)[0]
    assert (again.offset, again.link_id) == (650, machine.link_to(2))


def test_leader_hints_save_a_metadata_request() -> None:
    cluster = Cluster()
    machine = assigned(cluster)
    first = starts(machine)[0]
    before = len([it for it, _ in machine.asked if isinstance(it, MetadataRequest)])
    cluster.leaders[0] = (2, 6)
    punt(
        machine,
        first,
        400,
        NOT_LEADER,
        current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=6),
        node_endpoints=[NodeEndpoint(node_id=2, host="kafka", port=9092)],
    )
    again = starts(machine)[0]
    assert (again.offset, again.link_id) == (400, machine.link_to(2))
    after = len([it for it, _ in machine.asked if isinstance(it, MetadataRequest)])
    assert after == before


def test_a_lost_link_is_begun_anew() -> None:
    machine = assigned(Cluster())
    first = starts(machine)[0]
    machine.event(StreamsStopped((StreamRow(0, first.generation, 0, 333, -1),)))
    machine.close(1)
    machine.run(3.0)
    again = starts(machine)[0]
    assert (again.offset, again.generation) == (333, generation(0, again.generation & 0xFFFF))
    assert again.generation > first.generation


def test_the_preferred_replica_serves_until_it_fails() -> None:
    machine = assigned(Cluster())
    first = starts(machine)[0]
    punt(machine, first, 100, preferred_read_replica=2)
    at_replica = starts(machine)[0]
    assert (at_replica.link_id, at_replica.offset) == (machine.link_to(2), 100)
    punt(machine, at_replica, 120, OUT_OF_RANGE)
    at_leader = starts(machine)[0]
    assert (at_leader.link_id, at_leader.offset) == (machine.link_to(1), 120)


def test_out_of_range_at_the_leader_follows_the_policy() -> None:
    machine = assigned(Cluster())
    first = starts(machine)[0]
    punt(machine, first, 5000, OUT_OF_RANGE)
    machine.run(1.0)
    assert starts(machine)[0].offset == 100
    machine = assigned(Cluster(), auto_offset_reset="none")
    machine.control.seek(T0, Position(5000), 1, machine.now)
    machine.run()
    machine.take(PartitionFailed)
    punt(machine, starts(machine)[0], 5000, OUT_OF_RANGE)
    (failed,) = machine.take(PartitionFailed)
    assert isinstance(failed.error, OffsetOutOfRangeError)
    assert (failed.error.offset, failed.seeks) == (5000, 1)
    assert machine.control.positions.partitions[T0].phase is Phase.FAILED


def test_a_diverging_epoch_is_a_truncation() -> None:
    machine = assigned(Cluster())
    first = starts(machine)[0]
    punt(machine, first, 400, diverging_epoch=EpochEndOffset(epoch=4, end_offset=350))
    assert machine.take(Reposition) == [Reposition(T0, 0, 350, 4)]


@pytest.mark.parametrize(
    "answer",
    [{"diverging_epoch": EpochEndOffset(epoch=4, end_offset=350)}, {"code": OUT_OF_RANGE}],
    ids=["truncated", "out of range"],
)
def test_a_broker_that_always_says_the_log_does_not_hold_the_position_is_asked_slowly(
    answer: dict[str, Any],
) -> None:
    """Regression: asked anew at once each time, without end."""
    machine = assigned(Cluster())
    partition = machine.control.positions.partitions[T0]
    times = []
    for _ in range(5):
        before = machine.now
        punt(machine, starts(machine)[0], 400, **answer)
        while not any(isinstance(it, StartStream) for it in machine.kept):
            for news in machine.take(Reposition):  # the user's thread seeks there
                place = Position(news.offset, news.epoch)
                machine.control.seek(T0, place, partition.seeks + 1, machine.now)
            machine.run(0.01)
        times.append(machine.now - before)
    assert times[0] < 0.05
    assert times[-1] > 3 * times[1] > 0.05


def test_a_refused_topic_is_told_and_tried_again() -> None:
    machine = assigned(Cluster())
    punt(machine, starts(machine)[0], 100, 29)
    (failed,) = machine.take(PartitionFailed)
    assert isinstance(failed.error, TopicAuthorizationFailed)
    machine.run(2.0)
    assert starts(machine)[0].offset == 100


def test_errors_in_a_row_are_paced() -> None:
    machine = assigned(Cluster())
    times = []
    for _ in range(5):
        before = machine.now
        punt(machine, starts(machine)[0], 100, 78)
        while not any(isinstance(it, StartStream) for it in machine.kept):
            machine.run(0.01)
        times.append(machine.now - before)
    assert times[-1] > 3 * times[0] > 0.05


@pytest.mark.parametrize(("policy", "offset"), [("earliest", 3), ("latest", 3)])
def test_a_topic_made_anew_loses_no_record(policy: str, offset: int) -> None:
    cluster = Cluster()
    machine = assigned(cluster, auto_offset_reset=policy)
    first = starts(machine)
    cluster.topic_id = make_topic_id(2)
    cluster.leaders = [(1, 0), (2, 0)]
    cluster.offsets = {-2: 3, -1: 9}
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    told = machine.take(Recreated)
    assert [it.partition for it in told] == [T0, T1]
    for it in told:
        machine.control.begin_again(it.partition, it.seeks + 1, machine.now)
    machine.run(1.0)
    again = starts(machine)
    assert {it.offset for it in again.values()} == {offset}
    assert all(again[id_].generation > first[id_].generation for id_ in again)


def test_what_was_read_of_a_topic_that_is_gone_is_not_committed_for_the_next_one() -> None:
    """Regression: until the new topic had a position, the old one's was committed under its id."""
    cluster = Cluster()
    machine = assigned(cluster, group_id="g")
    commits: list[Any] = []
    group: Any = machine.control.group
    group.commits.commit = lambda offsets, done, now, **given: commits.append(offsets)
    both = {T0: OffsetAndMetadata(5), T1: OffsetAndMetadata(6)}

    def commit() -> Any:
        machine.control.commit(
            both, print, machine.now, deadline=machine.now + 9, as_member=True, is_last=False
        )
        return commits.pop()

    assert commit() == both
    cluster.topic_id = make_topic_id(2)
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    assert commit() == {}
    machine.control.begin_again(T1, 1, machine.now)
    assert commit() == {T1: both[T1]}
    machine.control.begin_again(T0, 1, machine.now)
    assert commit() == both


def test_waiting_for_a_topic() -> None:
    cluster = Cluster()
    machine = make(cluster)
    machine.control.want_topic("t", machine.now)
    machine.run(1.0)
    assert machine.take(TopicSettled) == [TopicSettled("t", None)]
    cluster.topic_error = 29
    machine = make(cluster)
    machine.control.want_topic("t", machine.now)
    machine.run(1.0)
    (known,) = machine.take(TopicSettled)
    assert isinstance(known.error, TopicAuthorizationFailed)


def test_the_users_question() -> None:
    cluster = Cluster()
    machine = make(cluster)
    found: list[Any] = []
    machine.control.lookup.begin({T0: -2, T1: -1}, found.append, machine.now)
    machine.run(1.0)
    assert {partition: it.offset for partition, it in found[0].items()} == {T0: 100, T1: 900}
