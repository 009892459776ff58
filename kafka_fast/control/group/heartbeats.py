"""A member's heartbeats in either protocol. The data plane sends them, one at a time.

    keep ──► every period … ──► an unexpected answer ──► handle; the heartbeats go on
                           └──► the link is gone ──► handle_lost
    send_between: another request, once, between two heartbeats

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kafka_fast.control.connections.links import Link
from kafka_fast.control.in_flight_requests import InFlightRequests
from kafka_fast.errors import KafkaError
from kafka_fast.protocol.schema import Request, Response

R = TypeVar("R", bound=Response)
S = TypeVar("S", bound=Response)


class Heartbeats(Generic[R]):
    """The heartbeats of one member. Control thread only."""

    def __init__(
        self,
        requests: InFlightRequests,
        handle: Callable[[R, float], None],
        handle_lost: Callable[[KafkaError, float], None],
        *,
        timeout: float,
    ) -> None:
        """Send no heartbeats before `keep_sending`.

        Args:
            requests: the client's requests in flight.
            handle: called with each unexpected answer.
            handle_lost: called when the link is gone, which ends the heartbeats.
            timeout: seconds for each answer.
        """
        self._requests = requests
        self._handle = handle
        self._handle_lost = handle_lost
        self._timeout = timeout
        self._token: int | None = None  # of the running heartbeats
        self._link: Link | None = None  # the link that they go over

    @property
    def is_running(self) -> bool:
        """Whether heartbeats are being sent."""
        return self._token is not None

    @property
    def link(self) -> Link | None:
        """The link of the heartbeats; None: none are sent."""
        return self._link

    def keep_sending(
        self,
        link: Link,
        body: Request,
        expected: R,
        *,
        period: float,
        delay: float = 0.0,
        epoch_field: str | None = None,
    ) -> None:
        """Send this heartbeat every period, and no other.

        Args:
            link: to the coordinator.
            body: the heartbeat.
            expected: the answer that nobody has to hear of.
            period: seconds from one to the next.
            delay: seconds to the first.
            epoch_field: the field with the member's epoch, which the data plane keeps up to date;
                see `InFlightRequests.start_heartbeats`.
        """
        self.stop_sending()
        self._link = link
        self._token = self._requests.start_heartbeats(
            link,
            body,
            expected,
            self._handle,
            self._lose,
            period=period,
            timeout=self._timeout,
            delay=delay,
            epoch_field=epoch_field,
        )

    def send_between(
        self,
        body: Request,
        response_class: type[S],
        handle: Callable[[S, float], None],
        *,
        timeout: float | None = None,
    ) -> None:
        """Send another request once, between two heartbeats.

        See `InFlightRequests.send_between`.
        """
        assert self._token is not None
        assert self._link is not None
        patience = self._timeout if timeout is None else timeout
        self._requests.send_between(
            self._token, self._link, body, response_class, handle, timeout=patience
        )

    def stop_sending(self) -> None:
        """Send no more heartbeats. An answer that is still to come is dropped."""
        if self._token is not None:
            self._requests.stop_heartbeats(self._token)
            self._token = self._link = None

    def _lose(self, error: KafkaError, now: float) -> None:
        self._token = self._link = None
        self._handle_lost(error, now)
