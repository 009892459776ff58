"""Questions that only a partition's leader can answer: ListOffsets, OffsetForLeaderEpoch.

    add(partition, detail) ─► by leader, one request for each node ─► on_result / on_error

A question stays until it is answered, refused for good, or discarded: a leader that has moved, a
link that broke, a broker that is not ready yet only mean another try. The request's form is the
`Form`'s business, so that one engine serves every such API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from kafka_fast.config import CommonSettings
from kafka_fast.control import silence
from kafka_fast.control.backoff import KeyedBackoff
from kafka_fast.control.context import Context
from kafka_fast.control.instants import LONG_AGO, NEVER
from kafka_fast.control.link import Link
from kafka_fast.control.troubles import Reason
from kafka_fast.errors import (
    ERRORS,
    BrokerError,
    ErrorCode,
    KafkaError,
    ProtocolError,
    broker_error,
)
from kafka_fast.protocol.apis import api_name
from kafka_fast.protocol.schema import Request
from kafka_fast.protocol.schema import Response as ResponseBody
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

D = TypeVar("D")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Form(Protocol[R_co]):
    """How a question is put and its answer read."""

    response_class: type[ResponseBody]
    max_version: int | None

    def request(
        self, wanted: Mapping[TopicPartition, Any], epochs: Mapping[TopicPartition, int]
    ) -> Request:
        """Return the request for these partitions; `epochs` are their leaders', -1 if unknown."""

    def read(self, response: Any) -> Iterable[tuple[TopicPartition, int, R_co]]:
        """Return partition, error code and answer for each partition of a response."""


class _Question(Value, Generic[D], frozen=False):
    detail: D
    asked: int | None = None
    """The link over which it is in flight."""
    refusal: KafkaError | None = None
    """What its last answer was, if asking again may help."""
    refused_by: int | None = None
    """The node that gave this answer."""
    is_seen: bool = False
    """A tick has looked at it, and worked towards the link that it needs."""


