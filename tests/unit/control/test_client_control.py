"""What every client's control plane does, whatever its own parts are."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafka_fast.config import CommonSettings, producer_settings
from kafka_fast.control.client_control import ClientControl
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.messages import Throttled
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import ClusterChanges
from kafka_fast.errors import KafkaError, UnsupportedVersionError
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse
from tests.unit.control.fake_machine import FakeMachine
from tests.unit.control.metadata.metadata_answers import answer, broker, topic


class Client(ClientControl[CommonSettings, str, str]):
    """A client that follows one topic, and notes what it is told."""

    kind = "client"
    logger = logging.getLogger("test")

    def __init__(self, **config: Any) -> None:
        settings = producer_settings({"bootstrap.servers": "10.0.0.1:9001", **config})
        super().__init__(settings, "test", lambda: 0.5, lambda: 7, Cluster(settings, lambda: 0.5))
        self.notes: list[object] = []
        self.own: list[object] = []
        self.machine = FakeMachine(self, {MetadataRequest: self._describe_cluster})

    def _describe_cluster(self, request: MetadataRequest, key: ConnectionKey) -> MetadataResponse:
        return answer(topic("t", ((1, 0),)), brokers=[broker(1, "10.0.0.1", 9001)])

    def _handle_changes(self, changes: ClusterChanges, now: float) -> None:
        self.notes.append("changes")

    def _want_metadata(self, now: float) -> None:
        self.cluster.want_topic("t", now)

    def _tick(self, now: float) -> None:
        pass

    def _next_deadline(self) -> float:
        return NEVER

    def _poll_own(self) -> Any:
        return self.own.pop(0) if self.own else None

    def _handle_own(self, event: str, now: float) -> None:
        self.notes.append(event)

    def _stop(self, error: KafkaError) -> None:
        self.notes.append(error)

    def _describe_own(self, now: float) -> list[str]:
        return ["a part of its own"]


def test_metadata_that_a_client_wants_come_in_the_same_turn() -> None:
    client = Client()
    client.machine.run()
    assert client.cluster.partition_count("t") == 1
    assert client.notes == ["changes"]
    assert client.describe(1.0).splitlines()[-1] == "a part of its own"


def test_events_that_are_not_everybodys_are_the_clients_own() -> None:
    client = Client()
    client.handle_event("news", 1.0)
    assert client.notes == ["news"]


def test_commands_of_its_own_go_before_those_of_links() -> None:
    client = Client()
    client.tick(1.0)  # wants a connection
    client.own = ["first"]
    assert client.poll_command() == "first"
    assert client.poll_command() is not None
    assert client.poll_command() is None


def test_a_quota_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    client = Client()
    client.machine.run()
    (link,) = client.links.ready
    client.handle_event(Throttled(link.id, 250), client.machine.now)
    assert "has this client wait for 250 ms: a quota" in caplog.text


def test_a_client_that_cannot_go_on_says_so_and_asks_for_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = Client()
    client.machine.max_versions = {MetadataRequest.api_key: -1}
    client.machine.run()
    assert isinstance(client.fatal, UnsupportedVersionError)
    assert client.notes == [client.fatal]
    assert f"the client cannot go on: {client.fatal}" in caplog.text
    client.machine.asked.clear()
    client.machine.run(600.0)
    assert not any(isinstance(request, MetadataRequest) for request, _ in client.machine.asked)


def test_a_node_that_cannot_be_reached_is_not_asked() -> None:
    client = Client()
    client.machine.run()
    link = client.links.link_to(ConnectionKey(Role.BOOTSTRAP, -1)) or next(iter(client.links.ready))
    assert list(client.links.free) == [link]
    client.machine.close(link.key)
    assert list(client.links.free) == []


def test_the_context_is_the_clients() -> None:
    client = Client()
    context = client.context
    assert (context.client_id, context.wall_ms(), context.random()) == ("test", 7, 0.5)
    assert context.links is client.links
    assert context.connections.troubles is context.troubles is client.troubles
    assert context.backoff.maximum == context.settings.retry_backoff_max
