"""The producer's control plane between its records: deadlines, topics, fatal errors."""

from __future__ import annotations

import math
from typing import TypeVar

from kafka_fast.config import producer_settings
from kafka_fast.control.connections.connection_key import BOOTSTRAP
from kafka_fast.control.connections.connections import BEGUN_AT_ONCE, PACE
from kafka_fast.control.messages import (
    CloseLink,
    CloseReason,
    LinkClosed,
    OpenLink,
    RawResponse,
    ResolveHost,
    SendRaw,
)
from kafka_fast.control.producer.producer_control import ProducerControl
from kafka_fast.control.producer.producer_messages import (
    FailQueue,
    ProgramProduce,
    RefuseRecords,
    RestartTopic,
    RouteQueue,
    RouteWanted,
    SetProducerId,
)
from kafka_fast.control.producer.verdicts import ProducerIdentity
from kafka_fast.errors import UnsupportedVersionError
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersion, ApiVersionsResponse
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse
from tests.unit.control.metadata.metadata_answers import answer, broker, topic


def make_control() -> ProducerControl:
    settings = producer_settings({"bootstrap.servers": "one:9092"})
    return ProducerControl(settings, "test", lambda: 0.5, lambda: 0)


def tell(control: ProducerControl, found: MetadataResponse, version: int, now: float) -> None:
    """Let an answer to the metadata request in flight arrive."""
    control.discovery.apply(control.cluster.handle_response(found, now, version), now)


def test_the_control_thread_sleeps_while_a_connection_for_metadata_is_under_way() -> None:
    """A request for metadata that waits for a link is no reason to wake up again and again."""
    control = make_control()
    control.want_topic("topic", 1.0)
    control.tick(1.0)
    resolve = control.poll_command()
    assert isinstance(resolve, ResolveHost)
    assert control.next_deadline() == resolve.deadline > 2.0
    control.connections.handle_resolved(resolve.owner, "one", ("10.0.0.1",), 1.5)
    opened = control.poll_command()
    assert isinstance(opened, OpenLink)
    control.tick(1.5)
    assert control.next_deadline() == opened.deadline > 2.0


def test_after_a_refused_connection_the_control_thread_sleeps_for_the_backoff() -> None:
    control = make_control()
    control.want_topic("topic", 1.0)
    control.tick(1.0)
    control.connections.handle_resolved(BOOTSTRAP, "one", ("10.0.0.1",), 1.0)
    commands = [control.poll_command(), control.poll_command()]
    opened = next(command for command in commands if isinstance(command, OpenLink))
    control.connections.handle_connect_failed(opened.link_id, ConnectionRefusedError(), 1.0)
    control.tick(1.0)
    assert 1.0 < control.next_deadline() < math.inf


def test_a_topic_that_a_caller_waits_for_is_not_forgotten() -> None:
    settings = producer_settings({"bootstrap.servers": "one:9092", "metadata.max.idle.ms": 5000})
    control = ProducerControl(settings, "test", lambda: 0.5, lambda: 0)
    control.want_topic("topic", 1.0)
    for second in range(2, 60):
        control.touch_topics([], float(second))
        control.tick(float(second))
    request = control.cluster.poll_request(60.0)
    assert request is not None
    assert [topic.name for topic in request.topics or ()] == ["topic"]


def test_a_topic_whose_records_wait_for_a_link_is_not_forgotten() -> None:
    """Regression: metadata.max.idle.ms after its last record, nobody asked for its leader again."""
    settings = producer_settings({"bootstrap.servers": "one:9092", "metadata.max.idle.ms": 5000})
    control = ProducerControl(settings, "test", lambda: 0.5, lambda: 0)
    control.want_topic("topic", 1.0)
    control.cluster.poll_request(1.0)
    tell(control, answer(topic("topic"), brokers=[broker(1, "10.0.0.1")]), 12, 1.0)
    control.handle_event(RouteWanted((0,)), 1.0)
    for second in range(2, 60):
        control.touch_topics([], float(second))
        control.tick(float(second))
        request = control.cluster.poll_request(float(second))
        if request is not None:
            assert [topic.name for topic in request.topics or ()] == ["topic"]
            metadata = answer(topic("topic"), brokers=[broker(1, "10.0.0.1")])
            tell(control, metadata, 12, float(second))
    assert control.cluster.partition_count("topic") == 1


def links_to_open(control: ProducerControl) -> list[OpenLink]:
    """Take the commands that are there; return the links to open."""
    commands = iter(control.poll_command, None)
    return [command for command in commands if isinstance(command, OpenLink)]


