"""The control plane's own requests that have no answer yet, and what becomes of them.

    ask ──────────────► once ────────────────────────► its answer ───────────┐
    start_heartbeats ─► every period ────────────────► unexpected answers ───┼──► handle
    send_between ─────► once, between two heartbeats ► its answer ───────────┘    or
                                                                  handle_failure: no link

The data plane sends the heartbeats, even while Python cannot run. Thread: control.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from kafka_fast.control.connections.link_errors import IdleConnectionError, reason_of_close
from kafka_fast.control.connections.links import Link
from kafka_fast.control.messages import (
    ClientCommand,
    RawResponse,
    SendBetween,
    SendRaw,
    StartHeartbeats,
    StopHeartbeats,
)
from kafka_fast.errors import KafkaConnectionError, KafkaError, ProtocolError
from kafka_fast.instants import NEVER
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis import api_name
from kafka_fast.protocol.apis.groups.join_group import JoinGroupResponse
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupResponse
from kafka_fast.protocol.schema import Request, Response
from kafka_fast.values import Value

NEGOTIATION = 0
"""The token of the requests that belong to the connection itself: ApiVersions, and its logins."""

ANSWERED_LATE = frozenset({JoinGroupResponse.api_key, SyncGroupResponse.api_key})
"""Their answers may be late for a good reason: the coordinator waits for the other members."""

RESPONSE_BODY_POS = 8
"""In a response frame, behind length and correlation id."""

R = TypeVar("R", bound=Response)


class _InFlightRequest(Value, frozen=False):
    """A raw request in flight."""

    link: Link
    response_class: type[Any]
    version: int
    handle: Callable[[Any, float], None]
    handle_failure: Callable[[KafkaError, float], None]
    timeout: float
    asked_at: float
    heartbeats: _Heartbeats | None = None  # this is their request, or one sent between them
    read_later: str | None = None  # an array of the answer
    is_idle: bool = False  # the link was closed while none of these heartbeats was under way

    @property
    def label(self) -> str:
        """The name and version of the API: "Metadata v13"."""
        return f"{api_name(self.response_class.api_key)} v{self.version}"

    def is_well(self, token: int, now: float) -> bool:
        """Whether these are heartbeats, and an expected answer must have come before."""
        heartbeats = self.heartbeats
        if heartbeats is None or heartbeats.token != token:
            return False
        return now > heartbeats.surely_heard_by


class Unanswered(Value):
    """A request whose answer has not come."""

    label: str
    """The API and its version."""
    timeout: float
    """Seconds that the node has for its answer."""


class BadMessage(Value):
    """An answer that cannot be read."""

    link: Link
    api_key: int
    version: int
    error: ProtocolError
    was_well: bool
    """Earlier answers to the same heartbeats were as expected."""


class _Heartbeats(Value, frozen=False):
    """The answers to the heartbeats that the data plane sends under one token."""

    token: int
    heard: int = 0  # answers that came up
    between: int | None = None  # token of the request between that has no answer yet
    surely_heard_by: float = NEVER  # by then the data plane has swallowed an expected answer


class InFlightRequests:
    """All requests that wait for an answer. Control thread only."""

    def __init__(
        self,
        client_id: str,
        commands: deque[ClientCommand],
        *,
        on_malformed: Callable[[BadMessage, float], None],
        on_sound: Callable[[Link, int], None],
        on_throttled: Callable[[Link, int, float], None],
    ) -> None:
        """Take where commands go, and who hears of which answer.

        Args:
            client_id: of all requests.
            commands: takes commands for the data plane.
            on_malformed: called with an answer that cannot be read, and the time.
            on_sound: called with the link and the API of an answer that can be read.
            on_throttled: called with the link, the milliseconds and the time, if an answer says
                that the node throttles this client.
        """
        self._client_id = client_id
        self._commands = commands
        self._on_malformed = on_malformed
        self._on_sound = on_sound
        self._on_throttled = on_throttled
        self.now = 0.0
        """The time of the turn or event that is being handled."""
        self._in_flight: dict[int, _InFlightRequest] = {}
        self._next_token = NEGOTIATION + 1

    # ---- getters ----

    def waiting_on(self, link: Link) -> int:
        """Return how many of the control plane's requests wait for an answer on a link."""
        return sum(request.link.id == link.id for request in self._in_flight.values())

    def under_way(self, now: float) -> list[tuple[str, float]]:
        """Return which node has not answered what, and for how many seconds. Any thread."""
        return [
            (
                f"{request.link.versions.node} has not answered {request.label}",
                now - request.asked_at,
            )
            for request in list(self._in_flight.values())
            if request.heartbeats is None and request.response_class.api_key not in ANSWERED_LATE
        ]

    def unanswered(self, token: int) -> Unanswered | None:
        """Return the request under a token; None if nobody waits for its answer any more."""
        request = self._in_flight.get(token)
        return None if request is None else Unanswered(request.label, request.timeout)

    # ---- out ----

    def send_request(
        self,
        link: Link,
        body: Request,
        response_class: type[R],
        handle: Callable[[R, float], None],
        handle_failure: Callable[[KafkaError, float], None],
        *,
        timeout: float,
        max_version: int | None = None,
        read_later: str | None = None,
    ) -> int:
        """Send a request. One of the two functions is called with the outcome.

        Args:
            link: where to send it.
            body: the request.
            response_class: of its answer.
            handle: called with the decoded answer and the time.
            handle_failure: called with why there is none, and the time.
            timeout: seconds for the answer. If none comes in time, the link is closed.
            max_version: the highest version that the caller can use.
            read_later: an array of the answer that `handle` reads later; see `Message.decode`.

        Returns:
            The version that was sent.

        Raises:
            UnsupportedVersionError: the node and this client share no version of this API, or a
                field is set that the version lacks.
            TypeError, ValueError: a field's value does not fit its type.
        """
        version = link.versions.pick(type(body), max_version)
        data = frame.encode_request(body, version, 0, self._client_id)
        token = self._take_token()
        self._in_flight[token] = _InFlightRequest(
            link,
            response_class,
            version,
            handle,
            handle_failure,
            timeout,
            self.now,
            read_later=read_later,
        )
        self._commands.append(SendRaw(link.id, token, data, timeout))
        return version

    def start_heartbeats(
        self,
        link: Link,
        body: Request,
        expected: Response,
        handle: Callable[[Any, float], None],
        handle_failure: Callable[[KafkaError, float], None],
        *,
        period: float,
        timeout: float,
        delay: float = 0.0,
        epoch_field: str | None = None,
    ) -> int:
        """Send a request every `period` seconds, and hear of each answer that is not `expected`.

        The data plane sends it without the GIL. It stops when the user has not polled for
        max.poll.interval.ms.

        Args:
            link: where to send it.
            body: the request.
            expected: the answer that nobody has to hear of.
            handle: called with each other answer and the time.
            handle_failure: called with why there are no more heartbeats, and the time: the link is
                gone, or an answer cannot be read.
            period: seconds from one to the next.
            timeout: seconds for each answer. If one does not come in time, the link is closed.
            delay: seconds to the first.
            epoch_field: the field of the request that has the member's epoch, or generation. The
                data plane writes the epoch of the last answer there: one to a
                ConsumerGroupHeartbeat, or to a JoinGroup that `send_between` sent. Before an epoch
                is known, no heartbeat is sent. None: `body` stays as it is.

        Returns:
            A token for `stop_heartbeats` and `send_between`.

        Raises:
            UnsupportedVersionError: the node and this client share no version of this API.
        """
        version = link.versions.pick(type(body))
        token = self._take_token()
        heard_by = self.now + delay + 1.5 * period
        self._in_flight[token] = _InFlightRequest(
            link,
            type(expected),
            version,
            handle,
            handle_failure,
            timeout,
            self.now,
            _Heartbeats(token, surely_heard_by=heard_by),
        )
        data = frame.encode_request(body, version, 0, self._client_id)
        epoch_pos = 0
        if epoch_field is not None:
            epoch_pos = frame.request_position_of(epoch_field, body, version, self._client_id)
        answer = frame.encode_response(expected, version, 0)[RESPONSE_BODY_POS:]
        self._commands.append(
            StartHeartbeats(link.id, token, data, period, answer, timeout, delay, epoch_pos)
        )
        return token

    def stop_heartbeats(self, token: int) -> None:
        """Send no more heartbeats. Answers to them, and to a request between, are dropped."""
        request = self._in_flight.get(token)
        if request is not None:
            self._forget(token, request)
            self._commands.append(StopHeartbeats(token))

    def send_between(
        self,
        token: int,
        link: Link,
        body: Request,
        response_class: type[R],
        handle: Callable[[R, float], None],
        *,
        timeout: float,
    ) -> None:
        """Send another request once, while no heartbeat is in flight.

        If the answer to a heartbeat comes up first, the request was not sent and never will be.
        That answer may have changed what the request has to say.

        Args:
            token: the heartbeats, which have not ended.
            link: the link of the heartbeats.
            body: the request.
            response_class: of its answer.
            handle: called with its answer, whatever it says, and the time. If the link goes, the
                heartbeats' `handle_failure` is called.
            timeout: seconds for the answer. If none comes in time, the link is closed.

        Raises:
            UnsupportedVersionError: the node and this client share no version of this API.
        """
        version = link.versions.pick(type(body))
        request = self._in_flight[token]
        heartbeats = request.heartbeats
        assert heartbeats is not None
        assert heartbeats.between is None
        heartbeats.between = self._take_token()
        self._in_flight[heartbeats.between] = _InFlightRequest(
            link,
            response_class,
            version,
            handle,
            request.handle_failure,
            timeout,
            self.now,
            heartbeats,
        )
        data = frame.encode_request(body, version, 0, self._client_id)
        self._commands.append(
            SendBetween(token, heartbeats.between, heartbeats.heard, data, timeout)
        )

    def _take_token(self) -> int:
        token = self._next_token
        self._next_token += 1
        return token

    # ---- in ----

    def note_idle(self, link_id: int) -> None:
        """Let the heartbeats of a link that was closed as idle end with `IdleConnectionError`."""
        for request in self._in_flight.values():
            if request.link.id == link_id:
                request.is_idle = True

    def handle_response(self, event: RawResponse, now: float) -> None:
        """Take an answer, or the news that its link was closed."""
        self.now = now
        request = self._in_flight.get(event.token)
        if request is None:
            return
        if event.frame is None:
            self._forget(event.token, request)
            lost = (IdleConnectionError if request.is_idle else KafkaConnectionError)(
                f"{request.link.versions.node} did not answer {request.label}: the connection "
                "was closed",
                reason=reason_of_close(event.reason),
            )
            request.handle_failure(lost, now)
            return
        api_key = request.response_class.api_key
        try:
            _, body = frame.decode_response(
                request.response_class, event.frame, request.version, later=request.read_later
            )
        except ProtocolError as error:
            self._forget(event.token, request)
            was_well = request.is_well(event.token, now)
            self._on_malformed(
                BadMessage(request.link, api_key, request.version, error, was_well), now
            )
            request.handle_failure(error, now)
            return
        self._on_sound(request.link, api_key)
        throttle_ms = getattr(body, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._on_throttled(request.link, throttle_ms, now)
        if request.heartbeats is None:
            del self._in_flight[event.token]
        else:
            request.heartbeats.heard += 1
            self._forget_between(request.heartbeats)
        request.handle(body, now)

    def handle_ended(self, token: int) -> bool:
        """Forget heartbeats that the data plane has ended, because the user does not poll.

        Returns:
            True, unless the heartbeats were stopped meanwhile.
        """
        request = self._in_flight.get(token)
        if request is None:
            return False
        self._forget(token, request)
        return True

    def _forget(self, token: int, request: _InFlightRequest) -> None:
        """Wait for no answer any more. With heartbeats, the request between is forgotten too."""
        heartbeats = request.heartbeats
        if heartbeats is not None:
            token = heartbeats.token
            self._forget_between(heartbeats)
        self._in_flight.pop(token, None)

    def _forget_between(self, heartbeats: _Heartbeats) -> None:
        """Forget the request between two heartbeats: it was answered, or will not be sent."""
        if heartbeats.between is not None:
            del self._in_flight[heartbeats.between]
            heartbeats.between = None
