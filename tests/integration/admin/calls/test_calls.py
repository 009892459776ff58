"""Every call of `Admin`, on one node of real Kafka of any version and on the embedded broker.

With `--kafka-version` these tests hold the table in docs/admin.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast import Admin
from kafka_fast.testing import EmbeddedKafka
from kafka_fast.testing._kafka.broker_jars import DEFAULT_VERSION
from tests.conftest import start_or_skip
from tests.documentation.admin_versions import PAGE, admin_calls, told_by_page
from tests.integration.admin.calls.operated import operated_kafka
from tests.integration.admin.calls.stage import PLAYS, Stage
from tests.integration.admin.calls.versions import operator_stage, plays_transactions, works

EMBEDDED = {
    "alter_consumer_group_offsets",
    "consumer_group_lag",
    "create_topics",
    "delete_records",
    "delete_topics",
    "describe_classic_groups",
    "describe_cluster",
    "describe_configs",
    "describe_consumer_groups",
    "describe_features",
    "describe_topics",
    "list_consumer_group_offsets",
    "list_offsets",
    "list_topics",
    "remove_members_from_consumer_group",
    "reset_consumer_group_offsets",
    "wait_until_topics_visible",
}
"""The calls that the embedded broker serves."""

TRANSACTIONS = plays_transactions.__name__
"""Their plays need a coordinator of transactions, which the embedded broker is not."""


@pytest.fixture(scope="module")
def operated(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """One node, with an authorizer and two log directories."""
    kafka = operated_kafka(request.config.getoption("--kafka-version") or DEFAULT_VERSION)
    start_or_skip(kafka)
    with kafka, operator_stage(kafka) as stage:
        yield stage


@pytest.fixture(scope="module")
def embedded() -> Iterator[Stage]:
    with EmbeddedKafka() as kafka, Admin(bootstrap_servers=kafka.bootstrap) as admin:
        properties = {"bootstrap.servers": kafka.bootstrap}
        yield Stage(admin, properties, properties, kafka=None)


def test_every_call_has_its_play() -> None:
    assert sorted(PLAYS) == admin_calls()


@pytest.mark.broker
@pytest.mark.parametrize("call", admin_calls())
def test_a_call_works_as_the_page_says(operated: Stage, call: str) -> None:
    assert operated.kafka is not None
    told = told_by_page(PAGE.read_text(encoding="utf-8"))
    assert works(operated, call) == told[operated.kafka.release.version][call]


@pytest.mark.parametrize(
    "call", [call for call in admin_calls() if PLAYS[call].__module__ != TRANSACTIONS]
)
def test_the_embedded_broker_does_the_same_or_says_so(embedded: Stage, call: str) -> None:
    assert works(embedded, call) == (call in EMBEDDED)