def test_a_leader_that_refuses_does_not_keep_metadata_from_being_asked_of_others() -> None:
    """Regression: what waited for its backoff counted as a connection under way, forever."""
    control = make_control()
    control.want_topic("topic", 1.0)
    control.cluster.poll_request(1.0)
    brokers = [broker(1, "10.0.0.1"), broker(2, "10.0.0.2")]
    tell(control, answer(topic("topic"), brokers=brokers), 12, 1.0)
    control.handle_event(RouteWanted((0,)), 1.0)
    control.tick(1.0)
    (to_leader,) = [link for link in links_to_open(control) if link.key.node_id == 1]
    control.connections.handle_connect_failed(to_leader.link_id, ConnectionRefusedError(), 1.0)
    for now in (1.5, 1.51, 2.5, 2.51):
        control.tick(now)
        links = links_to_open(control)
        if any(link.key.node_id == 2 for link in links):
            return
        for link in links:
            control.connections.handle_connect_failed(link.link_id, ConnectionRefusedError(), now)
    raise AssertionError("node 2 was never asked")


C = TypeVar("C")


def take(control: ProducerControl, kind: type[C]) -> list[C]:
    """Take the commands that are there; return those of one kind."""
    commands = iter(control.poll_command, None)
    return [command for command in commands if isinstance(command, kind)]


def connect(control: ProducerControl, node_id: int, now: float, produce: tuple[int, int]) -> int:
    """Let the link to a node that is being opened become ready; return its id."""
    (opened,) = [link for link in take(control, OpenLink) if link.key.node_id == node_id]
    control.connections.handle_connected(opened.link_id, now)
    (asked,) = [one for one in take(control, SendRaw) if one.link_id == opened.link_id]
    keys = [
        ApiVersion(api_key=0, min_version=produce[0], max_version=produce[1]),
        ApiVersion(api_key=3, min_version=0, max_version=12),
        ApiVersion(api_key=18, min_version=0, max_version=4),
    ]
    header, _ = frame.decode_request(asked.frame[4:])
    body = ApiVersionsResponse(api_keys=keys)
    data = frame.encode_response(body, header.version, header.correlation_id)[4:]
    control.handle_event(RawResponse(opened.link_id, asked.token, data, 0), now)
    return opened.link_id


def with_leader(*, topic_id: bytes = bytes(16)) -> ProducerControl:
    """A control plane that knows one topic, led by node 1, and connects to it."""
    control = make_control()
    control.want_topic("topic", 1.0)
    control.cluster.poll_request(1.0)
    metadata = answer(topic("topic", topic_id=topic_id), brokers=[broker(1, "10.0.0.1")])
    tell(control, metadata, 12, 1.0)
    control.handle_event(RouteWanted((0,)), 1.0)
    control.tick(1.0)
    return control


def test_a_link_that_cannot_carry_produce_requests_is_closed_and_the_reason_raised() -> None:
    """Regression: it stayed ready, and queues were routed to it."""
    control = with_leader()
    link_id = connect(control, 1, 1.0, produce=(90, 99))
    commands = list(iter(control.poll_command, None))
    assert CloseLink(link_id) in commands
    (refuse,) = [command for command in commands if isinstance(command, RefuseRecords)]
    assert isinstance(refuse.error, UnsupportedVersionError)
    assert "node 1" in str(refuse.error)
    assert FailQueue(0, 0) in commands, "records that wait fail with the same error"
    assert control.causes.of_stop() is refuse.error
    assert list(control.links.ready) == []
    control.handle_event(LinkClosed(link_id, CloseReason.BY_US, 0), 1.1)
    control.tick(60.0)
    assert take(control, OpenLink) == [], "nothing is sent any more, so nothing is connected"


def test_links_follow_when_a_topic_without_an_id_comes_and_when_it_gets_one() -> None:
    control = with_leader(topic_id=b"i" * 16)
    link_id = connect(control, 1, 1.0, produce=(3, 13))

    def versions() -> list[int]:
        return [command.version for command in take(control, ProgramProduce)]

    assert versions() == [13]
    brokers = [broker(1, "10.0.0.1")]
    control.want_topic("old", 2.0)
    control.cluster.poll_request(2.0)
    tell(control, answer(topic("old"), brokers=brokers), 9, 2.0)
    assert versions() == [12]
    control.cluster.request_refresh("upgraded", "old")
    control.cluster.poll_request(60.0)
    named = answer(topic("old", topic_id=b"j" * 16), brokers=brokers)
    tell(control, named, 12, 60.0)
    assert versions() == [13]
    assert control.links.link(link_id) is not None


