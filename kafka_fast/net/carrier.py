"""Carries records between the planes: events as tuples up, the control plane's commands down.

The only module that knows both vocabularies.
"""

from __future__ import annotations

from typing import Any

from kafka_fast.control.plane import (
    Awaited,
    BadAnswer,
    CloseLink,
    CloseReason,
    Command,
    Fail,
    FailQueue,
    HeartbeatsEnded,
    LinkClosed,
    Misfit,
    NameTopic,
    PlaneEvent,
    Program,
    Punt,
    Refuse,
    Renumber,
    Report,
    Response,
    Route,
    RouteWanted,
    Row,
    SendBetween,
    SendRaw,
    SetAvailable,
    SetPartitions,
    SetProducerId,
    Split,
    StartHeartbeats,
    StopHeartbeats,
    Succeed,
    Thaw,
    Throttled,
)
from kafka_fast.control.producer.routes import FIRST_VERSION_WITH_IDS
from kafka_fast.dataplane import _plane
from kafka_fast.dataplane._plane import DataPlane
from kafka_fast.errors import Outcome
from kafka_fast.protocol.apis.fetch import FetchRequest
from kafka_fast.protocol.apis.produce import ProduceRequest

_OUTCOMES = {
    Outcome.NOT_SENT: _plane.OUTCOME_NOT_SENT,
    Outcome.REJECTED: _plane.OUTCOME_REJECTED,
    Outcome.MAYBE_WRITTEN: _plane.OUTCOME_MAYBE_WRITTEN,
}


API_KEYS = {Awaited.PRODUCE: ProduceRequest.api_key, Awaited.FETCH: FetchRequest.api_key}


def read_event(event: tuple[Any, ...]) -> PlaneEvent:
    """Return the control plane's record of one of the data plane's events."""
    kind, link_id, code, detail, token, frame, rows = event
    if kind == _plane.EVENT_RESPONSE:
        return Response(link_id, token, frame, code)
    if kind == _plane.EVENT_PUNT:
        return Punt(link_id, code, frame)
    if kind == _plane.EVENT_LINK_CLOSED:
        return LinkClosed(link_id, CloseReason(code), detail, frame or b"", Awaited(token))
    if kind == _plane.EVENT_BAD_ANSWER:
        ((asked, _, place, _, misfit, _, _, _, earlier, _),) = rows
        api_key = API_KEYS[Awaited(token)]
        return BadAnswer(
            link_id, api_key, code, frame or b"", Misfit(misfit), asked, place, bool(earlier)
        )
    if kind == _plane.EVENT_THROTTLED:
        return Throttled(link_id, code)
    if kind == _plane.EVENT_ROUTE:
        return RouteWanted(tuple(row[0] for row in rows))
    if kind == _plane.EVENT_HEARTBEATS_ENDED:
        return HeartbeatsEnded(link_id, token)
    own, *batches = (Row(*row) for row in rows)
    return Report(own, tuple(batches))


def topic_format(version: int) -> int:
    """Return how Produce requests of this version name a topic."""
    if version >= FIRST_VERSION_WITH_IDS:
        return _plane.FORMAT_ID
    if version in ProduceRequest.flexible:
        return _plane.FORMAT_COMPACT_NAME
    return _plane.FORMAT_NAME


def carry_out(plane: DataPlane, command: Command, seed: int) -> bool:
    """Carry out a command that is the data plane's; False if it is not.

    Args:
        plane: the data plane.
        command: what the control plane wants.
        seed: random bits, for a topic that is new.
    """
    match command:
        case Program(link_id, version, prefix, pos):
            plane.program(link_id, version, topic_format(version), prefix, pos)
        case NameTopic(topic, version, field):
            plane.topic(topic, seed)
            plane.name_topic(topic, topic_format(version), field)
        case SetPartitions(topic, count):
            plane.topic(topic, seed)
            plane.set_partitions(topic, count)
        case SetAvailable(queue_id, available):
            plane.set_available(queue_id, available)
        case Route(queue_id, link_id):
            plane.route(queue_id, link_id)
        case SetProducerId(producer_id, epoch):
            plane.set_producer_id(producer_id, epoch)
        case Thaw(queue_id, generation, at, single):
            plane.thaw(queue_id, generation, at, single)
        case Renumber(queue_id, generation, producer_id, epoch, base_sequence, serial, slice_):
            plane.renumber(queue_id, generation, producer_id, epoch, base_sequence, serial, slice_)
        case FailQueue(queue_id, error_code):
            plane.fail_queue(queue_id, error_code, _plane.OUTCOME_NOT_SENT)
        case Refuse(error):
            plane.refuse(error)
        case Fail() | Succeed() | Split():
            judge(plane, command)
        case _:
            return carry_out_transport(plane, command)
    return True


def carry_out_transport(plane: DataPlane, command: object) -> bool:
    """Carry out a command of the transport, which any client has; False if it is not one."""
    match command:
        case SendRaw(link_id, token, frame, timeout):
            plane.send_raw(link_id, token, frame, timeout)
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


def judge(plane: DataPlane, verdict: Fail | Succeed | Split) -> None:
    """Pass a verdict on one batch."""
    row = verdict.row
    place = (row.queue_id, row.generation)
    batch = (row.serial, row.slice)
    match verdict:
        case Fail(_, error_code, outcome):
            plane.judge(
                *place,
                _plane.VERDICT_FAIL,
                *batch,
                error_code=error_code,
                outcome=_OUTCOMES[outcome],
            )
        case Succeed(_, base_offset):
            plane.judge(*place, _plane.VERDICT_SUCCEED, *batch, base_offset=base_offset)
        case Split(_, size, error_code):
            plane.judge(
                *place,
                _plane.VERDICT_SPLIT,
                *batch,
                error_code=error_code,
                outcome=_plane.OUTCOME_REJECTED,
                size=size,
            )
