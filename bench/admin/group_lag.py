"""What the lag of many groups costs: CPU, time, and requests that wait for each other.

    python bench/admin/group_lag.py [--rounds 3] [--json]

200 groups have committed offsets in all 50 partitions of a topic, on real Kafka. A run is a process
of its own. Its first call also connects («new client»); further calls follow («again»). The columns
of requests count those between handshakes, which each new connection has: all of them, and the
longest chain in which each was sent after the answer to the one before.

confluent-kafka has no such call: its contender asks for what ours tells, all groups at a time.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from bench.admin.runs import MEASURE, Row, cost_of, run_elsewhere, show_runs
from kafka_fast import Admin, TopicPartition
from kafka_fast.admin import NewTopic
from kafka_fast.control.in_flight_requests import InFlightRequests
from kafka_fast.testing._kafka.real_kafka import RealKafka

GROUPS = 200
PARTITIONS = 50
TOPIC = "lagging"
CALLS = 3
TIMEOUT = 60.0
LAG = f"lag of {GROUPS} groups × {PARTITIONS} partitions"
SCENARIOS = (f"{LAG}, new client", f"{LAG}, again")


class Chain:
    """Counts the requests of this process, and the longest chain of requests with answers."""

    def __init__(self) -> None:
        """Stand in for the method that sends all requests but handshakes."""
        self.requests = 0
        self.length = 0
        self._send = InFlightRequests.send_request
        InFlightRequests.send_request = self._sending()  # type: ignore[method-assign]

    def _sending(self) -> Callable[..., int]:
        def send(
            requests: InFlightRequests,
            link: Any,
            body: Any,
            response_class: Any,
            handle: Callable[[Any, float], None],
            *args: Any,
            **options: Any,
        ) -> int:
            self.requests += 1
            depth = self.length + 1

            def handle_later(answer: Any, now: float) -> None:
                self.length = max(self.length, depth)
                handle(answer, now)

            return self._send(requests, link, body, response_class, handle_later, *args, **options)

        return send

    def counts(self) -> Row:
        """Return what was counted, and begin anew."""
        counted = {"round_trips": self.length, "requests": self.requests}
        self.requests = self.length = 0
        return counted


def ours(bootstrap: str) -> list[Row]:
    """Return what the first call costs, and what the next ones do."""
    chain = Chain()
    with Admin(bootstrap_servers=bootstrap) as admin:

        def ask() -> None:
            lags = admin.consumer_group_lag(group_ids()).raise_first()
            assert sum(len(lag.partitions) for lag in lags.values()) == GROUPS * PARTITIONS

        first = {**cost_of(ask, 1), **chain.counts()}
        ask()
        counted = chain.counts()
        return [first, {**cost_of(ask, CALLS), **counted}]


def confluent(bootstrap: str) -> list[Row]:
    """Do the same with confluent-kafka, which counts no requests."""
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka import TopicPartition as Partition
    from confluent_kafka import admin as peers

    exported: Any = peers  # without types for all of it
    admin = exported.AdminClient({"bootstrap.servers": bootstrap})
    specs = (exported.OffsetSpec.earliest(), exported.OffsetSpec.latest())

    def results(futures: dict[Any, Any]) -> list[Any]:
        return [future.result(TIMEOUT) for future in futures.values()]

    def ask() -> None:
        members = admin.describe_consumer_groups(group_ids())
        asked = [ConsumerGroupTopicPartitions(group_id) for group_id in group_ids()]
        futures = [admin.list_consumer_group_offsets([one]) for one in asked]  # one group a call
        groups = [group for future in futures for group in results(future)]
        committed = [
            (one.topic, one.partition) for group in groups for one in group.topic_partitions
        ]
        places = set(committed)
        ends = [admin.list_offsets({Partition(*one): spec for one in places}) for spec in specs]
        for future in (members, *ends):
            results(future)
        assert len(committed) == GROUPS * PARTITIONS

    return [cost_of(ask, 1), cost_of(ask, CALLS)]


CONTENDERS = {"kafka_fast": ours, "confluent": confluent}


def group_ids() -> list[str]:
    """Return the ids of all groups."""
    return [f"lagging-{number}" for number in range(GROUPS)]


def rows_of(rounds: int) -> Iterator[Row]:
    """Compare the contenders on a broker whose groups have committed."""
    with tempfile.TemporaryDirectory() as folder, RealKafka() as kafka:
        with Admin(bootstrap_servers=kafka.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).raise_first()
            admin.wait_until_topics_visible([TOPIC])
            offsets = {TopicPartition(TOPIC, number): 0 for number in range(PARTITIONS)}
            for group_id in group_ids():
                admin.alter_consumer_group_offsets(group_id, offsets).raise_first()
        for contender in CONTENDERS:
            run_elsewhere(__file__, folder, contender, kafka.bootstrap)  # compiles its modules
        for _ in range(rounds):
            for contender in CONTENDERS:
                measured = run_elsewhere(__file__, folder, contender, kafka.bootstrap)
                rows = measured.get("rows", [measured])
                for scenario, row in zip(SCENARIOS, rows, strict=False):
                    yield {"contender": contender, "scenario": scenario, **row}


if __name__ == "__main__":
    if sys.argv[1:2] == [MEASURE]:
        print(json.dumps({"rows": CONTENDERS[sys.argv[2]](sys.argv[3])}))
    else:
        sys.exit(show_runs(__doc__, rows_of, 3))
