"""What has gone wrong on the links of one client: each kind counted, and the last one kept.

A wait that ends in vain says what the last trouble was: that a broker talks nonsense is no reason
to give up, another one may not, but whoever waits should hear of it.

Thread: control; what is counted may be read from any.
"""

from __future__ import annotations

import os
from collections import Counter

from kafka_fast.control.negotiation import foreign_protocol
from kafka_fast.control.plane import CloseReason, LinkClosed
from kafka_fast.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError, ProtocolError

__all__ = ["Troubles", "close_error"]


class Troubles:
    """The troubles of one client."""

    def __init__(self) -> None:
        self.closed: Counter[str] = Counter()
        """Links that were closed, by reason."""
        self.malformed: Counter[str] = Counter()
        """Answers that were not what their request asked for, by API."""
        self.failures = 0
        """How often a node could not be reached, or the link to it broke."""
        self._last: KafkaError | None = None
        self._last_at = 0.0
        self._explained: dict[int, ProtocolError] = {}  # by link

    def note_failure(self, error: KafkaError, now: float) -> None:
        """Count that there is no link to a node any more, and keep why."""
        self.failures += 1
        self._last, self._last_at = error, now

    def note_malformed(self, response_class: type[object]) -> None:
        """Count an answer that could not be read."""
        self.malformed[response_class.__name__.removesuffix("Response")] += 1

    def explain(self, link_id: int, error: ProtocolError) -> None:
        """Say what was wrong with the answer that a link is about to be closed for."""
        self._explained[link_id] = error

    def note_closed(self, event: LinkClosed) -> KafkaError | OSError | None:
        """Count that a link was closed; return why, None if the peer closed it."""
        self.closed[event.reason.name.lower()] += 1
        return self._explained.pop(event.link_id, None) or close_error(event)

    def stats(self) -> dict[str, object]:
        """Return what was counted, as `metrics()` has it."""
        return {
            "malformed_answers": dict(self.malformed),
            "links_closed": dict(self.closed),
            "link_failures": self.failures,
        }

    def since(self, began: float) -> KafkaError | None:
        """Return the last trouble, if there was one since then."""
        return self._last if self._last_at >= began else None


def close_error(event: LinkClosed) -> KafkaError | OSError | None:
    """Return why a link was closed; None if the peer closed it."""
    speaker = foreign_protocol(event.head)
    if speaker is not None:
        return ProtocolError(f"the other side talks like {speaker}")
    match event.reason:
        case CloseReason.EOF:
            return None
        case CloseReason.OS_ERROR:
            return OSError(event.detail, os.strerror(event.detail))
        case CloseReason.TIMEOUT:
            return KafkaTimeoutError("request.timeout.ms passed without an answer")
        case CloseReason.BAD_FRAME:
            return ProtocolError(
                f"the other side sent {event.head.hex(' ')}: a frame of {event.detail} bytes"
            )
        case CloseReason.BAD_RESPONSE:
            return ProtocolError("an answer that does not fit its request")
        case CloseReason.CORRELATION:
            return ProtocolError(f"an answer to nothing in flight (correlation id {event.detail})")
        case CloseReason.BY_US | CloseReason.IDLE:
            return KafkaConnectionError("closed by this client")
