"""Looks over the shoulder of the client: which items it sends when, and what is answered.

    user's task ─► steps ─► operation ─► requester ─► InFlightRequests
                     │          │                        │
                     └──────────┴───── AdminWatch ◄──────┘ judges each send at once

Every operation is told apart by the task that has asked for it. Its requests are told apart from
those of the client itself, because `build` has returned them.

What is judged are the items of the user's call. A page of descriptions is one more way to ask about
topics: its request is a try of each topic in it, and its end is the end of the topics it settles.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from kafka_fast import aio
from kafka_fast.admin import AdminResult
from kafka_fast.admin.admin_core import AdminCore
from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.config import AdminSettings
from kafka_fast.control.admin.operation import Operation, OperationResults
from kafka_fast.control.admin.operations.topic_pages import DescribeTopicPage, TopicPage
from kafka_fast.control.connections.links import Link
from kafka_fast.errors import KafkaError, UnsupportedVersionError
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.protocol.apis.topics.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from kafka_fast.protocol.schema import Request
from tests.sim.worlds.admins.admin_records import (
    READERS,
    AdminKind,
    CallRecord,
    Findings,
    Key,
    TryRecord,
)
from tests.sim.worlds.virtual_loop import VirtualLoopDriver

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

LEAST_SHARE = 0.79
"""Of retry.backoff.ms: the shortest pause between two tries, with its jitter."""


class AdminWatch:
    """Judges what one client sends."""

    def __init__(self, core: AdminCore, settings: AdminSettings, findings: Findings) -> None:
        """Watch a client from now on.

        Args:
            core: of the client.
            settings: its configuration.
            findings: take what is wrong.
        """
        self.calls: dict[str, CallRecord] = {}
        """By the name of the task that makes the call."""
        self._findings = findings
        self._least_backoff = LEAST_SHARE * settings.retry_backoff_ms / 1000
        self._paused: dict[int, float] = {}  # by node id
        self._built: tuple[CallRecord, Sequence[Key], Request] | None = None
        requests = core.control.connections.requests
        self._send_request = requests.send_request
        requests.send_request = self._watch_request  # type: ignore[method-assign]

    # ---- what goes down ----

    def watch_operation(self, operation: Operation[Any, Any]) -> None:
        """Watch the operation that the running task starts."""
        task = asyncio.current_task()
        assert task is not None
        call = self.calls[task.get_name()]
        build, done, failed = operation.build, operation.handle_done, operation.handle_failed
        is_page = isinstance(operation, DescribeTopicPage)
        call.pages += is_page
        topics = _topics_of(operation) if isinstance(operation, DescribeTopicPage) else []

        def watched_build(items: Sequence[Any], version: int) -> Any:
            request = build(items, version)
            self._built = call, topics if is_page else items, request
            return request

        def watched_done(item: Any, value: Any, now: float) -> None:
            if is_page:
                self._note_page(call, value)
            else:
                call.endings[item] += 1
            done(item, value, now)

        def watched_failed(item: Any, error: KafkaError, now: float) -> None:
            if is_page:
                self._note_lost_page(call, topics, error)
            else:
                call.endings[item] += 1
            failed(item, error, now)

        operation.build = watched_build  # type: ignore[method-assign]
        operation.handle_done = watched_done  # type: ignore[method-assign]
        operation.handle_failed = watched_failed  # type: ignore[method-assign]

    def _note_page(self, call: CallRecord, page: TopicPage) -> None:
        call.page_endings += 1
        self._findings.counts["page done"] += 1
        self._findings.counts["page that leaves topics to Metadata"] += bool(page.unsettled)
        unfinished = None if page.cursor is None else page.cursor.topic
        for topic in page.topics:
            if topic.name == unfinished:
                self._findings.counts["page that ends within a topic"] += 1
            elif _is_whole(call, topic.name):
                call.end_by_page([topic.name])
        call.end_by_page(page.refused)

    def _note_lost_page(self, call: CallRecord, topics: Sequence[str], error: KafkaError) -> None:
        """Note the end of a page's topics; Metadata is asked if the broker has no pages."""
        call.page_endings += 1
        self._findings.counts[f"page {type(error).__name__}"] += 1
        if not isinstance(error, UnsupportedVersionError):
            call.end_by_page(topics)

    def _watch_request(
        self,
        link: Link,
        body: Request,
        response_class: type[Any],
        handle: Callable[[Any, float], None],
        handle_failure: Callable[[KafkaError, float], None],
        **options: Any,
    ) -> int:
        built, self._built = self._built, None
        if built is None or built[2] is not body:  # a request of the client itself
            return self._send_request(link, body, response_class, handle, handle_failure, **options)
        call, items, _ = built
        now = self._findings.clock.now
        is_page = isinstance(body, DescribeTopicPartitionsRequest)
        sent = TryRecord(now, link.key.node_id, is_page)

        def answered(answer: Any, now: float) -> None:
            sent.resolve(READERS[call.kind](answer), now, answer.throttle_time_ms)
            pause = answer.throttle_time_ms / 1000
            if pause:
                self._findings.log(f"node {sent.node_id} asks for a pause of {pause} s")
                paused = self._paused.get(sent.node_id, 0.0)
                self._paused[sent.node_id] = max(paused, now + pause)
            handle(answer, now)

        def lost(error: KafkaError, now: float) -> None:
            sent.resolve({}, now)
            handle_failure(error, now)

        version = self._send_request(link, body, response_class, answered, lost, **options)
        self._findings.counts["sent"] += 1
        self._findings.log(f"{call}: {list(map(str, items))} to node {sent.node_id} v{version}")
        for item in items:
            self._judge_send(call, item, sent)
            call.tries.setdefault(item, []).append(sent)
        return version

    # ---- what is wrong ----

    def _judge_send(self, call: CallRecord, item: Key, sent: TryRecord) -> None:
        now, name = sent.sent_at, f"{call}, {item}"
        tries = call.tries.get(item, [])
        if call.ended_at is not None:
            self._findings.add(AdminKind.AFTER_END, f"{name}: ended at {call.ended_at:.6f}")
        if now >= call.deadline:
            self._findings.add(AdminKind.LATE, f"{name}: sent after {call.deadline:.6f}")
        if call.endings[item] or any(not earlier.is_resolved for earlier in tries):
            self._findings.add(AdminKind.REPEATED, f"{name}: sent {len(tries) + 1} times")
        if not call.is_repeatable and any(earlier.is_lost for earlier in tries):
            self._findings.add(AdminKind.REPEATED, f"{name}: may have been done before")
        is_pause_due = tries and tries[-1].is_resolved and not tries[-1].is_answered_page
        if is_pause_due and now - tries[-1].resolved_at < self._least_backoff:
            self._findings.add(AdminKind.HASTY, f"{name}: {now - tries[-1].resolved_at} s after")
        if now < self._paused.get(sent.node_id, 0.0):
            self._findings.add(AdminKind.HASTY, f"{name}: node {sent.node_id} wants a pause")


