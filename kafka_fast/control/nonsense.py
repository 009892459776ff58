"""Whose answers have been nonsense for a while, so that a user who waits for them should know.

One answer that cannot be read costs a link, and the next one may be well. Where nothing else has
come for some seconds, nothing else is to be expected. A row of nonsense ends with an answer that
can be read.

Thread: control.
"""

from __future__ import annotations

from kafka_fast.control.troubles import QUIET

PATIENCE = 3.0
"""Seconds of nothing but nonsense after which it is told."""

WHATEVER = -1
"""In the place of an API: what came was no answer to anything."""


class Nonsense:
    """The rows of nonsense of one client. Control thread only."""

    def __init__(self, patience: float = PATIENCE) -> None:
        """Begin without any.

        Args:
            patience: seconds after which a row is told of, and told of again.
        """
        self._patience = patience
        self._rows: dict[tuple[int, int], tuple[float, float]] = {}  # began or told, last seen

    def note(self, node_id: int, api_key: int, now: float, *, was_well: bool = False) -> bool:
        """Take note of an answer that nobody can read; return whether that is to be told now.

        Args:
            node_id: whose answer it is.
            api_key: to what.
            now: the time.
            was_well: an answer before it was well: no row goes on.
        """
        began, last = self._rows.get((node_id, api_key), (now, now))
        if was_well or now - last > QUIET:
            began = now
        return self._look((node_id, api_key), began, now)

    def note_link(self, node_id: int, since: float, now: float) -> bool:
        """Likewise, of a node that speaks no Kafka at all, or loses its frames.

        Args:
            node_id: the node.
            since: when the row of links began that have broken soon after they were opened.
            now: the time.
        """
        began, _ = self._rows.get((node_id, WHATEVER), (since, now))
        return self._look((node_id, WHATEVER), max(began, since), now)

    def note_sense(self, node_id: int, api_key: int) -> None:
        """An answer could be read."""
        if self._rows:
            self._rows.pop((node_id, api_key), None)

    def _look(self, key: tuple[int, int], began: float, now: float) -> bool:
        is_due = now - began >= self._patience
        self._rows[key] = (now if is_due else began, now)
        return is_due
