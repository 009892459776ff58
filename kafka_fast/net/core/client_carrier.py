"""Makes the control plane's records of the events of any client's data plane.

The carriers (this module, `producer_carrier`, `consumer_carrier`, and what a build makes beside
them to pack commands) alone know the vocabulary of both planes.
"""

from __future__ import annotations

from typing import Any, NoReturn

from kafka_fast.control.messages import (
    Awaited,
    BadAnswer,
    CloseReason,
    DumpEvent,
    GateShut,
    HeartbeatsEnded,
    LinkClosed,
    LinkTraces,
    Misfit,
    RawResponse,
    Throttled,
    TracesEnded,
    TransportEvent,
)
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.dataplane.core.constructors import EventConstructors
from kafka_fast.errors import InternalError
from kafka_fast.protocol.apis.records.fetch import FetchRequest
from kafka_fast.protocol.apis.records.produce import ProduceRequest

API_KEYS = {Awaited.PRODUCE: ProduceRequest.api_key, Awaited.FETCH: FetchRequest.api_key}


class TransportConstructors:
    """The transport's part of `dataplane.core.constructors.EventConstructors`."""

    def raw_response(
        self, link_id: int, token: int, frame: bytes | None, reason: int
    ) -> RawResponse:
        return RawResponse(link_id, token, frame, reason)

    def link_closed(
        self, link_id: int, reason: int, detail: int, head: bytes, awaited: int
    ) -> LinkClosed:
        if reason != CloseReason.LAYER:
            return LinkClosed(link_id, CloseReason(reason), detail, head, Awaited(awaited))
        from kafka_fast.net.tls.causes import broken  # only a layer's failures come here

        words = broken(head.decode(errors="replace"), was_asked=detail != 0)
        return LinkClosed(link_id, CloseReason.LAYER, detail, b"", Awaited(awaited), words)

    def bad_answer(
        self,
        link_id: int,
        request: int,
        version: int,
        frame: bytes,
        misfit: int,
        asked: int,
        place: int,
        was_well: bool,
    ) -> BadAnswer:
        api_key = API_KEYS[Awaited(request)]
        return BadAnswer(link_id, api_key, version, frame, Misfit(misfit), asked, place, was_well)

    def throttled(self, link_id: int, throttle_ms: int) -> Throttled:
        return Throttled(link_id, throttle_ms)

    def heartbeats_ended(self, link_id: int, token: int) -> HeartbeatsEnded:
        return HeartbeatsEnded(link_id, token)

    def gate_shut(self, link_id: int) -> GateShut:
        return GateShut(link_id)

    def link_traces(self, link_id: int, node_id: int, in_flight: int, ring: bytes) -> LinkTraces:
        return LinkTraces(link_id, node_id, in_flight, ring)

    def traces_ended(self, token: int) -> TracesEnded:
        return TracesEnded(token)

    def unknown_command(self, side: int, kind: int) -> NoReturn:
        raise InternalError(f"the data plane knows no command {kind} of its side {side}")


class NoQueues:
    """The constructors of a client that does not produce: nothing of that may come up."""

    def queue_row(self, *fields: Any) -> NoReturn:
        raise InternalError("a queue of a client that does not produce")

    def batch_row(self, *fields: Any) -> NoReturn:
        raise InternalError("a batch of a client that does not produce")

    def produce_punt(self, *fields: Any) -> NoReturn:
        raise InternalError("a Produce answer to a client that does not produce")

    def route_wanted(self, *fields: Any) -> NoReturn:
        raise InternalError("a client that does not produce has queues")

    def queue_report(self, *fields: Any) -> NoReturn:
        raise InternalError("a report to a client that does not produce")


class NoStreams:
    """The constructors of a client that does not fetch: nothing of that may come up."""

    def stream_row(self, *fields: Any) -> NoReturn:
        raise InternalError("a stream of a client that does not fetch")

    def fetch_punt(self, *fields: Any) -> NoReturn:
        raise InternalError("a Fetch answer to a client that does not fetch")

    def streams_stopped(self, *fields: Any) -> NoReturn:
        raise InternalError("a client that does not fetch has streams")


class _Constructors(TransportConstructors, NoQueues, NoStreams):
    """For a client that neither produces nor fetches."""


_CONSTRUCTORS: EventConstructors[TransportEvent | DumpEvent] = _Constructors()


def read_event(event: PlaneEvent) -> TransportEvent | DumpEvent:
    """Return the control plane's record for one of the transport's events.

    Raises:
        InternalError: the event is not one of the transport's, or says that a command was unknown.
    """
    return event.read(_CONSTRUCTORS)
