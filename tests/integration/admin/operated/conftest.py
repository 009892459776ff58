"""Three nodes for operators: rules, two log directories each, a quorum that can change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast import Admin
from kafka_fast.testing._kafka.broker_jars import DEFAULT_VERSION
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.conftest import start_or_skip
from tests.integration.admin.calls.operated import SCRAM, login, operated_kafka
from tests.integration.admin.calls.stage import Stage
from tests.integration.admin.calls.versions import operator_stage


@pytest.fixture(scope="session")
def shared_operated() -> Iterator[RealKafka]:
    kafka = operated_kafka(DEFAULT_VERSION, 3)
    start_or_skip(kafka)
    with kafka:
        yield kafka


@pytest.fixture(scope="session")
def shared_stage(shared_operated: RealKafka) -> Iterator[Stage]:
    # By PLAIN: a node that comes back refuses SCRAM until it has read the users' credentials.
    with operator_stage(shared_operated) as made:
        yield made


@pytest.fixture
def operated(shared_operated: RealKafka) -> RealKafka:
    """All three nodes run; a test may kill and pause them."""
    shared_operated.heal()
    return shared_operated


@pytest.fixture
def stage(operated: RealKafka, shared_stage: Stage) -> Stage:
    """Alice's clients."""
    return shared_stage


@pytest.fixture
def admin(stage: Stage) -> Admin:
    """alice's, who may do everything."""
    return stage.admin


@pytest.fixture(scope="session")
def bob(shared_operated: RealKafka) -> Iterator[Admin]:
    """Nobody has allowed bob anything."""
    with Admin(login(shared_operated, "bob", SCRAM)) as made:
        yield made
