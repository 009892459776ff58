"""How long the control thread is busy at a stretch, with many topics and partitions.

    pytest -s bench/micro/micro_control.py

The rows are what happens to a consumer with 20,000 partitions, and to clients that know 10,000
topics with 10 partitions each. `turns` is how often the thread came back to its loop, where it
looks for events, sockets and calls of users; `longest` is the longest turn, in CPU time of the
thread. No turn may be longer than LIMIT. (What a scripted cluster answers is made between turns.)
"""

from __future__ import annotations

import gc
import re
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

from kafka_fast.config import consumer_settings, producer_settings
from kafka_fast.consumer.consumer_core import ConsumerCore
from kafka_fast.control.connections.connection_key import Role
from kafka_fast.control.consumer.consumer_messages import StreamRow, StreamsStopped
from kafka_fast.control.consumer.partition import FetchState
from kafka_fast.control.group.member import Subscription
from kafka_fast.control.messages import (
    CloseLink,
    CloseReason,
    LinkClosed,
    OpenLink,
    RawResponse,
    ResolveHost,
    SendRaw,
)
from kafka_fast.control.producer.producer_messages import RouteWanted
from kafka_fast.net.process import process_life
from kafka_fast.net.threaded_host import ThreadedHost
from kafka_fast.producer.producer_core import ProducerCore
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsRequest
from kafka_fast.types import OffsetAndMetadata
from tests.unit.control.fake_machine import all_versions
from tests.unit.control.metadata.large_cluster import LargeCluster

LIMIT = 0.05
"""Seconds that the control thread may be busy at a stretch."""


class QuietHost(ThreadedHost):
    """A host without threads: the benchmark gives the turns."""

    is_current = False

    def start(self, client: object, plane: object) -> None:
        """Start nothing."""

    def wake(self) -> None:
        """Wake nobody."""

    def stop(self, patience: float | None = None) -> bool:
        """Stop nothing."""
        return True


class Answering:
    """Mixed into a core: its connections open, and its requests are answered, between turns."""

    arrivals: deque[Callable[[float], None]]
    requests: deque[SendRaw]  # not answered yet
    links: dict[int, OpenLink]
    cluster: LargeCluster
    control: Any

    def carry_out(self, command: object, now: float) -> None:
        """Carry out what is for the network."""
        match command:
            case ResolveHost(owner, host, _):
                connections = self.control.connections
                self.arrivals.append(
                    lambda now: connections.handle_resolved(owner, host, ("127.0.0.1",), now)
                )
            case OpenLink(link_id):
                self.links[link_id] = command
                self.arrivals.append(
                    lambda now: self.control.connections.handle_connected(link_id, now)
                )
            case CloseLink(link_id):
                self.cut(link_id, CloseReason.BY_US)
            case SendRaw():
                self.requests.append(command)
            case _:
                pass  # for the data plane and users' threads; a turn has a limit for commands

    def cut(self, link_id: int, reason: CloseReason) -> None:
        """Close a link."""
        if self.links.pop(link_id, None) is not None:
            event = LinkClosed(link_id, reason, 0)
            self.arrivals.append(lambda now: self.control.handle_event(event, now))

    def answer(self, command: SendRaw) -> Callable[[float], None]:
        """Return what brings the answer to a request."""
        header, request = frame.decode_request(command.frame[4:])
        if isinstance(request, ApiVersionsRequest):
            answer: Any = all_versions()
        else:
            handler = self.cluster.handlers.get(type(request))
            if handler is None:
                return lambda now: None  # JoinGroup: no member is needed here
            answer = handler(request, self.links[command.link_id].key)
        data = frame.encode_response(answer, header.version, 0)[4:]
        event = RawResponse(command.link_id, command.token, data, 0)
        return lambda now: self.control.handle_event(event, now)


class AnsweredConsumer(Answering, ConsumerCore):
    """A consumer's core before a scripted cluster."""


class AnsweredProducer(Answering, ProducerCore):
    """A producer's core before a scripted cluster."""


class Row:
    """What a benchmark measures: one thing that happens, and the turns until all is settled."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.turns: list[float] = []

    def do(self, what: Callable[[float], object]) -> None:
        """Have something done in the next turn, as a user's call or an event of the data plane."""
        self.core.call(what)

    def run(self, is_over: Callable[[], bool]) -> None:
        """Give turns until something holds and nothing is to be done."""
        core = self.core
        while True:
            now = time.monotonic()
            before = time.thread_time()
            core.turn(now)
            deadline = core.next_deadline()
            self.turns.append(time.thread_time() - before)
            core.arrivals.extend(core.answer(command) for command in core.requests)
            core.requests.clear()
            is_idle = not core.arrivals
            while core.arrivals:
                core.call(core.arrivals.popleft())
            if is_idle and deadline > now:
                if is_over():
                    return
                time.sleep(max(0.0, min(deadline - time.monotonic(), 1.0)))


