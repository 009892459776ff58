"""Every call of `Admin`, on one node of real Kafka of any version and on the embedded broker.

With `--kafka-version` these tests hold the table in docs/admin.md.
"""

from __future__ import annotations

import pytest

from tests.documentation.admin_versions import PAGE, admin_calls, told_by_page
from tests.integration.admin.calls.stage import PLAYS, Stage
from tests.integration.admin.calls.versions import works

EMBEDDED = {
    "abort_transaction",
    "alter_consumer_group_offsets",
    "consumer_group_lag",
    "create_acls",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_consumer_group_offsets",
    "delete_groups",
    "delete_records",
    "delete_topics",
    "describe_acls",
    "describe_classic_groups",
    "describe_cluster",
    "describe_configs",
    "describe_consumer_groups",
    "describe_features",
    "describe_producers",
    "describe_topics",
    "describe_transactions",
    "fence_producers",
    "find_hanging_transactions",
    "force_terminate_transaction",
    "incremental_alter_configs",
    "list_consumer_group_offsets",
    "list_groups",
    "list_offsets",
    "list_topics",
    "list_transactions",
    "remove_members_from_consumer_group",
    "reset_consumer_group_offsets",
    "update_features",
    "wait_until_topics_visible",
}
"""The calls that the embedded broker serves."""


def test_every_call_has_its_play() -> None:
    assert sorted(PLAYS) == admin_calls()


@pytest.mark.broker
@pytest.mark.parametrize("call", admin_calls())
def test_a_call_works_as_the_page_says(operated: Stage, call: str) -> None:
    assert operated.kafka is not None
    told = told_by_page(PAGE.read_text(encoding="utf-8"))
    assert works(operated, call) == told[operated.kafka.release.version][call]


@pytest.mark.parametrize("call", admin_calls())
def test_the_embedded_broker_does_the_same_or_says_so(embedded: Stage, call: str) -> None:
    assert works(embedded, call) == (call in EMBEDDED)
