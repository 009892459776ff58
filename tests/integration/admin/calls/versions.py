"""The table in docs/admin.md of what works with which brokers, made by playing every call on them.

python -m tests.integration.admin.calls.versions          plays all on all versions (two minutes)
python -m tests.integration.admin.calls.versions 2.8.2    plays all on one version
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_fast import Admin
from kafka_fast.errors import UnsupportedVersionError
from kafka_fast.testing._kafka.broker_jars import RELEASES
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.documentation.admin_versions import PAGE, admin_calls, told_by_page, with_table
from tests.integration.admin.calls import (
    plays_access,
    plays_cluster,
    plays_groups,
    plays_topics,
    plays_transactions,
)
from tests.integration.admin.calls.operated import login, operated_kafka, peer_login
from tests.integration.admin.calls.stage import PLAYS, Stage

__all__ = ["PLAYS", "plays_access", "plays_cluster", "plays_groups", "plays_topics"]
__all__ += ["plays_transactions"]  # they register themselves

VERSIONS = tuple(RELEASES)

BOTH_VERSIONS = re.compile(
    r"this client speaks \d.*, the broker (does not offer it|offers \d|speaks \d)|since Kafka \d"
)
"""How an error says what a broker is too old for."""


def works(stage: Stage, call: str) -> bool:
    """Play a call, and return whether the broker is new enough for it."""
    try:
        PLAYS[call](stage)
    except UnsupportedVersionError as error:
        if not BOTH_VERSIONS.search(str(error)):
            raise
        return False
    return True


@contextmanager
def operator_stage(kafka: RealKafka) -> Iterator[Stage]:
    """Give alice's clients to a cluster that runs."""
    properties = login(kafka, "alice")
    with Admin(properties) as admin:
        peer = peer_login(kafka, "alice")
        yield Stage(admin, properties, peer, kafka=kafka, replication=len(kafka.nodes))


def main(versions: list[str]) -> None:
    """Play all calls on these versions, and write what works into the page."""
    told = told_by_page(PAGE.read_text(encoding="utf-8"))
    for version in versions:
        with operated_kafka(version) as kafka, operator_stage(kafka) as stage:
            told[version] = {call: works(stage, call) for call in admin_calls()}
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), told), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or list(VERSIONS))
