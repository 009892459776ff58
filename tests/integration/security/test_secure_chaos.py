"""The promises of the defaults on links that end of themselves: TLS, SASL, sessions of two seconds.

Two producers and two groups, of two mechanisms, each link logging in anew every two seconds, while
leaders are killed, a broker is frozen, and all are restarted. Then librdkafka reads the logs back
by a listener without TLS, and the records and the groups' journals are compared with them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import Producer
from kafka_fast.testing._kafka.broker_jars import DEFAULT_VERSION
from kafka_fast.testing._kafka.secure_kafka import SecureKafka
from tests.conftest import start_or_skip
from tests.integration.consumer.group_journal import check
from tests.integration.consumer.test_consumer_chaos import CONSUMER_PROTOCOL, KINDS, QUICK, Group
from tests.integration.producer.test_producer_chaos import (
    BURST,
    IMPATIENT,
    PARTITIONS,
    RECORDS,
    Load,
    kill_leader,
    pause_leader,
)
from tests.integration.producing import Tally, new_topic, read_values, say
from tests.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.long, pytest.mark.timeout(240)]

MECHANISMS: dict[str, dict[str, Any]] = {"SCRAM-SHA-512": {}, "OAUTHBEARER": IMPATIENT}
"""With what each producer has besides."""
PROTOCOLS = {"SCRAM-SHA-512": CONSUMER_PROTOCOL, "OAUTHBEARER": KINDS["cooperative-sticky"]}
MEMBERS = 2


@pytest.fixture
def kafka(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SecureKafka]:
    """Three brokers that notice dead members soon, of the release that knows all protocols."""
    if request.config.getoption("--kafka-version") not in (None, DEFAULT_VERSION):
        pytest.skip("chaos on secure links is tried on the newest release")
    cluster = SecureKafka(tmp_path, nodes=3, overrides=QUICK)
    start_or_skip(cluster)
    with cluster:
        yield cluster


class Pair:
    """A producer of keyed and unkeyed records, and a group that reads the keyed ones."""

    def __init__(self, kafka: SecureKafka, mechanism: str, folder: Path, stack: ExitStack) -> None:
        """Start the group; the producer's load begins with `load.start`."""
        properties = kafka.client_properties("REAUTH", mechanism)
        tallies = [
            Tally(new_topic(kafka, PARTITIONS, replication=3), PARTITIONS, keyed)
            for keyed in (True, False)
        ]
        self.mechanism = mechanism
        self.load = Load(Producer({**properties, **MECHANISMS[mechanism]}), *tallies)
        stack.callback(self.load.close)
        member = {**PROTOCOLS[mechanism], **properties}
        self.group = Group(kafka, self.load.keyed.topic, folder, [member] * MEMBERS)
        stack.callback(self.group.close)

    def finish(self, kafka: SecureKafka) -> dict[str, object]:
        """Deliver and read what is left; return what is wrong, by topic or group."""
        producer = self.load.producer
        metrics = producer.metrics()
        logins, failed = metrics["logins"], metrics["failed_logins"]
        say(f"{self.mechanism}: {self.load.sent} records, logins {logins}, failed {failed}")
        say(f"links closed: {metrics['links_closed']}")
        assert logins["renewed"] >= 10
        assert not failed.keys() & {"AuthenticationError", "TlsError", "ProtocolError"}, failed
        producer.close()
        wrong: dict[str, object] = {}
        for tally in (self.load.keyed, self.load.unkeyed):
            faults = tally.compare(kafka.bootstrap)
            say(f"{tally.topic}: {tally.sent} sent, {len(tally.acked)} acked, {dict(faults)}")
            # A batch that the broker knows to have been written long ago has no offset to tell.
            faults.pop("offset not told", None)
            if faults:
                wrong[tally.topic] = faults
        keyed = self.load.keyed
        self.group.finish(keyed.sent)
        logs = {
            partition: [value for _, _, value in log]
            for partition, log in enumerate(read_values(kafka.bootstrap, keyed.topic, PARTITIONS))
        }
        faults = check(logs, self.group.lives, self.group.commits)
        say(f"{self.group.id}: {dict(faults)}")
        if faults:
            wrong[self.group.id] = faults
        return wrong


def test_nothing_is_lost_while_sessions_end_and_brokers_fail(
    kafka: SecureKafka, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        pairs = [Pair(kafka, mechanism, tmp_path, stack) for mechanism in MECHANISMS]
        for pair in pairs:
            eventually(pair.group.is_shared, "a share for each")
        topic = pairs[0].load.keyed.topic

        def progress() -> None:
            """Wait until each producer and each group is a second's worth of records further."""
            before = [pair.load.acked() for pair in pairs]
            for pair, count in zip(pairs, before, strict=True):
                load = pair.load
                eventually(
                    lambda load=load, count=count: load.acked() > count + 10 * BURST, "progress"
                )
                pair.group.await_progress()

        start = time.monotonic()
        for pair in pairs:
            pair.load.start()
        try:
            progress()
            for name, fault in {
                "killed": kill_leader,
                "paused": pause_leader,
                "all restarted": lambda *_: kafka.rolling_restart(topic),
                "killed again": kill_leader,
            }.items():
                began = time.monotonic()
                fault(kafka, topic, progress)
                say(f"{name}: {time.monotonic() - began:.1f} s")
            progress()
        finally:
            for pair in pairs:
                pair.load.join()
        say(f"sent: {time.monotonic() - start:.1f} s")
        wrong: dict[str, object] = {}
        for pair in pairs:
            wrong |= pair.finish(kafka)
        say(f"checked: {time.monotonic() - start:.1f} s")
        assert sum(pair.load.sent for pair in pairs) >= RECORDS
        assert not wrong
