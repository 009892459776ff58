"""Nodes that have sent only unreadable answers for a while, so that a user who waits is told.

One answer that cannot be read costs a link; the next one may be readable. A node that has sent
nothing else for some seconds will most likely send nothing else. The first answer that can be read
ends that.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.control.connection_key import BOOTSTRAP, ConnectionKey
from kafka_fast.control.troubles import QUIET
from kafka_fast.errors import KafkaError, ProtocolError, UnsupportedVersionError
from kafka_fast.protocol.apis.find_coordinator import FindCoordinatorResponse
from kafka_fast.protocol.apis.init_producer_id import InitProducerIdResponse
from kafka_fast.protocol.apis.metadata import MetadataResponse

PATIENCE = 3.0
"""Seconds of nothing but nonsense after which it is told."""

WHATEVER = -1
"""In the place of an API: what came was no answer to anything."""

ANSWERED_BY_ANY = frozenset(
    {MetadataResponse.api_key, FindCoordinatorResponse.api_key, InitProducerIdResponse.api_key}
)
"""What any node may answer: one that can is enough."""


class Nonsense:
    """The rows of nonsense of one client. Control thread only."""

    def __init__(
        self,
        on_nonsense: Callable[[int, KafkaError], None] = lambda api_key, error: None,
        patience: float = PATIENCE,
    ) -> None:
        """Begin without any.

        Args:
            on_nonsense: called with the API (WHATEVER: all that a node was asked) and the last
                error of a row that is to be told of.
            patience: seconds after which a row is told of, and told of again.
        """
        self._on_nonsense = on_nonsense
        self._patience = patience
        self._rows: dict[tuple[ConnectionKey, int], tuple[float, float]] = {}  # began, last seen
        self._noted: set[ConnectionKey] = set()  # whose link breaks next for a noted answer

    def note_answer(
        self, key: ConnectionKey, api_key: int, error: KafkaError, now: float, *, was_well: bool
    ) -> None:
        """Take note of an answer that nobody can read: its link is closed next.

        Args:
            key: the connection that it came over.
            api_key: to what it is an answer.
            error: what is wrong with it.
            now: the time.
            was_well: an answer before it was well: no row goes on.
        """
        self._noted.add(key)
        row = _row(key, api_key)
        began, last = self._rows.get(row, (now, now))
        if was_well or now - last > QUIET:
            began = now
        self._go_on(row, began, error, now)

    def note_failure(self, key: ConnectionKey, error: KafkaError, since: float, now: float) -> None:
        """Take note of a link that broke, perhaps since something else than a broker talks there.

        Args:
            key: the connection.
            error: why it broke.
            since: when the row of links began that have broken soon after they were opened.
            now: the time.
        """
        if key in self._noted:
            self._noted.discard(key)
        elif isinstance(error, ProtocolError) and not isinstance(error, UnsupportedVersionError):
            row = (key, WHATEVER)
            began, _ = self._rows.get(row, (since, now))
            self._go_on(row, max(began, since), error, now)

    def note_sense(self, key: ConnectionKey, api_key: int) -> None:
        """Take note of an answer that could be read."""
        if self._rows:
            self._rows.pop(_row(key, api_key), None)

    def _go_on(
        self, row: tuple[ConnectionKey, int], began: float, error: KafkaError, now: float
    ) -> None:
        is_due = now - began >= self._patience
        self._rows[row] = (now if is_due else began, now)
        if is_due:
            self._on_nonsense(row[1], error)


def _row(key: ConnectionKey, api_key: int) -> tuple[ConnectionKey, int]:
    """Return whose nonsense counts: a connection's, or all nodes' together if any may answer."""
    return (BOOTSTRAP if api_key in ANSWERED_BY_ANY else key, api_key)
