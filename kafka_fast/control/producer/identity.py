"""The idempotent producer's id and epoch: how they are got, bumped and given up.

    (no id) ── InitProducerId ──► (id, epoch 0) ── bump ──► (id, epoch + 1) … ── last ──► (no id)

A producer without transactions bumps its epoch by itself. Brokers accept a higher epoch at sequence
0 from any client that names the producer id (KIP-360). Each partition adopts a new identity when
none of its batches is in flight, so several epochs may be in use for a while.

A producer with transactions has its epochs from the coordinator of its transactional id. That is
what fences its predecessors. So it asks for each new epoch, and names the one that it has: then it
cannot take the id back from a producer that has fenced it (KIP-360).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kafka_fast.config import CommonSettings, ProducerSettings
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.troubles import About, Reason
from kafka_fast.control.producer.verdicts import ProducerIdentity
from kafka_fast.control.requests.any_node import SILENT_NODE_PATIENCE
from kafka_fast.control.requests.call import ONLY, AnswerSource, Call
from kafka_fast.control.requests.meanings import Done, Meaning, Refused, Retry, meaning_of
from kafka_fast.control.requests.targets import AnyNode, Coordinator, CoordinatorKind
from kafka_fast.errors import ErrorCode, KafkaError, ProducerFencedError, broker_error
from kafka_fast.instants import NEVER
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
        target: AnyNode | Coordinator | None = None,
        on_identity: Callable[[ProducerIdentity, float], None],
        on_fatal: Callable[[KafkaError], None],
    ) -> None:
        """Start without an identity; `want_identity` asks for the first one.

        Args:
            context: the producer's.
            target: whom to ask; None: any node.
            on_identity: called with each new identity.
            on_fatal: called with an error after which no identity will come.
        """
        super().__init__(target or AnyNode(), timeout=context.settings.request_timeout)
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

    def ask_no_more(self) -> None:
        """Forget that an identity was asked for: the producer cannot go on."""
        self._wanted.cancel()

    def why_waiting(self) -> Reason | None:
        """Return why there is no identity yet; None: there is, or nobody asks. Any thread."""
        return self._wanted.why_waiting(ONLY)

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


FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})

FORGOTTEN = frozenset({ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.UNKNOWN_PRODUCER_ID})
"""The coordinator has another producer id for the transactional id, or none."""

FIRST_VERSION_WITH_EPOCH = 3
"""Of InitProducerId (KIP-360)."""

AGAIN_SOON = 0.02
"""Seconds before the next try while the transaction of a predecessor is being ended."""


class TransactionalIdCall(InitProducerIdCall):
    """Gets the producer id and epochs of a transactional id from its coordinator."""

    beside_after = NEVER

    def __init__(
        self,
        context: Context[ProducerSettings],
        transactional_id: str,
        *,
        on_identity: Callable[[ProducerIdentity, float], None],
        on_fatal: Callable[[KafkaError], None],
    ) -> None:
        """Start without an identity.

        Args:
            context: the producer's.
            transactional_id: transactional.id.
            on_identity: called with each identity that the coordinator was asked for.
            on_fatal: called with an error after which no identity will come.
        """
        self._transactional_id = transactional_id
        self._timeout_ms = context.settings.transaction_timeout_ms
        self._last: ProducerIdentity | None = None  # the one that a new epoch follows
        super().__init__(
            context,
            target=Coordinator(CoordinatorKind.TRANSACTION, transactional_id),
            on_identity=on_identity,
            on_fatal=on_fatal,
        )

    def adopt(self, identity: ProducerIdentity) -> None:
        """Use an identity that came with another answer (EndTxn)."""
        self._identity = identity

    def renew(self) -> None:
        """Ask for the next epoch."""
        self._last, self._identity = self._identity, None
        self.want_identity()

    def describe(self, item: str) -> str:
        """Return the call with its transactional id."""
        return f"{self.api} of {self._transactional_id!r}"

    def build(self, items: Sequence[str], version: int) -> InitProducerIdRequest:
        """Return the request for an epoch of the transactional id."""
        names_last = self._last is not None and version >= FIRST_VERSION_WITH_EPOCH
        last = self._last if names_last else None
        return InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=-1 if last is None else last.producer_id,
            producer_epoch=-1 if last is None else last.epoch,
        )

    def read(
        self, answer: InitProducerIdResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[ProducerIdentity]]]:
        """Return the identity."""
        code = answer.error_code
        if not code:
            yield ONLY, Done(ProducerIdentity(answer.producer_id, answer.producer_epoch))
            return
        about = f" of {self._transactional_id!r}"
        meaning = meaning_of(code, self.api, about)
        if code in FENCED and self._last is not None:
            error = ProducerFencedError(fenced_text(self._transactional_id, meaning.error))
            error.__cause__ = meaning.error
            yield ONLY, Refused(error)
        elif code in FORGOTTEN and self._last is not None:
            self._last = None  # the id has expired at the coordinator: begin anew
            yield ONLY, Retry(meaning.error, AGAIN_SOON)
        elif code == ErrorCode.CONCURRENT_TRANSACTIONS:
            yield ONLY, Retry(meaning.error, AGAIN_SOON)
        elif code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            yield ONLY, Refused(broker_error(code, self._timeout_text()))
        else:
            yield ONLY, meaning

    def _timeout_text(self) -> str:
        return (
            f"transaction.timeout.ms ({self._timeout_ms}) is more than the broker's "
            "transaction.max.timeout.ms allows (900000, unless it was changed)"
        )


def fenced_text(transactional_id: str, cause: KafkaError) -> str:
    """Return what is said of a producer that was fenced."""
    return (
        f"transactional id {transactional_id!r} belongs to a newer producer: another process uses "
        "the same id, an operator has fenced it, or this one stood still for longer than "
        f"transaction.timeout.ms while a new one began; {cause}"
    )
