"""Everything below a control plane, played by hand: links that open at once, scripted brokers.

    control ── commands ──► FakeMachine ── decoded request ──► the test's handlers ── answer ──► …

What is not for the machine (streams, queues) is kept for the test to look at.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from typing import Any

from kafka_fast.control.connections.connection_key import BOOTSTRAP, ConnectionKey, Role
from kafka_fast.control.messages import (
    Awaited,
    CallInThread,
    CloseLink,
    LinkClosed,
    OpenLink,
    RawResponse,
    ResolveHost,
    SendRaw,
)
from kafka_fast.control.messages import CloseReason as Reason
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis import api_keys, request_class
from kafka_fast.protocol.apis.cluster.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafka_fast.protocol.schema import Request, Response

Handler = Callable[[Any, ConnectionKey], Response | None]
"""Called with a request and the connection it came over; None leaves it unanswered."""


class FakeMachine:
    """Carries out what `control` wants, at a time that the test sets."""

    def __init__(self, control: Any, handlers: dict[type[Request], Handler]) -> None:
        self.control = control
        self.handlers = handlers
        self.now = 1.0
        self.links: dict[int, ConnectionKey] = {}  # by link id
        self.ports: dict[int, int] = {}  # link id -> port
        self.hung: set[int] = set()  # ports at which connections and requests are only taken
        self.refused: set[int] = set()  # ports at which nobody listens
        self.tried: list[int] = []  # ports, in the order in which links to them were to be opened
        self.kept: list[Any] = []
        self.asked: list[tuple[Request, ConnectionKey]] = []
        self.max_versions: dict[int, int] = {}  # by API key, of all brokers
        self.unanswered: list[tuple[SendRaw, Request, int]] = []

    def run(self, seconds: float = 0.0) -> None:
        """Let time pass up to `now + seconds`, stopping at each deadline."""
        end = self.now + seconds
        for _ in range(10_000):
            while self._turn():
                pass  # what was answered may have something to do at once
            deadline = self.control.next_deadline()
            if deadline > end:
                self.now = end
                return
            self.now = max(self.now, deadline)
        described = self.control.describe(self.now)
        raise AssertionError(f"the control plane is busy at {self.now}: {described}")

    def take(self, kind: type[Any]) -> list[Any]:
        """Take the kept commands of one kind."""
        commands = [command for command in self.kept if isinstance(command, kind)]
        self.kept = [command for command in self.kept if not isinstance(command, kind)]
        return commands

    def link_to(self, node_id: int) -> int:
        """Return the id of the newest link for a node's data."""
        return self.link_of(ConnectionKey(Role.DATA, node_id))

    def link_of(self, key: ConnectionKey) -> int:
        """Return the id of a connection's newest link."""
        return max(link for link, its in self.links.items() if its == key)

    def close(self, key: ConnectionKey) -> None:
        """Close the link of a connection in the middle of a request."""
        link_id = self.link_of(key)
        del self.links[link_id]
        closed = LinkClosed(link_id, Reason.EOF, 0, awaited=Awaited.RAW)
        self.control.handle_event(closed, self.now)

    def event(self, event: object) -> None:
        """Hand an event to the control plane, and let it act."""
        self.control.handle_event(event, self.now)
        self.run()

    def _turn(self) -> bool:
        """Do what is due; whether there was anything."""
        self.control.tick(self.now)
        busy = False
        while (command := self.control.poll_command()) is not None:
            busy = True
            match command:
                case ResolveHost(owner, host, _):
                    self.control.connections.handle_resolved(owner, host, ("127.0.0.1",), self.now)
                case OpenLink(link_id) if command.port in self.refused:
                    self.tried.append(command.port)
                    refusal = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
                    self.control.connections.handle_connect_failed(link_id, refusal, self.now)
                case OpenLink(link_id):
                    self.tried.append(command.port)
                    self.links[link_id] = command.key
                    self.ports[link_id] = command.port
                    self.control.connections.handle_connected(link_id, self.now)
                case SendRaw():
                    self._answer(command)
                case CallInThread(function, done):
                    done(function(), self.now)
                case CloseLink(link_id):
                    if self.links.pop(link_id, None) is not None:
                        self.control.handle_event(LinkClosed(link_id, Reason.BY_US, 0), self.now)
                case _:
                    self.kept.append(command)
        return busy

    def _answer(self, command: SendRaw) -> None:
        header, request = frame.decode_request(command.frame[4:])
        key = self.links.get(command.link_id, BOOTSTRAP)
        self.asked.append((request, key))
        body: Response | None = None
        if self.ports.get(command.link_id) in self.hung:
            pass
        elif isinstance(request, ApiVersionsRequest):
            body = all_versions(self.max_versions)
        else:
            body = self.handlers[type(request)](request, key)
        if body is None:
            self.unanswered.append((command, request, header.version))
        else:
            self.answer(command, body, header.version)

    def answer(self, command: SendRaw, body: Response, version: int) -> None:
        """Answer a request."""
        data = frame.encode_response(body, version, 0)[4:]
        event = RawResponse(command.link_id, command.token, data, 0)
        self.control.handle_event(event, self.now)


def all_versions(max_versions: Mapping[int, int] | None = None) -> ApiVersionsResponse:
    """Return the answer of a broker that knows all that this client does.

    Args:
        max_versions: by API key, where it knows no later version.
    """
    limits = max_versions or {}
    known = ((key, request_class(key).versions) for key in api_keys())
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(
                api_key=key,
                min_version=versions[0],
                max_version=min(versions[-1], limits.get(key, versions[-1])),
            )
            for key, versions in known
        ]
    )
