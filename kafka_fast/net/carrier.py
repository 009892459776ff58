"""Translates the events of any client's data plane, which go up as tuples.

The carriers (this module, `carrier.py` in kafka_fast/producer and kafka_fast/consumer, and what a
build makes beside them to pack commands) alone know the vocabulary of both planes.
"""

from __future__ import annotations

from typing import Any

from kafka_fast.control.messages import (
    Awaited,
    BadAnswer,
    CloseReason,
    GateShut,
    HeartbeatsEnded,
    LinkClosed,
    Misfit,
    RawResponse,
    Throttled,
    TransportEvent,
)
from kafka_fast.dataplane.core import _plane
from kafka_fast.errors import InternalError
from kafka_fast.protocol.apis.records.fetch import FetchRequest
from kafka_fast.protocol.apis.records.produce import ProduceRequest

API_KEYS = {Awaited.PRODUCE: ProduceRequest.api_key, Awaited.FETCH: FetchRequest.api_key}


def read_event(event: tuple[Any, ...]) -> TransportEvent:
    """Return the control plane's record for one of the transport's events.

    Raises:
        InternalError: the event is not one of the transport's, or says that a command was unknown.
    """
    kind, link_id, code, detail, token, frame, told = event
    if kind == _plane.EVENT_RESPONSE:
        return RawResponse(link_id, token, frame, code)
    if kind == _plane.EVENT_LINK_CLOSED:
        return _read_closed(link_id, CloseReason(code), detail, frame or b"", Awaited(token))
    if kind == _plane.EVENT_BAD_ANSWER:
        misfit, asked, place, earlier = told
        api_key = API_KEYS[Awaited(token)]
        return BadAnswer(
            link_id, api_key, code, frame or b"", Misfit(misfit), asked, place, earlier
        )
    if kind == _plane.EVENT_THROTTLED:
        return Throttled(link_id, code)
    if kind == _plane.EVENT_HEARTBEATS_ENDED:
        return HeartbeatsEnded(link_id, token)
    if kind == _plane.EVENT_GATE_SHUT:
        return GateShut(link_id)
    if kind == _plane.EVENT_UNKNOWN_COMMAND:
        raise InternalError(f"the data plane knows no command {code} of its side {detail}")
    raise InternalError(f"the control plane knows no event {kind}")


def _read_closed(
    link_id: int, reason: CloseReason, detail: int, told: bytes, awaited: Awaited
) -> LinkClosed:
    if reason is not CloseReason.LAYER:
        return LinkClosed(link_id, reason, detail, told, awaited)
    from kafka_fast.net.tls.causes import broken  # only a layer's failures come here

    words = broken(told.decode(errors="replace"), was_asked=detail != 0)
    return LinkClosed(link_id, reason, detail, b"", awaited, words)
