"""The idempotent producer's id and epoch: how they are got, bumped and given up.

    (no id) ── InitProducerId ──► (id, epoch 0) ── bump ──► (id, epoch + 1) … ── last ──► (no id)

A producer without transactions bumps its epoch by itself. Brokers accept a higher epoch at sequence
0 from any client that names the producer id (KIP-360). Each partition adopts a new identity when
none of its batches is in flight, so several epochs may be in use for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kafka_fast.config import CommonSettings
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.troubles import About
from kafka_fast.control.producer.verdicts import ProducerIdentity
from kafka_fast.control.requests.any_node import SILENT_NODE_PATIENCE
from kafka_fast.control.requests.call import ONLY, AnswerSource, Call
from kafka_fast.control.requests.meanings import Done, Meaning, meaning_of
from kafka_fast.control.requests.targets import AnyNode
from kafka_fast.errors import KafkaError
from kafka_fast.protocol.apis.transactions.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

LAST_EPOCH = 32767
"""The highest epoch, which Kafka keeps for itself: a producer gets a new id instead."""


class InitProducerIdCall(Call[str, ProducerIdentity]):
    """Gets a producer id and keeps its epoch. Control thread only."""

    request_class = InitProducerIdRequest
    response_class = InitProducerIdResponse
    beside_after = SILENT_NODE_PATIENCE

    def __init__(
        self,
        context: Context[CommonSettings],
        *,
        on_identity: Callable[[ProducerIdentity, float], None],
        on_fatal: Callable[[KafkaError], None],
    ) -> None:
        """Start without an identity; `want_identity` asks for the first one.

        Args:
            context: the producer's.
            on_identity: called with each new identity.
            on_fatal: called with an error after which no identity will come.
        """
        super().__init__(AnyNode(), timeout=context.settings.request_timeout)
        self._on_identity = on_identity
        self._on_fatal = on_fatal
        self._identity: ProducerIdentity | None = None
        self._wanted = context.requester.open_call(self)

    @property
    def identity(self) -> ProducerIdentity | None:
        """The producer id and epoch of new batches; None while there are none."""
        return self._identity

    def want_identity(self) -> None:
        """Ask for a producer id, if there is none."""
        if self._identity is None and ONLY not in self._wanted:
            self._wanted.add_item(ONLY)

    def replace_identity(self) -> None:
        """Ask for another producer id."""
        self._identity = None
        self.want_identity()

    def bump(self, now: float) -> ProducerIdentity | None:
        """Take the next epoch; None if the epochs are used up and a new id has to come first."""
        if self._identity is None:
            return None
        epoch = self._identity.epoch + 1
        if epoch >= LAST_EPOCH:
            self.replace_identity()
            return None
        self._identity = ProducerIdentity(self._identity.producer_id, epoch)
        self._on_identity(self._identity, now)
        return self._identity

    # ---- the call ----

    def subject(self, item: str) -> About:
        """Keep troubles under `About.PRODUCER_ID`."""
        return About.PRODUCER_ID

    def build(self, items: Sequence[str], version: int) -> InitProducerIdRequest:
        """Return the request for an id without a transactional id."""
        return InitProducerIdRequest(
            transactional_id=None,
            transaction_timeout_ms=2**31 - 1,
            producer_id=-1,
            producer_epoch=-1,
        )

    def read(
        self, answer: InitProducerIdResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[ProducerIdentity]]]:
        """Return the identity."""
        if answer.error_code:
            yield ONLY, meaning_of(answer.error_code, self.api)
        else:
            yield ONLY, Done(ProducerIdentity(answer.producer_id, answer.producer_epoch))

    def handle_done(self, item: str, value: ProducerIdentity, now: float) -> None:
        """Use the identity from now on."""
        self._identity = value
        self._on_identity(value, now)

    def handle_failed(self, item: str, error: KafkaError, now: float) -> None:
        """Tell that no identity will come."""
        self._on_fatal(error)