def _topics_of(page: DescribeTopicPage) -> list[str]:
    return [topic.name for topic in page.build([], 0).topics]


def _is_whole(call: CallRecord, topic: str) -> bool:
    """Return whether the pages have said all of a topic; else it was created again in between."""
    outcome = call.last_outcome(topic)
    return outcome is not None and outcome[1][1][:1] == [0]


class WatchedSteps(AdminSteps):
    """The shipped steps, which tell of each operation."""

    def __init__(self, core: AdminCore, settings: AdminSettings, watch: AdminWatch) -> None:
        """Bind to one client that is watched."""
        super().__init__(core, settings)
        self._watch = watch

    def results(self, operation: Operation[K, V], deadline: float) -> Steps[OperationResults[K, V]]:
        """Carry an operation out that is watched."""
        self._watch.watch_operation(operation)
        return (yield from super().results(operation, deadline))


class VirtualAdmin(aio.Admin):
    """The shipped admin client of asyncio, on a core of this world."""

    def __init__(
        self,
        core: AdminCore,
        settings: AdminSettings,
        driver: VirtualLoopDriver,
        watch: AdminWatch,
    ) -> None:
        """Call through a core of the world; the world closes it, too.

        Args:
            core: of the world.
            settings: as the core's.
            driver: of the world's tasks.
            watch: looks over the client's shoulder.
        """
        self.client_id = core.client_id
        self._core = core
        self._steps = WatchedSteps(core, settings, watch)
        self._driver = driver

    @property
    def is_closed(self) -> bool:
        """Whether calls are refused."""
        return self._core.closed

    def deadline(self, timeout: float | None) -> float:
        """Return when a call must end that begins now."""
        return self._steps.deadline(timeout)

    async def run_operation(
        self, operation: Operation[K, V], timeout: float | None
    ) -> AdminResult[K, V]:
        """Carry out an operation of the world's own."""
        return await self._driver.run(self._steps.run_items(operation, timeout))
