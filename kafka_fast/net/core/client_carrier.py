"""Brings the events of any client's data plane to its control plane.

The carriers (this module, `producer_carrier`, `consumer_carrier`, and what a build makes beside
them from the classes of the messages) alone know both planes.
"""

from __future__ import annotations

from typing import TypeVar

from kafka_fast.control.messages import CloseReason, DumpEvent, LinkClosed, TransportEvent
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.net._transport_carrier import read_transport
from kafka_fast.values import replace

E = TypeVar("E")


def read_event(event: PlaneEvent) -> TransportEvent | DumpEvent:
    """Return the control plane's record for one of the transport's events.

    Raises:
        InternalError: the event is not one of the transport's.
    """
    return in_words(read_transport(event))


def in_words(event: E) -> E:
    """Return the event; with the words for what a layer says, if that closed a link."""
    if not isinstance(event, LinkClosed) or event.reason is not CloseReason.LAYER:
        return event
    from kafka_fast.net.tls.causes import broken  # only a layer's failures come here

    words = broken(event.head.decode(errors="replace"), was_asked=event.detail != 0)
    return replace(event, head=b"", words=words)