def test_links_to_many_leaders_are_begun_a_few_at_a_time_and_each_once() -> None:
    control = make_control()
    control.want_topic("topic", 1.0)
    control.cluster.poll_request(1.0)
    brokers = [broker(node_id, f"10.0.0.{node_id}") for node_id in range(1, 11)]
    leaders = [(node_id, 0) for node_id in range(1, 11)]
    tell(control, answer(topic("topic", leaders), brokers=brokers), 12, 1.0)
    control.handle_event(RouteWanted(tuple(range(10))), 1.0)
    begun: list[int] = []
    now = 1.0
    while len(begun) < 10:
        assert now < 1.0 + 10 * PACE
        control.tick(now)
        new = [link.key.node_id for link in links_to_open(control)]
        assert 0 < len(new) <= BEGUN_AT_ONCE
        begun += new
        now = control.next_deadline()
    control.tick(now)
    assert links_to_open(control) == []
    assert sorted(begun) == list(range(1, 11))


def test_a_link_that_could_not_be_made_is_made_again_while_records_need_it() -> None:
    control = with_leader()
    tries = 0
    now = 1.0
    while tries < 3:
        control.tick(now)
        for link in links_to_open(control):
            if link.key.node_id == 1:
                tries += 1
                failed = ConnectionRefusedError()
                control.connections.handle_connect_failed(link.link_id, failed, now)
                control.tick(now)
        now = control.next_deadline()
        assert now < 10.0


# ---- topics that are deleted and created again ----

BROKERS = [broker(1, "10.0.0.1"), broker(2, "10.0.0.2")]
ONE, OTHER = b"i" * 16, b"j" * 16


def ask_and_tell(control: ProducerControl, found: MetadataResponse, now: float) -> None:
    """Refresh the metadata."""
    control.cluster.request_refresh("test")
    control.cluster.poll_request(now)
    tell(control, found, 12, now)


def routed() -> tuple[ProducerControl, int, int]:
    """A control plane whose topic is led by node 1, and its links to both nodes."""
    control = make_control()
    control.want_topic("topic", 1.0)
    control.cluster.poll_request(1.0)
    leaders = [(1, 7), (2, 7)]
    tell(control, answer(topic("topic", leaders, topic_id=ONE), brokers=BROKERS), 12, 1.0)
    control.handle_event(RouteWanted((0, 1)), 1.0)
    control.tick(1.0)
    opened = {link.key.node_id: link for link in take(control, OpenLink)}
    links = []
    for node_id in (1, 2):
        control._commands.append(opened[node_id])
        links.append(connect(control, node_id, 1.0, produce=(3, 13)))
    return control, *links


def routing(control: ProducerControl) -> list[object]:
    commands = iter(control.poll_command, None)
    return [command for command in commands if isinstance(command, RestartTopic | RouteQueue)]


def test_a_topic_that_was_created_again_is_sent_to_its_new_leaders() -> None:
    """Regression: only leaders that had moved were followed, and here all of them are new."""
    control, first, second = routed()
    take(control, RouteQueue)
    again = answer(topic("topic", [(2, 0), (1, 0)], topic_id=OTHER), brokers=BROKERS)
    ask_and_tell(control, again, 2.0)
    assert routing(control) == [RestartTopic("topic"), RouteQueue(0, second), RouteQueue(1, first)]


def test_a_topic_that_was_forgotten_for_idleness_may_come_back_as_another() -> None:
    control, _, second = routed()
    take(control, RouteQueue)
    for now in (400.0, 401.0):  # after metadata.max.idle.ms, and after the answer
        ask_and_tell(control, answer(brokers=BROKERS), now)
    assert control.cluster.partition_count("topic") is None
    control.cluster.want_topic("topic", 402.0)
    again = answer(topic("topic", [(2, 0), (2, 0)], topic_id=OTHER), brokers=BROKERS)
    ask_and_tell(control, again, 402.0)
    assert routing(control) == [RestartTopic("topic"), RouteQueue(0, second)]


def test_a_topic_without_an_id_that_was_gone_may_be_another() -> None:
    control = with_leader()
    gone = answer(topic("topic", [], error=3), brokers=BROKERS)
    ask_and_tell(control, gone, 2.0)
    assert take(control, RestartTopic) == []
    ask_and_tell(control, answer(topic("topic"), brokers=BROKERS), 9.0)
    assert take(control, RestartTopic) == [RestartTopic("topic")]


def test_another_cluster_gives_another_producer_id() -> None:
    """In the new cluster the old id may be that of another producer."""
    control, *_ = routed()
    control.identity.handle_done("", ProducerIdentity(7, 0), 1.0)
    take(control, SetProducerId)
    control.discovery.rebootstrap("test", 2.0)
    control.cluster.poll_request(2.0)
    again = topic("topic", [(1, 0), (1, 0)], topic_id=OTHER)
    tell(control, answer(again, brokers=BROKERS, cluster_id="d"), 12, 2.0)
    assert control.identity.identity is None
    commands = list(iter(control.poll_command, None))
    assert SetProducerId(-1, -1) in commands
    assert RestartTopic("topic") in commands
