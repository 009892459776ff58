"""The control plane's own requests, and what becomes of them.

    ask ───────► once ──────────────► its answer ────────────┐
    repeat ────► again and again ───► unexpected answers ────┼──► handle
    interject ─► between two of those ─► its answer ─────────┘    or handle_failure: no link

The data plane repeats, whether Python gets to run or not; what is sent between two of a repetition
goes *aside*. Thread: control.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from kafka_fast.control.link import Link
from kafka_fast.control.plane import Command, Interject, Repeat, Response, SendRaw, StopRepeat
from kafka_fast.errors import KafkaConnectionError, KafkaError, ProtocolError
from kafka_fast.protocol import frame
from kafka_fast.protocol.schema import Request
from kafka_fast.protocol.schema import Response as ResponseBody
from kafka_fast.values import Value

NEGOTIATION = 0
"""The token of ApiVersions requests, which belong to the connection."""

RESPONSE_BODY_POS = 8
"""In a response frame, behind length and correlation id."""

R = TypeVar("R", bound=ResponseBody)


class _Question(Value, frozen=False):
    """A raw request in flight."""

    link_id: int
    response_class: type[Any]
    version: int
    handle: Callable[[Any, float], None]
    handle_failure: Callable[[KafkaError, float], None]
    repetition: _Repetition | None = None  # that it is, or is said aside


class _Repetition(Value, frozen=False):
    """What was heard of a request that the data plane repeats."""

    token: int
    heard: int = 0
    aside: int | None = None  # the request aside that has no answer yet


class Questions:
    """All requests that wait for an answer. Control thread only."""

    def __init__(
        self,
        client_id: str,
        commands: deque[Command],
        *,
        on_malformed: Callable[[int, type[Any], ProtocolError, float], None],
    ) -> None:
        """Begin without any.

        Args:
            client_id: of all requests.
            commands: takes what the data plane is to do.
            on_malformed: called with the link, the class of the answer, what is wrong with it, and
                the time.
        """
        self._client_id = client_id
        self._commands = commands
        self._on_malformed = on_malformed
        self._questions: dict[int, _Question] = {}
        self._next_token = NEGOTIATION + 1

    # Out

    def load(self, link: Link) -> int:
        """Return how many of the control plane's questions wait for an answer on a link."""
        return sum(question.link_id == link.id for question in self._questions.values())

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
        self._questions[token] = _Question(link.id, response_class, version, handle, handle_failure)
        data = frame.encode_request(body, version, 0, self._client_id)
        self._commands.append(SendRaw(link.id, token, data, timeout))
        return version

    def repeat(
        self,
        link: Link,
        body: Request,
        expected: ResponseBody,
        handle: Callable[[Any, float], None],
        handle_failure: Callable[[KafkaError, float], None],
        *,
        period: float,
        timeout: float,
        delay: float = 0.0,
        other_epoch: Request | None = None,
    ) -> int:
        """Send a request every `period` seconds; any other answer than `expected` is heard of.

        The data plane does so without the GIL, and no longer than the user shows signs of life.

        Args:
            link: the way.
            body: the request.
            expected: the answer that needs nobody.
            handle: called with each other answer and the time.
            handle_failure: called when it has ended with the link, and the time; likewise with one
                whose answer cannot be read, and is closed for that.
            period: seconds from one to the next.
            timeout: seconds for each; the link is closed when they have passed.
            delay: seconds to the first.
            other_epoch: differs from `body` in each byte of its epoch, or generation, and in no
                other. The data plane puts there what the last answer told, to a
                ConsumerGroupHeartbeat or to a JoinGroup that went aside; before an epoch is known
                it repeats nothing. None: `body` stays as it is.

        Returns:
            A number for `stop_repeat` and `interject`.

        Raises:
            UnsupportedVersionError: the node and this client share no version of this API.
        """
        version = link.versions.pick(type(body))
        token = self._take_token()
        self._questions[token] = _Question(
            link.id, type(expected), version, handle, handle_failure, _Repetition(token)
        )
        data = frame.encode_request(body, version, 0, self._client_id)
        epoch_pos = 0
        if other_epoch is not None:
            other = frame.encode_request(other_epoch, version, 0, self._client_id)
            pairs = enumerate(zip(data, other, strict=True))
            epoch_pos = next(pos for pos, (one, another) in pairs if one != another)
        answer = frame.encode_response(expected, version, 0)[RESPONSE_BODY_POS:]
        self._commands.append(
            Repeat(link.id, token, data, period, answer, timeout, delay, epoch_pos)
        )
        return token

    def stop_repeat(self, token: int) -> None:
        """Repeat a request no more; nobody hears of it again, nor of what was said aside."""
        question = self._questions.get(token)
        if question is not None:
            self._forget_question(token, question)
            self._commands.append(StopRepeat(token))

    def interject(
        self,
        token: int,
        link: Link,
        body: Request,
        response_class: type[R],
        handle: Callable[[R, float], None],
        *,
        timeout: float,
    ) -> None:
        """Send another request once, between two of a repetition: none overtakes the other.

        If an answer of the repetition is heard first, it was not sent and never will be: that
        answer may have changed what there is to say.

        Args:
            token: the repetition, which is not over.
            link: that it goes over.
            body: the request.
            response_class: of its answer.
            handle: called with its answer, whatever it says, and the time. If the link goes, it is
                the repetition's `handle_failure` that is called.
            timeout: seconds; the link is closed when they have passed without an answer.

        Raises:
            UnsupportedVersionError: the node and this client share no version of this API.
        """
        version = link.versions.pick(type(body))
        question = self._questions[token]
        repetition = question.repetition
        assert repetition is not None
        assert repetition.aside is None
        repetition.aside = self._take_token()
        self._questions[repetition.aside] = _Question(
            link.id, response_class, version, handle, question.handle_failure, repetition
        )
        data = frame.encode_request(body, version, 0, self._client_id)
        self._commands.append(Interject(token, repetition.aside, repetition.heard, data, timeout))

    def _take_token(self) -> int:
        token = self._next_token
        self._next_token += 1
        return token

    # In

    def handle_response(self, event: Response, now: float) -> None:
        """Take an answer, or news of the end of the link that it should have come over."""
        question = self._questions.get(event.token)
        if question is None:
            return
        if event.frame is None:
            self._forget_question(event.token, question)
            lost = KafkaConnectionError(f"link {event.link_id} was closed before the answer came")
            question.handle_failure(lost, now)
            return
        try:
            _, body = frame.decode_response(question.response_class, event.frame, question.version)
        except ProtocolError as error:
            self._forget_question(event.token, question)
            self._on_malformed(event.link_id, question.response_class, error, now)
            question.handle_failure(error, now)
            return
        if question.repetition is None:
            del self._questions[event.token]
        else:
            question.repetition.heard += 1
            self._forget_aside(question.repetition)
        question.handle(body, now)

    def handle_ended(self, token: int) -> bool:
        """Take note that nothing is repeated any more, for want of signs of life from the user.

        Returns:
            Whether it is a repetition that was not stopped meanwhile.
        """
        question = self._questions.get(token)
        if question is None:
            return False
        self._forget_question(token, question)
        return True

    def _forget_question(self, token: int, question: _Question) -> None:
        """Expect no answer any more; if it is repeated, also to what was said aside."""
        repetition = question.repetition
        if repetition is not None:
            token = repetition.token
            self._forget_aside(repetition)
        self._questions.pop(token, None)

    def _forget_aside(self, repetition: _Repetition) -> None:
        """What was said aside is answered, or is not said any more."""
        if repetition.aside is not None:
            del self._questions[repetition.aside]
            repetition.aside = None
