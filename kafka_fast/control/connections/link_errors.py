"""What was wrong with a link, or with an answer that came over it, in words.

Each text continues a sentence that begins with the name of the other side. The caller knows that
name: "127.0.0.1:9092 answered Metadata v13 with a string of length -2 at byte 31 (topics[0].name)".
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kafka_fast.control.messages import BadAnswer, CloseReason, LinkClosed, Misfit
from kafka_fast.errors import (
    AuthenticationError,
    ConnectionReason,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MalformedError,
    ProtocolError,
    TlsError,
    UnsupportedVersionError,
    reworded,
)
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis import api_name, response_class
from kafka_fast.types import TopicPartition
from kafka_fast.values import assert_never

__all__ = [
    "REFUSALS",
    "IdleConnectionError",
    "close_error",
    "foreign_protocol",
    "lost_error",
    "misfit_error",
    "reason_of",
    "reason_of_close",
    "round_error",
    "say",
    "unreadable",
]


class IdleConnectionError(KafkaConnectionError):
    """A connection was closed on which nothing was asked. The node has not failed."""


REFUSALS = (AuthenticationError, TlsError)
"""Errors that the next try will most likely meet again."""

_REASONS = {
    errno.ECONNREFUSED: ConnectionReason.REFUSED,
    errno.ECONNRESET: ConnectionReason.RESET,
    errno.ECONNABORTED: ConnectionReason.RESET,
    errno.EPIPE: ConnectionReason.RESET,
    errno.ETIMEDOUT: ConnectionReason.TIMED_OUT,
    errno.EHOSTUNREACH: ConnectionReason.UNREACHABLE,
    errno.ENETUNREACH: ConnectionReason.UNREACHABLE,
    errno.EHOSTDOWN: ConnectionReason.UNREACHABLE,
    errno.ENETDOWN: ConnectionReason.UNREACHABLE,
    errno.EADDRNOTAVAIL: ConnectionReason.UNREACHABLE,
}

_CLOSED_FOR: dict[int, ConnectionReason] = {
    CloseReason.EOF: ConnectionReason.CLOSED,
    CloseReason.TIMEOUT: ConnectionReason.TIMED_OUT,
    CloseReason.BY_US: ConnectionReason.LEFT,
    CloseReason.IDLE: ConnectionReason.LEFT,
}

_FOREIGN = (
    (b"HTTP/", "an HTTP server"),
    (b"SSH-", "an SSH server"),
    (b"\x15\x03", "a TLS listener: it needs security.protocol=SSL or SASL_SSL"),
    (b"\x16\x03", "a TLS listener: it needs security.protocol=SSL or SASL_SSL"),
)


def say(error: BaseException) -> str:
    """Return the text of a failure of the operating system, or its class if it has no text."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def reason_of(error: BaseException | None) -> ConnectionReason:
    """Return why a connection failed or broke; `error` is None if the other side closed it."""
    if error is None:
        return ConnectionReason.CLOSED
    if isinstance(error, KafkaConnectionError):
        return error.reason
    if isinstance(error, TimeoutError) and not getattr(error, "errno", None):
        return ConnectionReason.TIMED_OUT
    code = error.errno if isinstance(error, OSError) else None
    return ConnectionReason.OTHER if code is None else _REASONS.get(code, ConnectionReason.OTHER)


def reason_of_close(reason: int) -> ConnectionReason:
    """Return what it means for a request without an answer why its link was closed."""
    return _CLOSED_FOR.get(reason, ConnectionReason.OTHER)


def lost_error(where: str, error: BaseException | None, awaited: str, hint: str) -> KafkaError:
    """Return the error for a link that broke.

    Args:
        where: the name of the other side.
        error: why; None: the other side closed it.
        awaited: the request that it should have answered first; "" for none.
        hint: why it may have closed the link without a word; "" if nobody knows.
    """
    instead = f" instead of an answer to {awaited}" if awaited else ""
    if error is None:
        text = f"{where} closed the connection{instead}{hint}"
    elif isinstance(error, TlsError):
        text = f"{where}: {error}"
    elif isinstance(error, KafkaError):
        text = f"{where} {error}"
    else:
        closed = isinstance(error, ConnectionError)
        text = f"{where}: {say(error)}{instead}{hint if closed else ''}"
    keeps_class = isinstance(error, (ProtocolError, UnsupportedVersionError, *REFUSALS))
    failure: KafkaError
    if keeps_class and isinstance(error, KafkaError):
        failure = reworded(error, text)
    else:
        failure = KafkaConnectionError(text, reason=reason_of(error))
    failure.__cause__ = error
    return failure