class LeaderQuery(Generic[D, R]):
    """Questions of one kind. Control thread only."""

    def __init__(
        self,
        form: Form[R],
        context: Context[CommonSettings],
        *,
        on_result: Callable[[TopicPartition, D, R, float], None],
        on_error: Callable[[TopicPartition, D, KafkaError, float], None],
    ) -> None:
        """Begin without questions.

        Args:
            form: of requests and answers.
            context: the client's.
            on_result: called with partition, detail, answer and time.
            on_error: called with why there will be none.
        """
        self._form = form
        self._cluster = context.cluster
        self._links = context.links
        self._discovery = context.discovery
        self._backoff: KeyedBackoff[TopicPartition] = KeyedBackoff(context.backoff)
        self._timeout = context.settings.request_timeout
        self._on_result = on_result
        self._on_error = on_error
        self._questions: dict[TopicPartition, _Question[D]] = {}
        self._ticked_at = LONG_AGO

    def __contains__(self, partition: TopicPartition) -> bool:
        """Tell whether this partition's question is open."""
        return partition in self._questions

    def __len__(self) -> int:
        """Return how many questions are open."""
        return len(self._questions)

    @property
    def topics(self) -> set[str]:
        """The topics that are asked about."""
        return {partition.topic for partition in self._questions}

    def silence(self, partition: TopicPartition) -> Reason | None:
        """Return why a partition's question is open; None if it is not. Any thread."""
        question = self._questions.get(partition)
        if question is None:
            return None
        refusal, leader = question.refusal, self._cluster.leader(*partition)
        is_last = leader is not None and leader.id == question.refused_by
        if refusal is None or not is_last or not self._has_link(partition):
            return silence.reason(self._cluster, self._links, partition)
        answers = "its leader answers " if isinstance(refusal, BrokerError) else ""
        return Reason(f"{answers}{refusal}", refusal)

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces.

        A partition without a leader, or whose leader has no link, has been looked at by the last
        tick: metadata, or a link that opens, bring the next one.
        """
        deadline = NEVER
        for partition, question in self._questions.items():
            ready_at = self._backoff.ready_at(partition)
            if question.asked is not None:
                continue
            is_new = not question.is_seen or ready_at > self._ticked_at
            if is_new or self._has_link(partition):
                deadline = min(deadline, ready_at)
        return deadline

    # Commands

    def add(self, partition: TopicPartition, detail: D, now: float) -> None:
        """Ask, also if the last answer for this partition is not there yet (it will not count)."""
        self._questions[partition] = _Question(detail)
        self._cluster.want_topic(partition.topic, now)

    def discard(self, partition: TopicPartition) -> None:
        """Nobody wants this answer any more."""
        self._questions.pop(partition, None)
        self._backoff.handle_success(partition)

    def tick(self, now: float) -> None:
        """Put the questions that can be put now."""
        self._ticked_at = now
        by_node: dict[int, dict[TopicPartition, _Question[D]]] = {}
        for partition, question in self._questions.items():
            if question.asked is not None or not self._backoff.is_ready(partition, now):
                continue
            question.is_seen = True
            leader = self._cluster.leader(*partition)
            if leader is not None:
                by_node.setdefault(leader.id, {})[partition] = question
            else:
                self._cluster.request_refresh("a partition has no leader", partition.topic)
        for node_id, questions in by_node.items():
            link = self._discovery.ask_node(node_id, now)
            if link is not None:
                self._ask(node_id, link, questions, now)

    # In

    def _ask(
        self,
        node_id: int,
        link: Link,
        questions: dict[TopicPartition, _Question[D]],
        now: float,
    ) -> None:
        wanted = {partition: question.detail for partition, question in questions.items()}
        epochs = {partition: self._cluster.leader_epoch(*partition) for partition in questions}
        try:
            self._links.questions.ask(
                link,
                self._form.request(wanted, epochs),
                self._form.response_class,
                lambda response, then: self._handle_answer(node_id, questions, response, then),
                lambda error, then: self._handle_failure(questions, then),
                timeout=self._timeout,
                max_version=self._form.max_version,
            )
        except KafkaError as error:  # no version in common: asking again will not help
            for partition, question in questions.items():
                self._refuse(partition, question, error, now)
            return
        for question in questions.values():
            question.asked = link.id

    def _handle_failure(self, questions: Mapping[TopicPartition, _Question[D]], now: float) -> None:
        """The link broke: ask again."""
        for partition, question in questions.items():
            self._retry(partition, question, now)

    def _handle_answer(
        self,
        node_id: int,
        questions: Mapping[TopicPartition, _Question[D]],
        response: ResponseBody,
        now: float,
    ) -> None:
        left = dict(questions)
        api = api_name(self._form.response_class.api_key)
        for partition, code, answer in self._form.read(response):
            question = left.pop(partition, None)
            if question is None or self._questions.get(partition) is not question:
                continue  # discarded, or asked anew meanwhile
            known = ERRORS.get(code)
            if code == 0:
                del self._questions[partition]
                self._backoff.handle_success(partition)
                self._links.troubles.clear(partition)
                self._on_result(partition, question.detail, answer, now)
            elif known is not None and (known.retriable or code == ErrorCode.UNKNOWN_SERVER_ERROR):
                if known.refresh_metadata:
                    self._cluster.request_refresh(known.name, partition.topic)
                text = f"{api} of {partition}: {known.description}"
                self._put_off(partition, question, node_id, broker_error(code, text), now)
            else:
                self._refuse(partition, question, broker_error(code, f"{api} of {partition}"), now)
        for partition, question in left.items():
            error = ProtocolError(f"the answer to {api} leaves {partition} out")
            self._put_off(partition, question, node_id, error, now)

    def _put_off(
        self,
        partition: TopicPartition,
        question: _Question[D],
        node_id: int,
        error: KafkaError,
        now: float,
    ) -> None:
        """Ask again later, and know why."""
        question.refusal, question.refused_by = error, node_id
        self._links.troubles.note(partition, error, now)
        self._retry(partition, question, now)

    def _retry(self, partition: TopicPartition, question: _Question[D], now: float) -> None:
        if self._questions.get(partition) is question:
            question.asked = None
            self._backoff.handle_failure(partition, now)

    def _refuse(
        self, partition: TopicPartition, question: _Question[D], error: KafkaError, now: float
    ) -> None:
        if self._questions.get(partition) is question:
            del self._questions[partition]
            self._backoff.handle_success(partition)
            self._on_error(partition, question.detail, error, now)

    def _has_link(self, partition: TopicPartition) -> bool:
        leader = self._cluster.leader(*partition)
        return leader is not None and self._links.request_link(leader.id) is not None


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partitions' numbers by topic, in the order in which they come."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