def make(kind: Any, cluster: LargeCluster, settings: Any) -> Any:
    """Return a core of this kind, without threads."""
    kind.cluster, kind.links = cluster, {}
    kind.arrivals, kind.requests = deque(), deque()
    return kind(settings, "bench", QuietHost(settings))


SERVERS = {"bootstrap.servers": "kafka:9001"}


def make_consumer(cluster: LargeCluster) -> AnsweredConsumer:
    """Return a consumer with a group."""
    config = {**SERVERS, "group.id": "g", "auto.offset.reset": "earliest"}
    core: AnsweredConsumer = make(AnsweredConsumer, cluster, consumer_settings(config))
    return core


def states(core: AnsweredConsumer) -> set[FetchState]:
    """Return the states in which partitions are."""
    return {partition.state for partition in core.control.partitions}


def stop_streams(core: AnsweredConsumer, link_id: int) -> StreamsStopped:
    """Return what the data plane tells of the streams on a link."""
    return StreamsStopped(
        tuple(
            StreamRow(partition.stream_id, partition.generation, 0, 50, 5)
            for partition in core.control.partitions
            if partition.link_id == link_id
        )
    )


Scenario = Callable[[AnsweredConsumer, LargeCluster, Row], Callable[[], bool]]
"""Has something happen; returns what tells that all is settled."""


def all_fetch(core: AnsweredConsumer) -> Callable[[], bool]:
    """Return what tells whether all partitions are fetched."""
    return lambda: states(core) == {FetchState.FETCHING}


