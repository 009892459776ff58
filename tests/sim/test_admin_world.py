"""The admin client under faults: every seed, and every planted fault is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from kafka_fast.admin.workflows import topics as topics_workflow
from kafka_fast.admin.workflows.topics import _Pages
from kafka_fast.control.admin import operation as operation_module
from kafka_fast.control.admin.absent_topics import AbsentTopics
from kafka_fast.control.admin.admin_control import RunningOperation
from kafka_fast.control.admin.operation import Operation
from kafka_fast.control.admin.operations.topics import (
    CreateTopics,
    DeleteTopics,
    DescribeTopics,
)
from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.control.requests.meanings import Done
from kafka_fast.control.requests.requester import Requester
from kafka_fast.control.requests.router import Router
from kafka_fast.errors import ErrorCode
from kafka_fast.instants import LONG_AGO
from tests.sim.seeds import check, check_processes
from tests.sim.worlds.admins.admin_plan import AdminPlan, make_admin_plan
from tests.sim.worlds.admins.admin_records import AdminKind
from tests.sim.worlds.admins.admin_users import CreateOnce
from tests.sim.worlds.admins.admin_world import AdminWorld, run_admin_seed
from tests.sim.worlds.admins.page_broker import offer_pages

PLANTED_SEEDS = range(200)


def judge(seed: int) -> str | None:
    """Return a report of the seed if it fails."""
    run = run_admin_seed(seed)
    return run.report() if run.anomalies else None


def test_every_call_ends_once_in_time_and_with_the_truth(seeds: Sequence[int]) -> None:
    """Whatever happens to brokers and connections."""
    check(judge, seeds)


def test_topics_that_are_described_by_pages_end_once(
    seeds: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, where the newest brokers have pages."""
    offer_pages(monkeypatch)
    check(judge, [seed for seed in seeds if has_pages(make_admin_plan(seed))])


def has_pages(plan: AdminPlan) -> bool:
    """Return whether the brokers of a world have pages, once they are offered."""
    return plan.version == "newest"


def test_a_seed_decides_everything() -> None:
    """No decision hangs on the order of a set."""
    check_processes("tests.sim.worlds.admins.admin_world.run_admin_seed", range(10))


def test_the_worlds_are_not_idle() -> None:
    """There are successes, refusals, retries and interruptions of each kind of call to judge."""
    counts: Counter[str] = Counter()
    for seed in range(120):
        counts += run_admin_seed(seed).counts
    for call in ("create", "delete", "describe", "list", "records"):
        assert counts[f"{call} done"] > 100, call
        assert counts[f"{call} cancelled"] > 5, call
        assert counts[f"{call} KafkaTimeoutError"] > 5, call
    for call in ("delete", "describe", "records"):
        assert counts[f"{call} UnknownTopicOrPartition"] > 100, call
    for refusal in (
        "create TopicAlreadyExists",
        "create InvalidTopicException",
        "create InvalidPartitions",
        "create InvalidReplicationFactor",
        "create InvalidConfig",
        "create KafkaConnectionError",
        "create UnsupportedVersionError",
        "create explained",
        "delete explained",
        "records OffsetOutOfRange",
    ):
        assert counts[refusal] > 1, refusal
    assert counts["page UnsupportedVersionError"] > 100
    assert counts["page KafkaTimeoutError"] > 5
    assert sum(counts[f"{call} closed"] for call in ("create", "delete", "records")) > 1


def test_pages_are_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    offer_pages(monkeypatch)
    counts: Counter[str] = Counter()
    for seed in range(60):
        if has_pages(make_admin_plan(seed)):
            counts += run_admin_seed(seed).counts
    for what in ("done", "that ends within a topic", "that leaves topics to Metadata"):
        assert counts[f"page {what}"] > 20, what
    assert counts["page KafkaTimeoutError"] > 1


def test_the_plans_touch_every_choice() -> None:
    plans = [make_admin_plan(seed) for seed in range(200)]
    assert {plan.nodes for plan in plans} == {1, 2, 3}
    assert {plan.users for plan in plans} == {1, 2, 3}
    assert {plan.version for plan in plans} == {"newest", "2.1", "2.8", "3.9"}
    assert {bool(plan.faults) for plan in plans} == {bool(plan.storm) for plan in plans}
    assert {plan.closes_early for plan in plans} == {True, False}


# ---- planted faults ----


def found(*kinds: AdminKind, among: Callable[[AdminPlan], object] = lambda plan: True) -> None:
    """Fail unless one of some worlds has an anomaly of these kinds; it ends there."""
    for plan in filter(among, map(make_admin_plan, PLANTED_SEEDS)):
        anomalies = AdminWorld(plan).run(stop_at=kinds).anomalies
        if any(anomaly.kind in kinds for anomaly in anomalies):
            return
    raise AssertionError("no world has shown it")


