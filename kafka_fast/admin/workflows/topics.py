"""Calls about topics that take several operations: descriptions by pages, and waiting for topics.

names ─► DescribeTopicPartitions, page after page ──► topics with eligible leader replicas
│            │ an old broker, or a topic that no page has settled
│            └─► Metadata ──► the other topics
ids ───► Metadata, for their names ──► pages, if the broker has them
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.admin.result import AdminResult
from kafka_fast.control.admin.operation import ONLY, OperationResults
from kafka_fast.control.admin.operations.topic_pages import (
    AwaitTopics,
    DescribeTopicPage,
    TopicPage,
)
from kafka_fast.control.admin.operations.topics import TOPICS_PER_REQUEST, DescribeTopics
from kafka_fast.control.admin.types.topics import TopicDescription
from kafka_fast.control.arguments import names_of
from kafka_fast.errors import (
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
    fresh_copy,
    reworded,
)
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.types import TopicPartition
from kafka_fast.values import replace

PARTITIONS_PER_PAGE = 2000
"""As many as brokers put into an answer by default (max.request.partition.size.limit)."""

ROUND = 5.0
"""Seconds after which the nodes are listed anew that are waited for: one may have left."""


def describe_topics(
    steps: AdminSteps,
    topics: Iterable[str],
    *,
    by_id: bool,
    include_authorized_operations: bool,
    timeout: float | None,
) -> Steps[AdminResult[str, TopicDescription]]:
    """Return topics, by pages where the broker has them, else by Metadata.

    Raises:
        KafkaError: as in `AdminSteps.run_items`.
    """
    described = yield from describe_topics_until(
        steps,
        topics,
        by_id=by_id,
        include_authorized_operations=include_authorized_operations,
        deadline=steps.begin_call(timeout),
    )
    return described


def describe_topics_until(
    steps: AdminSteps,
    topics: Iterable[str],
    *,
    by_id: bool,
    include_authorized_operations: bool,
    deadline: float,
) -> Steps[AdminResult[str, TopicDescription]]:
    """Do as `describe_topics`, for a workflow whose operations share a deadline."""
    operation = DescribeTopics(
        topics, by_id=by_id, include_authorized_operations=include_authorized_operations
    )
    names = operation.items or []
    results: OperationResults[str, TopicDescription] = steps.no_results(names)
    if not by_id:
        pages = _Pages(names, results)
        yield from pages.describe_topics(
            steps, deadline, include_authorized_operations=include_authorized_operations
        )
    rest = [name for name in names if name not in results.values and name not in results.errors]
    if rest:
        operation = DescribeTopics(
            rest, by_id=by_id, include_authorized_operations=include_authorized_operations
        )
        others = yield from steps.results(operation, deadline)
        results.values.update(others.values)
        results.errors.update(others.errors)
        _note_throttling(results, others)
    if by_id:
        yield from _describe_replicas(
            steps,
            results,
            deadline,
            include_authorized_operations=include_authorized_operations,
        )
    return AdminResult(operation.name, results)


def _describe_replicas(
    steps: AdminSteps,
    results: OperationResults[str, TopicDescription],
    deadline: float,
    *,
    include_authorized_operations: bool,
) -> Steps[None]:
    """Ask for topics that were described by id once more, by their names, for what pages tell.

    A topic of which no page tells, or tells of another one by now, stays as it was described.
    """
    ids = {topic.name: topic_id for topic_id, topic in results.values.items()}
    paged: OperationResults[str, TopicDescription] = steps.no_results(ids)
    yield from _Pages(list(ids), paged).describe_topics(
        steps, deadline, include_authorized_operations=include_authorized_operations
    )
    _note_throttling(results, paged)
    for name, topic in paged.values.items():
        if topic.topic_id == ids[name]:
            results.values[ids[name]] = topic


def _note_throttling(
    results: OperationResults[str, TopicDescription], more: OperationResults[str, Any]
) -> None:
    results.throttle_time_ms = max(results.throttle_time_ms, more.throttle_time_ms)


class _Pages:
    """The topics that are described page by page."""

    def __init__(
        self, names: Sequence[str], results: OperationResults[str, TopicDescription]
    ) -> None:
        """Take the topics, and where to put what becomes of them."""
        self._left = sorted(names)  # in the order of the broker, from the cursor on
        self._results = results
        self._part: TopicDescription | None = None  # the first partitions of a topic

    def describe_topics(
        self, steps: AdminSteps, deadline: float, *, include_authorized_operations: bool
    ) -> Steps[None]:
        """Read all pages; what they do not settle is left to others."""
        cursor: TopicPartition | None = None
        while self._left:
            asked = self._left[:TOPICS_PER_REQUEST]
            operation = DescribeTopicPage(
                asked,
                cursor=cursor,
                partition_limit=PARTITIONS_PER_PAGE,
                include_authorized_operations=include_authorized_operations,
            )
            answered = yield from steps.results(operation, deadline)
            _note_throttling(self._results, answered)
            error = answered.errors.get(ONLY)
            if error is not None:
                if not isinstance(error, UnsupportedVersionError):
                    self._fail_topics(error)
                return
            page = answered.values[ONLY]
            self._take_topics(page, cursor)
            before, cursor = cursor, page.cursor
            if cursor is None:
                self._left = self._left[len(asked) :]
            elif cursor <= (before or (asked[0], 0)) or cursor.topic > asked[-1]:
                return  # a broker that does not go on would be asked forever
            else:
                self._left = [name for name in self._left if name >= cursor.topic]

    def _fail_topics(self, error: KafkaError) -> None:
        """End the topics that no page has settled: the next one did not come."""
        for name in self._left:
            if name not in self._results.values and name not in self._results.errors:
                self._results.errors[name] = reworded(error, f"topic {name!r}: {error}")

    def _take_topics(self, page: TopicPage, cursor: TopicPartition | None) -> None:
        """Keep the topics that end in this page, and the beginning of the one that does not.

        Args:
            page: the next one.
            cursor: where it begins.
        """
        begun, self._part = self._part, None
        for topic in page.topics:
            whole = topic
            if cursor is not None and cursor.partition and cursor.topic == topic.name:
                if begun is None or begun.topic_id != topic.topic_id:
                    continue  # it was created again in between, and its first partitions are old
                whole = replace(topic, partitions=(*begun.partitions, *topic.partitions))
            if page.cursor is not None and page.cursor.topic == topic.name:
                self._part = whole
            else:
                self._results.values[topic.name] = whole
                self._results.errors.pop(topic.name, None)  # an earlier page may have refused it
        for name, error in page.refused.items():
            if name not in self._results.values:
                self._results.errors[name] = error


def wait_until_topics_visible(
    steps: AdminSteps, topics: Iterable[str], *, timeout: float | None
) -> Steps[None]:
    """Return when every node knows all of these topics, and the leaders of all partitions.

    The requester asks a node again that does not: here only the list of nodes is renewed.

    Raises:
        KafkaTimeoutError: a node did not know all of them in time; the error names both.
        KafkaError: a topic cannot become visible.
    """
    deadline = steps.begin_call(timeout)
    names = list(dict.fromkeys(names_of(topics, "the names of topics")))
    while names:
        try:
            results = yield from steps.results(
                AwaitTopics(names), min(deadline, steps.deadline(ROUND))
            )
        except KafkaTimeoutError:  # the metadata named no node
            if steps.deadline(0.0) >= deadline:
                raise
            continue
        if not results.errors:
            return
        errors = list(results.errors.values())
        final = [error for error in errors if not isinstance(error, KafkaTimeoutError)]
        if final or steps.deadline(0.0) >= deadline:
            raise fresh_copy((final or errors)[0])
