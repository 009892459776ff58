"""The control plane's own requests, and what becomes of them.

    ask ──────────────► once ────────────────────────► its answer ───────────┐
    start_heartbeats ─► every period ────────────────► unexpected answers ───┼──► handle
    send_between ─────► once, between two heartbeats ► its answer ───────────┘    or
                                                                  handle_failure: no link

The data plane sends heartbeats, whether Python gets to run or not. Thread: control.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from kafka_fast.control.instants import NEVER
from kafka_fast.control.link import Link
from kafka_fast.control.plane import (
    Command,
    RawResponse,
    SendBetween,
    SendRaw,
    StartHeartbeats,
    StopHeartbeats,
)
from kafka_fast.errors import KafkaConnectionError, KafkaError, ProtocolError
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis import api_name
from kafka_fast.protocol.apis.join_group import JoinGroupResponse
from kafka_fast.protocol.apis.sync_group import SyncGroupResponse
from kafka_fast.protocol.schema import Request, Response
from kafka_fast.values import Value

NEGOTIATION = 0
"""The token of ApiVersions requests, which belong to the connection."""

ANSWERED_LATE = frozenset({JoinGroupResponse.api_key, SyncGroupResponse.api_key})
"""What the coordinator answers when the other members have come: however late, all is well."""

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
    heartbeats: _Heartbeats | None = None  # that it stands for, or is sent between

    @property
    def label(self) -> str:
        """What was asked: "Metadata v13"."""
        return f"{api_name(self.response_class.api_key)} v{self.version}"

    def is_well(self, token: int, now: float) -> bool:
        """Whether this is a heartbeat, and one must have been answered as expected before."""
        heartbeats = self.heartbeats
        if heartbeats is None or heartbeats.token != token:
            return False
        return now > heartbeats.surely_heard_by


class Unanswered(Value):
    """A request whose answer has not come."""

    label: str
    """The API and its version."""
    timeout: float
    """Seconds for which the answer is waited for."""


class BadMessage(Value):
    """An answer that cannot be read."""

    link: Link
    api_key: int
    version: int
    error: ProtocolError
    was_well: bool
    """Earlier answers to the same heartbeats were well."""


class _Heartbeats(Value, frozen=False):
    """What was heard of the heartbeats that the data plane sends under one token."""

    token: int
    heard: int = 0
    between: int | None = None  # token of the request between that has no answer yet
    surely_heard_by: float = NEVER  # if it is still there, the data plane has swallowed an answer


class InFlightRequests:
    """All requests that wait for an answer. Control thread only."""

    def __init__(
        self,
        client_id: str,
        commands: deque[Command],
        *,
        on_malformed: Callable[[BadMessage, float], None],
        on_sound: Callable[[Link, int], None],
    ) -> None:
        """Begin without any.

        Args:
            client_id: of all requests.
            commands: takes what the data plane is to do.
            on_malformed: called with an answer that cannot be read, and the time.
            on_sound: called with the link and the API of one that can.
        """
        self._client_id = client_id
        self._commands = commands
        self._on_malformed = on_malformed
        self._on_sound = on_sound
        self.now = 0.0
        """The time of the turn, or of the event, that is under way."""
        self._requests: dict[int, _InFlightRequest] = {}
        self._next_token = NEGOTIATION + 1

    # Getters

    def load(self, link: Link) -> int:
        """Return how many of the control plane's questions wait for an answer on a link."""
        return sum(question.link.id == link.id for question in self._requests.values())

    def under_way(self, now: float) -> list[tuple[str, float]]:
        """Return who has not answered what, and for how many seconds. Any thread."""
        return [
            (f"{it.link.versions.node} has not answered {it.label}", now - it.asked_at)
            for it in list(self._requests.values())
            if it.heartbeats is None and it.response_class.api_key not in ANSWERED_LATE
        ]

    def unanswered(self, token: int) -> Unanswered | None:
        """Return what was asked under a token; None if that is not known any more."""
        question = self._requests.get(token)
        return None if question is None else Unanswered(question.label, question.timeout)

    # Out

    def ask(
        self,
        link: Link,
        body: Request,
        response_class: type[R],
        handle: Callable[[R, float], None],
        handle_failure: Callable[[KafkaError, float], None],
        *,
        timeout: float,
        max_version: int | None = None,
    ) -> int:
        """Send a request; one of the two functions is called with what becomes of it.

        Args:
            link: the way.
            body: the request.
            response_class: of its answer.
            handle: called with the decoded answer and the time.
            handle_failure: called with why there is none, and the time.
            timeout: seconds; the link is closed when they have passed without an answer.
            max_version: the highest one that the caller can use.

        Returns:
            The version that was sent.

        Raises:
            UnsupportedVersionError: the node and this client share no version of this API.
        """
        version = link.versions.pick(type(body), max_version)
        token = self._take_token()
        self._requests[token] = _InFlightRequest(
            link, response_class, version, handle, handle_failure, timeout, self.now
        )
        data = frame.encode_request(body, version, 0, self._client_id)
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
        other_epoch: Request | None = None,
    ) -> int:
        """Send a request every `period` seconds, and hear of each answer that is not `expected`.

        The data plane does so without the GIL, and no longer than the user shows signs of life.

        Args:
            link: the way.
            body: the request.
            expected: the answer that needs nobody.
            handle: called with each other answer and the time.
            handle_failure: called with why there are no more heartbeats, and the time: the link is
                gone, or an answer cannot be read.
            period: seconds from one to the next.
            timeout: seconds for each; the link is closed when they have passed.
            delay: seconds to the first.
            other_epoch: differs from `body` in each byte of its epoch, or generation, and in no
                other. The data plane writes there what the last answer told, to a
                ConsumerGroupHeartbeat or to a JoinGroup that `send_between` sent; before an epoch
                is known it sends no heartbeat. None: `body` stays as it is.

        Returns:
            A token for `stop_heartbeats` and `send_between`.

        Raises:
            UnsupportedVersionError: the node and this client share no version of this API.
        """
        version = link.versions.pick(type(body))
        token = self._take_token()
        heard_by = self.now + delay + 1.5 * period
        self._requests[token] = _InFlightRequest(
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
        if other_epoch is not None:
            other = frame.encode_request(other_epoch, version, 0, self._client_id)
            pairs = enumerate(zip(data, other, strict=True))
            epoch_pos = next(pos for pos, (one, another) in pairs if one != another)
        answer = frame.encode_response(expected, version, 0)[RESPONSE_BODY_POS:]
        self._commands.append(
            StartHeartbeats(link.id, token, data, period, answer, timeout, delay, epoch_pos)
        )
        return token

    def stop_heartbeats(self, token: int) -> None:
        """Send no more of them; nobody hears of them again, nor of a request between."""
        question = self._requests.get(token)
        if question is not None:
            self._forget_question(token, question)
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
        """Send another request once, between two heartbeats: none overtakes the other.

        If an answer to a heartbeat is heard first, the request was not sent and never will be:
        that answer may have changed what the request has to say.

        Args:
            token: the heartbeats, which have not ended.
            link: that they go over.
            body: the request.
            response_class: of its answer.
            handle: called with its answer, whatever it says, and the time. If the link goes, the
                heartbeats' `handle_failure` is called.
            timeout: seconds; the link is closed when they have passed without an answer.

        Raises:
            UnsupportedVersionError: the node and this client share no version of this API.
        """
        version = link.versions.pick(type(body))
        question = self._requests[token]
        heartbeats = question.heartbeats
        assert heartbeats is not None
        assert heartbeats.between is None
        heartbeats.between = self._take_token()
        self._requests[heartbeats.between] = _InFlightRequest(
            link,
            response_class,
            version,
            handle,
            question.handle_failure,
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

    # In

    def handle_response(self, event: RawResponse, now: float) -> None:
        """Take an answer, or news of the end of the link that it should have come over."""
        self.now = now
        question = self._requests.get(event.token)
        if question is None:
            return
        if event.frame is None:
            self._forget_question(event.token, question)
            lost = KafkaConnectionError(
                f"{question.link.versions.node} did not answer {question.label}: the connection "
                "was closed"
            )
            question.handle_failure(lost, now)
            return
        api_key = question.response_class.api_key
        try:
            _, body = frame.decode_response(question.response_class, event.frame, question.version)
        except ProtocolError as error:
            self._forget_question(event.token, question)
            was_well = question.is_well(event.token, now)
            self._on_malformed(
                BadMessage(question.link, api_key, question.version, error, was_well), now
            )
            question.handle_failure(error, now)
            return
        self._on_sound(question.link, api_key)
        if question.heartbeats is None:
            del self._requests[event.token]
        else:
            question.heartbeats.heard += 1
            self._forget_between(question.heartbeats)
        question.handle(body, now)

    def handle_ended(self, token: int) -> bool:
        """Take note that heartbeats have ended, for want of signs of life from the user.

        Returns:
            Whether they were not stopped meanwhile.
        """
        question = self._requests.get(token)
        if question is None:
            return False
        self._forget_question(token, question)
        return True

    def _forget_question(self, token: int, question: _InFlightRequest) -> None:
        """Expect no answer any more; of heartbeats, also none to the request between."""
        heartbeats = question.heartbeats
        if heartbeats is not None:
            token = heartbeats.token
            self._forget_between(heartbeats)
        self._requests.pop(token, None)

    def _forget_between(self, heartbeats: _Heartbeats) -> None:
        """The request between is answered, or will not be sent any more."""
        if heartbeats.between is not None:
            del self._requests[heartbeats.between]
            heartbeats.between = None
