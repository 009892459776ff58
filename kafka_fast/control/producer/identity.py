"""The idempotent producer's identity: how it is got, bumped and given up.

    (no id) ── InitProducerId ──► (id, epoch 0) ── bump ──► (id, epoch + 1) … ── last ──► (no id)

A producer without transactions bumps its epoch by itself: brokers take a higher epoch at sequence
0 from whoever names the id (KIP-360). Partitions adopt a new identity one by one, each when
nothing of it is in flight, so several epochs may be in use for a while.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.config import CommonSettings
from kafka_fast.control.context import Context
from kafka_fast.control.instants import NEVER
from kafka_fast.control.link import Link
from kafka_fast.control.producer.verdicts import Identity
from kafka_fast.control.troubles import About
from kafka_fast.errors import (
    KafkaError,
    UnsupportedVersionError,
    broker_error,
    error_description,
)
from kafka_fast.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

LAST_EPOCH = 32767
"""Kafka keeps the highest epoch for itself: one before it, a new id is due."""


class IdentityKeeper:
    """Gets a producer id and keeps its epoch. Control thread only."""

    def __init__(
        self,
        context: Context[CommonSettings],
        *,
        on_identity: Callable[[Identity, float], None],
        on_fatal: Callable[[KafkaError], None],
    ) -> None:
        """Begin without an identity.

        Args:
            context: the producer's.
            on_identity: called with each new identity.
            on_fatal: called with an error after which there will be none.
        """
        self._questions = context.links.questions
        self._backoff = context.backoff
        self._troubles = context.troubles
        self._timeout = context.settings.request_timeout
        self._on_identity = on_identity
        self._on_fatal = on_fatal
        self._identity: Identity | None = None
        self._asking = False
        self._failures = 0
        self._ask_at = 0.0

    @property
    def identity(self) -> Identity | None:
        """What new batches are numbered under; None while there is none."""
        return self._identity

    def next_deadline(self) -> float:
        """Return when `tick` wants to ask; it needs a link for that."""
        return NEVER if self._asking or self._identity is not None else self._ask_at

    def tick(self, link: Link | None, now: float) -> None:
        """Ask for an id if none is there, over any link."""
        if link is None or now < self.next_deadline():
            return
        self._asking = True
        body = InitProducerIdRequest(
            transactional_id=None,
            transaction_timeout_ms=2**31 - 1,
            producer_id=-1,
            producer_epoch=-1,
        )
        try:
            self._questions.ask(
                link,
                body,
                InitProducerIdResponse,
                self._handle,
                self._handle_failure,
                timeout=self._timeout,
            )
        except UnsupportedVersionError as error:
            self._ask_at = NEVER
            self._on_fatal(error)

    def bump(self, now: float) -> Identity | None:
        """Take the next epoch; None if the last one is used up and a new id has to come first."""
        if self._identity is None:
            return None
        epoch = self._identity.epoch + 1
        if epoch >= LAST_EPOCH:
            self._identity = None
            self._ask_at = now
            return None
        self._identity = Identity(self._identity.producer_id, epoch)
        self._on_identity(self._identity, now)
        return self._identity

    def _handle(self, response: InitProducerIdResponse, now: float) -> None:
        self._asking = False
        if response.error_code == 0:
            self._failures = 0
            self._troubles.clear(About.PRODUCER_ID)
            self._identity = Identity(response.producer_id, response.producer_epoch)
            self._on_identity(self._identity, now)
            return
        error = broker_error(response.error_code, _say(response.error_code))
        if error.retriable:
            self._troubles.note(About.PRODUCER_ID, error, now)
            self._handle_failure(error, now)
        else:
            self._ask_at = NEVER
            self._on_fatal(error)

    def _handle_failure(self, error: KafkaError, now: float) -> None:
        self._asking = False
        self._ask_at = now + self._backoff.delay(self._failures)
        self._failures += 1


def _say(code: int) -> str:
    """Return what an answer means for whoever waits for a producer id."""
    return f"InitProducerId: {error_description(code)}"
