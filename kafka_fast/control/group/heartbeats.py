"""A member's heartbeat, repeated by the data plane: one at a time, of either protocol.

    keep ──► repeated … ──► another answer than expected ──► handle
                       └──► the link is gone ──► handle_lost

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kafka_fast.control.links import Link, Links
from kafka_fast.errors import KafkaError
from kafka_fast.protocol.schema import Request, Response

R = TypeVar("R", bound=Response)


class Heartbeats(Generic[R]):
    """What keeps one member alive. Control thread only."""

    def __init__(
        self,
        links: Links,
        handle: Callable[[R, float], None],
        handle_lost: Callable[[KafkaError, float], None],
        *,
        timeout: float,
    ) -> None:
        """Begin without any.

        Args:
            links: repeat them.
            handle: called with an answer that was not expected; nothing is repeated after it.
            handle_lost: called when the link is gone; likewise.
            timeout: seconds for each answer.
        """
        self._links = links
        self._handle = handle
        self._handle_lost = handle_lost
        self._timeout = timeout
        self._token: int | None = None  # of the repetition under way
        self._is_recalled = False

    @property
    def is_running(self) -> bool:
        """Whether one is repeated, or its last answer is still to come."""
        return self._token is not None

    @property
    def is_recalled(self) -> bool:
        """Whether the next answer will end it."""
        return self._token is not None and self._is_recalled

    def keep(
        self, link: Link, body: Request, expected: R, *, period: float, delay: float = 0.0
    ) -> None:
        """Repeat this one, and no other.

        Args:
            link: to the coordinator.
            body: the heartbeat.
            expected: the answer that needs nobody.
            period: seconds from one to the next.
            delay: seconds to the first.
        """
        self.stop()
        self._is_recalled = False
        self._token = self._links.repeat(
            link,
            body,
            expected,
            self._take,
            self._lose,
            period=period,
            timeout=self._timeout,
            delay=delay,
        )

    def recall(self) -> None:
        """End it with the next answer, which is handled whatever it says."""
        if self._token is not None and not self._is_recalled:
            self._is_recalled = True
            self._links.recall_repeat(self._token)

    def stop(self) -> None:
        """End it at once; an answer that is still to come is nobody's."""
        if self._token is not None:
            self._links.stop_repeat(self._token)
            self._token = None

    def _take(self, response: R, now: float) -> None:
        self._token = None
        self._handle(response, now)

    def _lose(self, error: KafkaError, now: float) -> None:
        self._token = None
        self._handle_lost(error, now)
