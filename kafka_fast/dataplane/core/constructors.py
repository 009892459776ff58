"""What makes an object of each kind of event: a carrier, for `PlaneEvent.read`.

The data plane knows no class of the control plane. So whoever reads an event says, kind by kind,
what it becomes. `src_c/kf_event.h` says what the arguments mean. A type checker finds a carrier
that lacks a kind.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

R_co = TypeVar("R_co", covariant=True)


class EventConstructors(Protocol[R_co]):
    """Builds the objects of the data plane's events: a function for each kind, and kind of row."""

    # ---- the transport ----

    def raw_response(self, link_id: int, token: int, frame: bytes | None, reason: int, /) -> R_co:
        """`reason`: a CloseReason, if there is no frame."""

    def link_closed(
        self, link_id: int, reason: int, detail: int, head: bytes, awaited: int, /
    ) -> R_co:
        """`awaited`: kind of the oldest request in flight, or 0."""

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
        /,
    ) -> R_co:
        """`request`: its kind."""

    def throttled(self, link_id: int, throttle_ms: int, /) -> R_co:
        """A broker throttles this client."""

    def heartbeats_ended(self, link_id: int, token: int, /) -> R_co:
        """The user is stuck."""

    def gate_shut(self, link_id: int, /) -> R_co:
        """Nothing is in flight on a link whose gate is shut."""

    def link_traces(self, link_id: int, node_id: int, in_flight: int, ring: bytes, /) -> R_co:
        """`ring`: for `read_traces`."""

    def traces_ended(self, token: int, /) -> R_co:
        """All links were dumped."""

    def unknown_command(self, side: int, kind: int, /) -> R_co:
        """A command was unknown, which is our own fault."""

    # ---- the produce side ----

    def queue_row(
        self, queue_id: int, generation: int, next_sequence: int, may_have_gap: bool, /
    ) -> Any:
        """A frozen queue."""

    def batch_row(
        self,
        queue_id: int,
        generation: int,
        serial: int,
        slice: int,
        error_code: int,
        base_offset: int,
        base_sequence: int,
        record_count: int,
        size: int,
        wire_size: int,
        failures: int,
        maybe_written: bool,
        /,
    ) -> Any:
        """One of its batches."""

    def produce_punt(
        self, link_id: int, version: int, frame: bytes, batches: tuple[Any, ...], /
    ) -> R_co:
        """`batches`: rows."""

    def route_wanted(self, queue_ids: tuple[int, ...], /) -> R_co:
        """Queues with data have no link."""

    def queue_report(self, queue: Any, batches: tuple[Any, ...], /) -> R_co:
        """A queue row, and batch rows."""

    # ---- the fetch side ----

    def stream_row(
        self, stream_id: int, generation: int, error_code: int, position: int, last_epoch: int, /
    ) -> Any:
        """A stream that is not fetched any more."""

    def fetch_punt(
        self, link_id: int, version: int, frame: bytes, streams: tuple[Any, ...], /
    ) -> R_co:
        """`streams`: rows."""

    def streams_stopped(self, streams: tuple[Any, ...], /) -> R_co:
        """`streams`: rows."""