@pytest.mark.parametrize("operation", [CreateTopics, DeleteTopics, DescribeTopics])
def test_results_that_are_mixed_up_are_found(
    operation: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = operation.outcomes

    def mix_up(self: Any, answer: Any, items: Any, source: Any) -> Iterator[tuple[Any, Any]]:
        told = list(outcomes(self, answer, items, source))
        return zip(
            [key for key, _ in told], [meaning for _, meaning in reversed(told)], strict=True
        )

    monkeypatch.setattr(operation, "outcomes", mix_up)
    found(AdminKind.WRONG_ITEM)


def test_an_answer_that_counts_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    settle = Requester._settle

    def settle_twice(
        self: Requester, call: Any, item: Any, meaning: Any, link: Any, now: float
    ) -> None:
        for _ in range(2 if isinstance(meaning, Done) else 1):
            settle(self, call, item, meaning, link, now)

    monkeypatch.setattr(Requester, "_settle", settle_twice)
    found(AdminKind.TWICE)


@pytest.mark.parametrize("operation", [CreateTopics, DeleteTopics])
def test_an_explanation_that_is_left_out_is_found(
    operation: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "explained", {})
    found(AdminKind.UNEXPLAINED)


def test_an_explanation_by_a_try_that_changed_nothing_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operation_module, "UNDONE", frozenset())
    found(AdminKind.FALSELY_EXPLAINED)


def test_a_deadline_that_passes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requester, "_expire", lambda self, call, now: None)
    found(AdminKind.LATE)


def test_an_order_that_is_repeated_blindly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CreateOnce, "is_repeatable", True)
    found(AdminKind.REPEATED)


def test_an_order_to_two_brokers_at_once_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeleteTopics, "beside_after", 0.05)
    found(AdminKind.REPEATED)


def test_a_quotas_pause_that_is_not_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Router, "_pause_of", lambda self, link, now: LONG_AGO)
    found(AdminKind.HASTY)


def test_retries_without_a_backoff_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Requester.__init__

    def begin_without(self: Requester, *args: Any) -> None:
        begin(self, *args)
        self._backoff = Backoff(0, 0, lambda: 0.5)

    monkeypatch.setattr(Requester, "__init__", begin_without)
    found(AdminKind.HASTY)


def test_absent_topics_that_never_fail_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AbsentTopics, "tick", lambda self, now: None)
    found(AdminKind.FORBIDDEN)


def test_errors_that_do_not_name_their_items_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Operation, "describe", lambda self, item: self.name)
    found(AdminKind.NAMELESS)


def test_a_page_that_fails_without_naming_its_topics_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topics_workflow, "reworded", lambda error, text: error)
    found(AdminKind.NAMELESS)


def test_a_page_that_waits_after_the_calls_deadline_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    describe_topics = _Pages.describe_topics

    def describe_later(self: _Pages, steps: Any, deadline: float, **options: Any) -> Any:
        return describe_topics(self, steps, deadline + 1.0, **options)

    monkeypatch.setattr(_Pages, "describe_topics", describe_later)
    found(AdminKind.LATE)


def test_topics_that_are_asked_for_again_after_their_page_failed_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_Pages, "_fail_topics", lambda self, error: None)
    found(AdminKind.TWICE)


def test_a_broker_without_pages_that_is_an_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics_workflow, "UnsupportedVersionError", ())
    found(AdminKind.FORBIDDEN)


def test_first_partitions_that_the_next_page_replaces_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer_pages(monkeypatch)
    monkeypatch.setattr(topics_workflow, "replace", lambda topic, **changes: topic)
    found(AdminKind.WRONG_ITEM, among=has_pages)


def test_topics_of_a_page_that_are_left_to_metadata_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer_pages(monkeypatch)
    monkeypatch.setattr(_Pages, "_take_topics", lambda self, page, cursor: None)
    found(AdminKind.TWICE, among=has_pages)


def test_a_cancelled_call_that_goes_on_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunningOperation, "give_up", lambda self: None)
    found(AdminKind.AFTER_END, among=lambda plan: plan.cancels)


def test_a_moved_controller_that_is_an_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CreateTopics, "final", frozenset({ErrorCode.NOT_CONTROLLER}))
    found(AdminKind.FORBIDDEN)


def test_a_success_of_somebody_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = CreateTopics.outcomes

    def forgive(self: Any, answer: Any, items: Any, source: Any) -> Iterator[tuple[Any, Any]]:
        for topic in answer.topics:
            if topic.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
                topic.error_code = 0
        return outcomes(self, answer, items, source)

    monkeypatch.setattr(CreateTopics, "outcomes", forgive)
    found(AdminKind.WRONG_ITEM)


def test_topics_that_were_only_to_be_checked_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    build = CreateTopics.build

    def build_for_good(self: CreateTopics, items: Sequence[str], version: int) -> Any:
        request = build(self, items, version)
        request.validate_only = False
        return request

    monkeypatch.setattr(CreateTopics, "build", build_for_good)
    found(AdminKind.UNTRUE)
