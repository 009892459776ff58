"""Finds nodes that have sent nothing but unreadable answers for a while, and tells the user.

After one unreadable answer the link is closed, and the next answer may be readable. But a node that
has sent only unreadable answers for some seconds will most likely go on so. Such a *row* of
unreadable answers ends with the first readable one.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kafka_fast.control.connections.connection_key import BOOTSTRAP, ConnectionKey
from kafka_fast.control.diagnosis.outages import QUIET
from kafka_fast.errors import KafkaError, ProtocolError, UnsupportedVersionError
from kafka_fast.protocol.apis.cluster.find_coordinator import FindCoordinatorResponse
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse
from kafka_fast.protocol.apis.transactions.init_producer_id import InitProducerIdResponse

UNREADABLE_PATIENCE = 3.0
"""Seconds after which a row of unreadable answers is told."""

WHATEVER = -1
"""In the place of an API: the node sent something that is no answer to any request."""

ANSWERED_BY_ANY = frozenset(
    {MetadataResponse.api_key, FindCoordinatorResponse.api_key, InitProducerIdResponse.api_key}
)
"""APIs that any node may answer: one node with readable answers is enough."""


Row: TypeAlias = tuple[ConnectionKey, int]
"""A row of unreadable answers: the connection (BOOTSTRAP: any), and the API."""


class UnreadableAnswers:
    """The rows of unreadable answers of one client. Control thread only."""

    def __init__(
        self,
        on_unreadable: Callable[[Row, KafkaError], None] = lambda row, error: None,
        patience: float = UNREADABLE_PATIENCE,
    ) -> None:
        """Take whom to tell of a row, and after how long.

        Args:
            on_unreadable: called when a row has gone on for `patience`, with the row (its API is
                WHATEVER if every API is concerned) and the last error.
            patience: seconds after which a row is told, and told again.
        """
        self._on_unreadable = on_unreadable
        self._patience = patience
        self._rows: dict[Row, tuple[float, float]] = {}  # began, last seen
        self._noted: set[ConnectionKey] = set()  # their links are closed next, for a noted answer

    def goes_on(self, row: Row) -> bool:
        """Tell whether no readable answer has ended a row. Any thread."""
        return row in self._rows

    def note_answer(
        self, key: ConnectionKey, api_key: int, error: KafkaError, now: float, *, was_well: bool
    ) -> None:
        """Start or continue a row with an unreadable answer, whose link is closed next.

        Args:
            key: the connection that it came over.
            api_key: the API of its request.
            error: what is wrong with it.
            now: the time.
            was_well: an earlier answer was readable, so this one begins a new row.
        """
        self._noted.add(key)
        row = _row(key, api_key)
        began, last = self._rows.get(row, (now, now))
        if was_well or now - last > QUIET:
            began = now
        self._go_on(row, began, error, now)

    def note_failure(self, key: ConnectionKey, error: KafkaError, since: float, now: float) -> None:
        """Start or continue a row if a link broke because the other side is no Kafka broker.

        Args:
            key: the connection.
            error: why it broke.
            since: when the first of a row of links broke soon after it was opened.
            now: the time.
        """
        if key in self._noted:
            self._noted.discard(key)
        elif isinstance(error, ProtocolError) and not isinstance(error, UnsupportedVersionError):
            row = (key, WHATEVER)
            began, _ = self._rows.get(row, (since, now))
            self._go_on(row, max(began, since), error, now)

    def note_sense(self, key: ConnectionKey, api_key: int) -> None:
        """End the row of a connection and an API: a readable answer has come."""
        if self._rows:
            self._rows.pop(_row(key, api_key), None)

    def _go_on(self, row: Row, began: float, error: KafkaError, now: float) -> None:
        is_due = now - began >= self._patience
        self._rows[row] = (now if is_due else began, now)
        if is_due:
            self._on_unreadable(row, error)


def _row(key: ConnectionKey, api_key: int) -> Row:
    """Return which row an answer belongs to: one of its connection, or one of all nodes."""
    return (BOOTSTRAP if api_key in ANSWERED_BY_ANY else key, api_key)