def assign(core: AnsweredConsumer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """All partitions are assigned, and start at committed offsets."""
    streams = [(partition, number) for number, partition in enumerate(cluster.partitions())]
    row.do(lambda now: core.control.assign(streams, now, committed=True))
    return all_fetch(core)


def refresh(core: Any, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """Metadata are refreshed, and nothing has changed."""
    known, last = core.control.cluster, cluster.topics[-1]
    before = known.answers(last)
    row.do(lambda now: known.request_refresh("the benchmark"))
    return lambda: known.answers(last) > before and not known.is_merging


def move_leaders(core: AnsweredConsumer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """A refresh tells that all leaders have moved; the streams stop and start again."""
    cluster.turn += 1
    links = {partition.link_id for partition in core.control.partitions}
    refresh(core, cluster, row)
    row.run(lambda: states(core) == {FetchState.STOPPING})
    for link_id in links:
        row.do(partial(core.control.handle_event, stop_streams(core, link_id)))
    return all_fetch(core)


def name_leaders(core: AnsweredConsumer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """Fetch answers tell that all leaders have moved, and name the new ones (KIP-951)."""
    cluster.turn += 1
    by_link: dict[int, list[Any]] = {}
    for assigned in core.control.partitions:
        by_link.setdefault(assigned.link_id, []).append(assigned)
    for link_id, streams in by_link.items():
        punt = cluster.refuse_as_not_leader(streams, link_id)
        row.do(partial(core.control.handle_event, punt))
    return all_fetch(core)


def lose_links(core: AnsweredConsumer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """All connections break, and are made again."""
    for link_id, command in list(core.links.items()):
        if command.key.role is Role.DATA:
            core.cut(link_id, CloseReason.EOF)
            row.do(partial(core.control.handle_event, stop_streams(core, link_id)))
    return all_fetch(core)


def commit(core: AnsweredConsumer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """All offsets are committed."""
    outcome: list[object] = []
    offsets = {partition: OffsetAndMetadata(70) for partition in cluster.partitions()}
    row.do(
        lambda now: core.control.commit(
            offsets, outcome.append, now, deadline=now + 60, as_member=False, is_last=False
        )
    )
    return lambda: outcome == [None]


def committed(core: AnsweredConsumer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """All committed offsets are read."""
    outcome: list[Any] = []
    group, partitions = core.control.group, cluster.partitions()
    assert group is not None
    row.do(lambda now: group.committed.fetch(partitions, outcome.append))
    return lambda: bool(outcome) and len(outcome[0]) == len(partitions)


def end_offsets(core: AnsweredConsumer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """The ends of all partitions are looked up."""
    outcome: list[Any] = []
    timestamps = dict.fromkeys(cluster.partitions(), -1)
    row.do(lambda now: core.control.lookup.look_up(timestamps, outcome.append, now))
    return lambda: bool(outcome) and len(outcome[0]) == len(timestamps)


def recreate(core: AnsweredConsumer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """All topics are deleted and created again; the user's thread begins again with each."""
    cluster.incarnation += 1
    refresh(core, cluster, row)
    row.run(lambda: states(core) == {FetchState.RECREATED})
    for assigned in core.control.partitions:
        row.do(partial(core.control.begin_again, assigned.partition, assigned.seeks + 1))
    return all_fetch(core)


def delete(core: AnsweredConsumer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """All topics are deleted."""
    cluster.are_gone = True
    refresh(core, cluster, row)
    return lambda: all(core.control.cluster.is_absent(topic) for topic in cluster.topics)


def bring_back(core: AnsweredConsumer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """All topics are back."""
    cluster.are_gone = False
    return lambda: not any(core.control.cluster.error(topic) for topic in cluster.topics)


def give_up(core: AnsweredConsumer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """No partition is assigned any more."""
    row.do(lambda now: core.control.assign([], now, committed=False))
    return lambda: not states(core)


CONSUMER: tuple[Scenario, ...] = (
    assign,
    refresh,
    move_leaders,
    name_leaders,
    lose_links,
    commit,
    committed,
    end_offsets,
    recreate,
    delete,
    bring_back,
    give_up,
)


def subscribe(core: AnsweredConsumer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """A pattern matches all topics."""
    pattern = Subscription(pattern=re.compile("topic-.*"))
    row.do(lambda now: core.control.subscribe(pattern, now))
    return lambda: core.control.cluster.partition_count(cluster.topics[-1]) is not None


def want(core: AnsweredProducer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """A user sends to all topics, one after the other."""
    for topic in cluster.topics:
        row.do(partial(core.control.want_topic, topic))
    return lambda: not core.control.awaited


def route(core: AnsweredProducer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """All partitions have their first records."""
    event = RouteWanted(tuple(core.control.routes.queue_ids))
    row.do(partial(core.control.handle_event, event))
    return lambda: not any(True for _ in core.control.routes.without_link())


def move_routes(core: AnsweredProducer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """A refresh tells that all leaders have moved."""
    cluster.turn += 1
    return refresh(core, cluster, row)


def recreate_routes(core: AnsweredProducer, cluster: LargeCluster, row: Row) -> Callable[[], bool]:
    """All topics are deleted and created again."""
    cluster.incarnation += 1
    return refresh(core, cluster, row)


def measure(core: Any, cluster: LargeCluster, scenarios: Iterable[Callable[..., Any]]) -> str:
    """Let things happen one after the other; return a table of them, and of long turns."""
    lines, too_long = [], []
    gc.disable()  # its pauses depend on all objects of the process, and begin in any thread
    for scenario in scenarios:
        row = Row(core)
        row.run(scenario(core, cluster, row))
        longest = max(row.turns)
        lines.append(
            f"{(scenario.__doc__ or '').rstrip('.'):84} {len(row.turns):5} turns "
            f"{1000 * sum(row.turns):7.0f} ms   longest {1000 * longest:5.1f} ms"
        )
        if longest > LIMIT:
            too_long.append(lines[-1])
    gc.enable()
    print("", *lines, sep="\n")
    return "\n".join(too_long)


def test_a_consumer_of_20_000_partitions() -> None:
    """2,000 topics with 10 partitions each."""
    cluster = LargeCluster(2000, 10)
    core = make_consumer(cluster)
    assert measure(core, cluster, CONSUMER) == ""
    core.close()


def test_a_pattern_that_matches_10_000_topics() -> None:
    """10 partitions each."""
    cluster = LargeCluster(10_000, 10)
    core = make_consumer(cluster)
    assert measure(core, cluster, (subscribe, refresh)) == ""
    core.close()


@pytest.mark.parametrize(
    ("topics", "scenarios"),
    [(10_000, (want, refresh, recreate_routes)), (2_000, (want, route, move_routes))],
)
def test_a_producer(topics: int, scenarios: tuple[Callable[..., Any], ...]) -> None:
    """10 partitions each: 10,000 topics that are known, and 2,000 that all have records."""
    cluster = LargeCluster(topics, 10)
    config = {**SERVERS, "enable.idempotence": False}
    core = make(AnsweredProducer, cluster, producer_settings(config))
    assert measure(core, cluster, scenarios) == ""
    process_life.discard(core)
