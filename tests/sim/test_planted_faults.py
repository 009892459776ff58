"""The simulation must notice what it is there for: mistakes are planted into the client itself.

Each test makes one decision of the client wrong, in a way that a reader would hardly see, and asks
for a world that shows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast import aio
from kafka_fast.control.authentication import login
from kafka_fast.control.messages import SendRaw
from kafka_fast.control.producer import producer_control, verdicts
from kafka_fast.control.producer.lost_partitions import LostPartitions
from kafka_fast.control.producer.producer_messages import (
    BatchRow,
    CompleteBatch,
    FailBatch,
    NameTopic,
    ProduceCommand,
    ProducerCommand,
    QueueReport,
)
from kafka_fast.control.producer.routes import Queue, Routes
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.errors import ErrorCode, KafkaError, Outcome
from kafka_fast.net import planes
from kafka_fast.net.waiting.steps import Steps, YieldToLoop
from kafka_fast.producer import producer_carrier as produce_carrier
from kafka_fast.producer.producer_steps import ProducerSteps
from kafka_fast.values import replace
from tests.sim.worlds import Plan, World, host, make_plan
from tests.sim.worlds.checker import Kind

pytestmark = pytest.mark.slow  # many worlds each; what is on trial here is the checker

WORLDS = 300


def show(*kinds: Kind, among: Callable[[Plan], bool] = lambda plan: True) -> None:
    """Run worlds until one has an anomaly of these kinds."""
    plans = filter(among, (make_plan(seed) for seed in itertools.count()))
    for plan in itertools.islice(plans, WORLDS):
        if any(anomaly.kind in kinds for anomaly in World(plan).run().anomalies):
            return
    raise AssertionError(f"{WORLDS} worlds have not shown it")


def test_renumbering_a_batch_that_may_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "must_bump", lambda kept, may_have_gap: bool(kept))
    show(Kind.DUPLICATE)


def test_calling_a_batch_that_may_be_written_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    def call_rejected(queues: Queues, command: ProduceCommand, seed: int) -> None:
        if isinstance(command, FailBatch) and command.outcome is Outcome.MAYBE_WRITTEN:
            command = replace(command, outcome=Outcome.REJECTED)
        carry_out(queues, command, seed)

    carry_out = produce_carrier.carry_out
    monkeypatch.setattr(produce_carrier, "carry_out", call_rejected)
    show(Kind.FALSE_FAILURE)


def test_taking_a_recognised_duplicate_for_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = SimpleNamespace(**{**ErrorCode.__members__, "DUPLICATE_SEQUENCE_NUMBER": -2})
    monkeypatch.setattr(verdicts, "ErrorCode", codes)
    show(Kind.FALSE_FAILURE)


def test_acknowledging_a_batch_that_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge_kindly(queues: Queues, command: ProduceCommand, seed: int) -> None:
        if isinstance(command, FailBatch):
            command = CompleteBatch(command.row, -1)
        carry_out(queues, command, seed)

    carry_out = produce_carrier.carry_out
    monkeypatch.setattr(produce_carrier, "carry_out", judge_kindly)
    show(Kind.LOST)


def test_naming_a_topic_by_another_ones_id(monkeypatch: pytest.MonkeyPatch) -> None:
    named: dict[int, bytes] = {}

    def name_once(queues: Queues, command: ProduceCommand, seed: int) -> None:
        if isinstance(command, NameTopic):
            if command.topic == "topic-0":
                named[command.version] = command.field
            field = named.get(command.version, command.field)
            command = NameTopic(command.topic, command.version, field)
        carry_out(queues, command, seed)

    carry_out = produce_carrier.carry_out
    monkeypatch.setattr(produce_carrier, "carry_out", name_once)
    show(Kind.MISROUTED)


def test_forgetting_the_order_of_unresolved_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are retried at once, numbered in the order in which they happen to be looked at."""

    def judge_only_the_last(report: QueueReport, *args: Any, **rules: Any) -> verdicts.Judgement:
        rows = report.batches
        judgement = verdicts.judge(report, *args, **rules)
        if len(rows) > 1:
            return replace(judgement, commands=[begin_behind(report, rows[0])])
        return judgement

    def begin_behind(report: QueueReport, first: BatchRow) -> ProducerCommand:
        return verdicts.close_gap(report, first)

    monkeypatch.setattr(producer_control, "judge", judge_only_the_last)
    show(Kind.DUPLICATE, Kind.MISORDERED, Kind.LOST, Kind.FALSE_FAILURE)


def test_keeping_the_routes_of_a_topic_that_was_created_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def follow(self: Routes, queue: Queue) -> None:
        if queue.awaited_node is not None:
            self._await_leader(queue)

    monkeypatch.setattr(Routes, "_follow_leader", follow)
    show(Kind.STRANDED, among=lambda plan: plan.recreates_topics)


def test_keeping_records_of_partitions_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LostPartitions, "handle_answer", lambda self, now: None)
    show(Kind.STRANDED, among=lambda plan: plan.recreates_topics)


def test_a_wake_up_that_the_data_plane_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.VirtualHost, "_wake_data", lambda self: None)
    show(Kind.STUCK, Kind.NEVER_COMPLETED)


def test_a_deadline_that_the_data_plane_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(host.Turner):
        def turn(self) -> float:
            return min(super().turn(), 0.0)

    monkeypatch.setattr(host, "Turner", Forgetful)
    show(Kind.NEVER_COMPLETED, Kind.LATE)


def test_a_delivery_timeout_that_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def patient(plane: DataPlane, **limits: Any) -> Queues:
        return Queues(plane, **{**limits, "delivery_timeout": limits["delivery_timeout"] + 2.5})

    monkeypatch.setattr(planes, "Queues", patient)
    show(Kind.LATE)


def test_never_renewing_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "SESSION_SHARE", (2.0, 3.0))
    show(Kind.LOGIN)


def test_renewing_a_login_too_soon_after_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "RENEWAL_INTERVAL", 0.0)
    show(Kind.LOGIN)


def test_letting_requests_pass_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    sent_raw = SendRaw.__init__

    def pass_all(command: SendRaw, *fields: Any, **named: Any) -> None:
        sent_raw(command, *fields, **{**named, "is_of_login": True})

    monkeypatch.setattr(SendRaw, "__init__", pass_all)
    show(Kind.LOGIN)


def test_taking_the_record_of_a_send_that_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = aio.Producer._send_waiting

    async def take_all_the_same(self: Any, topic: str, value: Any, *rest: Any) -> Any:
        try:
            return await waiting(self, topic, value, *rest)
        except asyncio.CancelledError:
            with contextlib.suppress(KafkaError):
                self._accumulator.send_nowait(topic, value)
            raise

    monkeypatch.setattr(aio.Producer, "_send_waiting", take_all_the_same)
    show(Kind.DUPLICATE, Kind.MISROUTED, Kind.FOREIGN)


def test_a_flush_of_a_task_that_ends_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def flush(self: ProducerSteps, timeout: float | None) -> Steps[int]:
        yield YieldToLoop()
        return 0

    monkeypatch.setattr(ProducerSteps, "flush", flush)
    show(Kind.FLUSH)
