"""The stages of the plays: one node of real Kafka, and the embedded broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast import Admin
from kafka_fast.testing import EmbeddedKafka
from kafka_fast.testing._kafka.broker_jars import DEFAULT_VERSION
from kafka_fast.testing.broker.acls import ANONYMOUS
from kafka_fast.testing.broker.security import Security
from tests.conftest import start_or_skip
from tests.integration.admin.calls.operated import operated_kafka
from tests.integration.admin.calls.stage import Stage
from tests.integration.admin.calls.versions import operator_stage


@pytest.fixture(scope="session")
def operated(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """One node, with an authorizer and two log directories."""
    kafka = operated_kafka(request.config.getoption("--kafka-version") or DEFAULT_VERSION)
    start_or_skip(kafka)
    with kafka, operator_stage(kafka) as stage:
        yield stage


@pytest.fixture(scope="session")
def embedded() -> Iterator[Stage]:
    security = Security(mechanisms=(), super_users=(ANONYMOUS,))
    with (
        EmbeddedKafka(security=security) as kafka,
        Admin(bootstrap_servers=kafka.bootstrap) as admin,
    ):
        properties = {"bootstrap.servers": kafka.bootstrap}
        yield Stage(admin, properties, properties, kafka=None)


@pytest.fixture(params=[pytest.param("real", marks=pytest.mark.broker), "embedded"])
def stage(request: pytest.FixtureRequest) -> Stage:
    """Each of them."""
    made: Stage = request.getfixturevalue("operated" if request.param == "real" else "embedded")
    return made
