"""A requester whose links a test opens, and whose answers a test gives."""

from __future__ import annotations

import logging
from collections import deque
from typing import Any

from kafka_fast.config import consumer_settings
from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.links import Link
from kafka_fast.control.connections.negotiation import NodeVersions
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.troubles import Troubles
from kafka_fast.control.in_flight_requests import InFlightRequests
from kafka_fast.control.messages import ClientCommand, RawResponse, SendRaw
from kafka_fast.control.metadata.metadata import Node, Partition
from kafka_fast.control.requests.requester import Requester
from kafka_fast.errors import KafkaError
from kafka_fast.instants import LONG_AGO
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis import api_keys, request_class
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersion, ApiVersionsResponse
from kafka_fast.types import TopicPartition

BACKOFF, BACKOFF_MAX = 0.1, 1.0
REQUEST_TIMEOUT = 30.0


class RequesterRig:
    """Stands in for cluster, connections, links and discovery of a requester."""

    def __init__(self) -> None:
        self.now = 1.0
        self.commands: deque[ClientCommand] = deque()
        self.by_key: dict[ConnectionKey, Link] = {}
        self.wanted: list[ConnectionKey] = []  # links that were to be opened
        self.refreshed: list[str | None] = []  # topics, None: all
        self.leaders: dict[TopicPartition, int] = {}
        self.nodes: list[Node] = []
        self.cluster_id = "rig"
        self.controller_id = -1
        self.needs_bootstrap = False
        self.throttled: list[tuple[int, int]] = []
        self.pauses: dict[ConnectionKey, float] = {}
        self.troubles = Troubles(logging.getLogger("test"))
        self.links = self  # of the connections, which this stands in for as well
        self.requests = InFlightRequests(
            "rig",
            self.commands,
            on_malformed=lambda message, now: None,
            on_sound=lambda link, api_key: None,
            on_throttled=lambda link, ms, now: self.throttled.append((link.id, ms)),
        )
        settings = consumer_settings(
            {
                "bootstrap.servers": "b:9092",
                "request.timeout.ms": int(REQUEST_TIMEOUT * 1000),
                "retry.backoff.ms": int(BACKOFF * 1000),
                "retry.backoff.max.ms": int(BACKOFF_MAX * 1000),
            }
        )
        self.settings = settings
        itself: Any = self
        self.requester = Requester(settings, itself, itself, lambda: 0.5)

    # ---- the test's ----

    def context(self) -> Context[Any]:
        """Return the context of a client whose parts are all this."""
        itself: Any = self
        return Context(
            self.settings,
            "rig",
            lambda: 0.5,
            lambda: 0,
            Backoff(int(BACKOFF * 1000), int(BACKOFF_MAX * 1000), lambda: 0.5),
            self.troubles,
            itself,
            itself,
            itself,
            itself,
            self.requester,
            lambda function, done: done(function(), 0.0),
        )

    def open(self, node_id: int, role: Role = Role.DATA, **versions: int) -> Link:
        """Have a link to a node; `versions` limits APIs by their message's name."""
        named = {request_class(key).__name__: key for key in api_keys()}
        limits = {named[f"{name}Request"]: limit for name, limit in versions.items()}
        offered = [
            ApiVersion(
                api_key=key,
                min_version=request_class(key).versions[0],
                max_version=limits.get(key, request_class(key).versions[-1]),
            )
            for key in api_keys()
            if limits.get(key, 0) >= 0
        ]
        key = ConnectionKey(role, node_id)
        number = 10 * node_id + (0 if role is Role.DATA else 1)
        link = Link(number, key, NodeVersions(str(key), ApiVersionsResponse(api_keys=offered)))
        self.by_key[key] = link
        return link

    def tick(self, now: float | None = None) -> list[SendRaw]:
        """Let the requester do what is due; return what it sent."""
        self.now = self.now if now is None else now
        self.requests.now = self.now
        self.requester.tick(self.now)
        sent = [command for command in self.commands if isinstance(command, SendRaw)]
        self.commands.clear()
        return sent

    def answer(self, sent: SendRaw, body: Any) -> None:
        """Answer a request."""
        header, _ = frame.decode_request(sent.frame[4:])
        data = frame.encode_response(body, header.version, 0)[4:]
        self.requests.handle_response(RawResponse(sent.link_id, sent.token, data, 0), self.now)

    def lose(self, sent: SendRaw) -> None:
        """Break the connection of a request."""
        self.by_key = {key: link for key, link in self.by_key.items() if link.id != sent.link_id}
        self.requests.handle_response(RawResponse(sent.link_id, sent.token, None, 0), self.now)

    # ---- what the requester sees of others ----

    @property
    def ready(self) -> list[Link]:
        return list(self.by_key.values())

    @property
    def free(self) -> list[Link]:
        return self.ready

    def link_to(self, key: ConnectionKey) -> Link | None:
        return self.by_key.get(key)

    def request_link(self, node_id: int) -> Link | None:
        return self.link_to(self.request_key(node_id))

    def request_key(self, node_id: int) -> ConnectionKey:
        return ConnectionKey(Role.DATA, node_id)

    def want_link(self, node: Node, role: Role, now: float, cluster_id: str | None = None) -> None:
        self.wanted.append(ConnectionKey(role, node.id))

    def want_bootstrap(self, now: float, key: ConnectionKey) -> None:
        self.wanted.append(key)

    def is_connecting(self, key: ConnectionKey) -> bool:
        return key in self.wanted

    def has_failed(self, key: ConnectionKey) -> bool:
        return False

    def retry_at(self, key: ConnectionKey) -> float:
        return 0.0

    def paused_until(self, key: ConnectionKey) -> float:
        return self.pauses.get(key, LONG_AGO)

    def request_refresh(self, reason: str, topic: str | None = None) -> None:
        self.refreshed.append(topic)

    def node(self, node_id: int) -> Node | None:
        return next((node for node in self.nodes if node.id == node_id), None)

    def refusal(self, topic: str) -> KafkaError | None:
        return None

    def partitions(self, topic: str) -> tuple[Partition, ...]:
        return ()

    def leader(self, topic: str, partition: int) -> Node | None:
        return self.node(self.leaders.get(TopicPartition(topic, partition), -1))


def request_of(sent: SendRaw) -> Any:
    """Return the request that was sent."""
    return frame.decode_request(sent.frame[4:])[1]
