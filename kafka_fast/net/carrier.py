"""Translates between the planes of any client: events go up as tuples, commands go down.

The three carriers (this module, and `carrier.py` in kafka_fast/producer and kafka_fast/consumer)
alone know the vocabulary of both planes.
"""

from __future__ import annotations

from typing import Any

from kafka_fast.control.messages import (
    Awaited,
    BadAnswer,
    CloseLink,
    CloseReason,
    GateShut,
    HeartbeatsEnded,
    LinkClosed,
    Misfit,
    OpenGate,
    PauseLink,
    RawResponse,
    SendBetween,
    SendRaw,
    StartHeartbeats,
    StopHeartbeats,
    Throttled,
    TransportEvent,
)
from kafka_fast.dataplane.core import _plane
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis.records.fetch import FetchRequest
from kafka_fast.protocol.apis.records.produce import ProduceRequest

API_KEYS = {Awaited.PRODUCE: ProduceRequest.api_key, Awaited.FETCH: FetchRequest.api_key}


def read_event(event: tuple[Any, ...]) -> TransportEvent:
    """Return the control plane's record for one of the transport's events.

    Raises:
        ValueError: the event is not one of the transport's.
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
    raise ValueError(f"event of kind {kind} is not known")


def _read_closed(
    link_id: int, reason: CloseReason, detail: int, told: bytes, awaited: Awaited
) -> LinkClosed:
    if reason is not CloseReason.LAYER:
        return LinkClosed(link_id, reason, detail, told, awaited)
    from kafka_fast.net.tls.causes import broken  # only a layer's failures come here

    words = broken(told.decode(errors="replace"), was_asked=detail != 0)
    return LinkClosed(link_id, reason, detail, b"", awaited, words)


def carry_out(plane: DataPlane, command: object) -> bool:
    """Carry out a command of the transport; return False for any other command."""
    match command:
        case SendRaw(link_id, token, frame, timeout, is_of_login):
            plane.send_raw(link_id, token, frame, timeout, is_of_login)
        case OpenGate(link_id, until):
            plane.open_gate(link_id, 0.0 if until == NEVER else until)
        case PauseLink(link_id, seconds):
            plane.pause_link(link_id, seconds)
        case CloseLink(link_id):
            plane.close_link(link_id)
        case StartHeartbeats(link_id, token, frame, period, expected, timeout, delay, epoch_pos):
            plane.start_heartbeats(
                link_id, token, frame, period, expected, timeout, delay, epoch_pos
            )
        case StopHeartbeats(token):
            plane.stop_heartbeats(token)
        case SendBetween(token, own_token, heard, frame, timeout):
            plane.send_between(token, own_token, heard, frame, timeout)
        case _:
            return False
    return True