def round_error(what: str, errors: Sequence[KafkaError]) -> KafkaError:
    """Return the error for a connection none of whose addresses could be used.

    Args:
        what: the name of the connection.
        errors: one for each address that was tried.
    """
    if len(errors) == 1:
        return errors[0]
    refused = next((failure for failure in errors if isinstance(failure, REFUSALS)), None)
    tried = "; ".join(map(str, errors[:5])) or "no address"
    did = "answered" if refused is None else "accepted this client"
    text = f"{what}: none of {len(errors)} addresses {did}: {tried}"
    reasons = set(map(reason_of, errors)) or {ConnectionReason.UNRESOLVED}
    error: KafkaError
    if refused is not None:
        error = reworded(refused, text)
    else:
        common = reasons.pop() if len(reasons) == 1 else ConnectionReason.SEVERAL
        error = KafkaConnectionError(text, reason=common)
    error.__cause__ = refused or (errors[-1] if errors else None)
    return error


def unreadable(
    api_key: int, version: int, error: ProtocolError, speaker: str = ""
) -> ProtocolError:
    """Return the error for an answer that cannot be read.

    Args:
        api_key: of the request.
        version: of the request.
        error: what is wrong with the answer. The new error has its class, and has it as its cause.
        speaker: the name of the other side; "": the text continues a sentence that has it.
    """
    what = f"{speaker} answered {api_name(api_key)} v{version} with".lstrip()
    raised: ProtocolError
    if isinstance(error, MalformedError) and error.problem:
        raised = MalformedError(
            f"{what} {error.problem} at byte {error.pos} ({error.place})",
            problem=error.problem,
            place=error.place,
            pos=error.pos,
        )
    else:
        raised = type(error)(f"{what} what cannot be read: {error}")
    raised.__cause__ = error
    return raised


def foreign_protocol(head: bytes) -> str | None:
    """Return which other kind of server begins like this; None: none that is known.

    Args:
        head: the first bytes of the stream, length prefix of the supposed frame included.
    """
    return next((name for magic, name in _FOREIGN if head.startswith(magic)), None)


def close_error(
    event: LinkClosed, awaited: str, patience: str
) -> ProtocolError | KafkaTimeoutError | KafkaConnectionError | OSError | None:
    """Return why a link was closed; None if the other side closed it.

    Args:
        event: the end of the link.
        awaited: the oldest request without an answer, as "Metadata v13"; "" for none.
        patience: how long this client waited for that answer.
    """
    speaker = foreign_protocol(event.head)
    if speaker is not None:
        return ProtocolError(f"talks like {speaker}")
    instead = f" instead of an answer to {awaited}" if awaited else ""
    match event.reason:
        case CloseReason.EOF:
            return None
        case CloseReason.OS_ERROR:
            return OSError(event.detail, os.strerror(event.detail))
        case CloseReason.LAYER:
            return TlsError(event.words)
        case CloseReason.TIMEOUT:
            return KafkaTimeoutError(f"did not answer {awaited or 'a request'} within {patience}")
        case CloseReason.BAD_FRAME:
            head = event.head.hex(" ")
            return ProtocolError(f"sent {head}: a frame of {event.detail} bytes{instead}")
        case CloseReason.BAD_RESPONSE:
            return ProtocolError(f"sent what does not fit the request{instead}")
        case CloseReason.CORRELATION:
            number = event.detail
            return ProtocolError(
                f"sent an answer to nothing in flight (correlation id {number}){instead}"
            )
        case CloseReason.BY_US | CloseReason.IDLE:
            text = "was left: this client closed the connection"
            return KafkaConnectionError(text, reason=ConnectionReason.LEFT)


def misfit_error(
    event: BadAnswer,
    partition: Callable[[int], TopicPartition | None],
    name: Callable[[bytes], str | None],
) -> ProtocolError:
    """Return what is wrong with a Produce or Fetch answer that the data plane refused.

    Args:
        event: the answer.
        partition: returns the partition behind the id of a queue or a stream.
        name: returns the topic with an id.
    """
    cls = response_class(event.api_key)
    try:
        _, body = frame.decode_response(cls, event.frame, event.version)
    except MalformedError as error:
        return unreadable(event.api_key, event.version, error)
    what = f"answered {api_name(event.api_key)} v{event.version}"
    named = next(
        (text for n, text in enumerate(_partitions(body, name)) if n == event.place), "more"
    )
    match event.misfit:
        case Misfit.FORM:
            return ProtocolError(f"{what} with bytes that do not follow from the request")
        case Misfit.FOREIGN:
            return ProtocolError(f"{what} with {named}, which was not asked for")
        case Misfit.TWICE:
            return ProtocolError(f"{what} with {named} twice")
        case Misfit.MISSING:
            return ProtocolError(f"{what} without {partition(event.asked) or 'a partition'}")
        case Misfit.SESSION:
            return ProtocolError(f"{what} under another fetch session than asked")
        case _:
            return assert_never(event.misfit)


def _partitions(body: Any, name: Callable[[bytes], str | None]) -> Iterator[str]:
    """Yield the partitions that a Produce or Fetch answer names, as text, in its order."""
    for topic in body.responses:
        is_produce = hasattr(topic, "partition_responses")
        known = (topic.name if is_produce else topic.topic) or name(topic.topic_id)
        for part in topic.partition_responses if is_produce else topic.partitions:
            number = part.index if is_produce else part.partition_index
            if known:
                yield str(TopicPartition(known, number))
            else:
                yield f"partition {number} of the topic of id {topic.topic_id.hex()}"
