"""The producer's control plane between its records: deadlines, topics, fatal errors."""

from __future__ import annotations

import math

from kafka_fast.config import producer_settings
from kafka_fast.control.plane import OpenLink, ResolveHost, RouteWanted
from kafka_fast.control.producer.control import ProducerControl
from tests.unit.control.metadata_answers import answer, broker, topic


def make_control() -> ProducerControl:
    settings = producer_settings({"bootstrap.servers": "one:9092"})
    return ProducerControl(settings, "test", lambda: 0.5)


def test_the_control_thread_sleeps_while_a_connection_for_metadata_is_under_way() -> None:
    """A request for metadata that waits for a link is no reason to wake up again and again."""
    control = make_control()
    control.want_topic("topic", 1.0)
    control.tick(1.0)
    resolve = control.poll_command()
    assert isinstance(resolve, ResolveHost)
    assert control.next_deadline() == resolve.deadline > 2.0
    control.links.handle_resolved(resolve.owner, "one", ("10.0.0.1",), 1.5)
    opened = control.poll_command()
    assert isinstance(opened, OpenLink)
    control.tick(1.5)
    assert control.next_deadline() == opened.deadline > 2.0


def test_after_a_refused_connection_the_control_thread_sleeps_for_the_backoff() -> None:
    control = make_control()
    control.want_topic("topic", 1.0)
    control.tick(1.0)
    control.links.handle_resolved("-1", "one", ("10.0.0.1",), 1.0)
    commands = [control.poll_command(), control.poll_command()]
    opened = next(command for command in commands if isinstance(command, OpenLink))
    control.links.handle_connect_failed(opened.link_id, ConnectionRefusedError(), 1.0)
    control.tick(1.0)
    assert 1.0 < control.next_deadline() < math.inf


def test_a_topic_that_a_caller_waits_for_is_not_forgotten() -> None:
    settings = producer_settings({"bootstrap.servers": "one:9092", "metadata.max.idle.ms": 5000})
    control = ProducerControl(settings, "test", lambda: 0.5)
    control.want_topic("topic", 1.0)
    for second in range(2, 60):
        control.touch_topics([], float(second))
        control.tick(float(second))
    request = control.cluster.poll_request(60.0)
    assert request is not None
    assert [topic.name for topic in request.topics or ()] == ["topic"]


def links_to_open(control: ProducerControl) -> list[OpenLink]:
    """Take the commands that are there; return the links to open."""
    commands = iter(control.poll_command, None)
    return [command for command in commands if isinstance(command, OpenLink)]


def test_a_leader_that_refuses_does_not_keep_metadata_from_being_asked_of_others() -> None:
    """Regression: what waited for its backoff counted as a connection under way, for ever."""
    control = make_control()
    control.want_topic("topic", 1.0)
    control.cluster.poll_request(1.0)
    brokers = [broker(1, "10.0.0.1"), broker(2, "10.0.0.2")]
    control._handle_metadata(answer(topic("topic"), brokers=brokers), 12, 1.0)
    control.handle_event(RouteWanted((0,)), 1.0)
    (to_leader,) = [link for link in links_to_open(control) if link.node_id == 1]
    control.links.handle_connect_failed(to_leader.link_id, ConnectionRefusedError(), 1.0)
    for now in (1.5, 1.51, 2.5, 2.51):
        control.tick(now)
        links = links_to_open(control)
        if any(link.node_id == 2 for link in links):
            return
        for link in links:
            control.links.handle_connect_failed(link.link_id, ConnectionRefusedError(), now)
    raise AssertionError("node 2 was never asked")
