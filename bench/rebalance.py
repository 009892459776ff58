"""How long a group pauses when one of its three members leaves: one JSON line.

    python bench/rebalance.py kafka_fast classic --bootstrap h:p --topic t
    python bench/rebalance.py confluent consumer --bootstrap h:p --topic t

The members are threads of this process, each with a consumer of its own; the main thread writes a
record to every partition every few milliseconds. Once each member has had its share for a while,
the third one leaves. The pause is the longest time around that moment without a record of some
partition, whoever got the one before and the one after; the interval of the writer is in it.
Both clients have the same heartbeat interval (with `consumer` it is the broker's), so that what is
compared is what they do between two heartbeats. When in its interval a group last changed is when
its members' heartbeats are due: each round leaves at another phase of it, evenly spread.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable

from bench.contenders import CONTENDERS
from bench.measure import percentile
from kafka_fast import Producer

PARTITIONS = 6
MEMBERS = 3
WRITE_EVERY = 0.005
HEARTBEAT_MS = 500
POLL = 0.1
AT_A_TIME = 500
SETTLED = 1.0
"""Seconds, at the least, for which every member has had its share before one leaves."""
GIVE_UP = 60.0


class Member(ABC):
    """One library's consumer in a group."""

    @abstractmethod
    def poll(self) -> list[int]:
        """Return the partition of each record that came."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group."""


class Ours(Member):
    """kafka_fast."""

    def __init__(self, config: dict[str, object], topic: str) -> None:
        from kafka_fast import Consumer

        self._consumer = Consumer(config)
        self._consumer.subscribe([topic])

    def poll(self) -> list[int]:
        """Call poll."""
        return [record.partition for record in self._consumer.poll(POLL, AT_A_TIME)]

    def close(self) -> None:
        """Close."""
        self._consumer.close()


class Confluent(Member):
    """confluent-kafka."""

    def __init__(self, config: dict[str, object], topic: str) -> None:
        from confluent_kafka import Consumer

        self._consumer = Consumer(config)
        self._consumer.subscribe([topic])

    def poll(self) -> list[int]:
        """Call consume."""
        messages = self._consumer.consume(AT_A_TIME, POLL)
        return [message.partition() or 0 for message in messages if not message.error()]

    def close(self) -> None:
        """Close."""
        self._consumer.close()


KINDS: dict[str, Callable[[dict[str, object], str], Member]] = {
    "kafka_fast": Ours,
    "confluent": Confluent,
}


class Deliveries:
    """Who got a record of which partition last, and how long each has stood still."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = [time.monotonic()] * PARTITIONS
        self._owner = [-1] * PARTITIONS
        self._changed = time.monotonic()
        self._pause = [0.0] * PARTITIONS

    def note(self, member: int, partitions: list[int]) -> None:
        """Take down what a member got just now."""
        now = time.monotonic()
        with self._lock:
            for partition in set(partitions):
                if self._owner[partition] != member:
                    self._owner[partition] = member
                    self._changed = now
                self._pause[partition] = max(self._pause[partition], now - self._last[partition])
                self._last[partition] = now

    def begin(self) -> None:
        """Forget the pauses so far."""
        with self._lock:
            self._pause = [0.0] * PARTITIONS

    def are_shared_by(self, count: int, seconds: float = SETTLED) -> bool:
        """Return whether just so many members have had equal shares for so long."""
        now = time.monotonic()
        with self._lock:
            shares = {owner: self._owner.count(owner) for owner in self._owner}
            return (
                -1 not in shares
                and len(shares) == count
                and set(shares.values()) == {PARTITIONS // count}
                and now - self._changed > seconds
                and now - min(self._last) < SETTLED
            )

    @property
    def pause(self) -> float:
        """Seconds for which the slowest partition has stood still."""
        with self._lock:
            return max(self._pause)


class Life:
    """A member and the thread that polls it until it is told to leave."""

    def __init__(self, member: Member, number: int, deliveries: Deliveries) -> None:
        self._member = member
        self._number = number
        self._deliveries = deliveries
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._leave.is_set():
            partitions = self._member.poll()
            if partitions:
                self._deliveries.note(self._number, partitions)
        self._member.close()

    def leave(self) -> None:
        """Have it leave its group; it may still be leaving when this returns."""
        self._leave.set()

    def join(self) -> None:
        """Wait until it has left."""
        self._thread.join(GIVE_UP)


class Writer:
    """Writes to every partition every few milliseconds."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer(bootstrap_servers=bootstrap, linger_ms=0)
        self._topic = topic

    def write_until(self, is_done: Callable[[], bool], what: str) -> None:
        """Go on writing until then."""
        deadline = time.monotonic() + GIVE_UP
        while not is_done():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what}: not within {GIVE_UP} s")
            for number in range(PARTITIONS):
                self._producer.send_nowait(self._topic, b"x" * 100, partition=number)
            time.sleep(WRITE_EVERY)

    def close(self) -> None:
        """Close."""
        self._producer.close()


def config_of(name: str, protocol: str, bootstrap: str, group: str) -> dict[str, object]:
    """Return a member's configuration; both libraries know these names."""
    config: dict[str, object] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "latest",
    }
    if protocol == "classic":
        config |= {"heartbeat.interval.ms": HEARTBEAT_MS, "session.timeout.ms": 6000}
    if name == "confluent":
        config["log_level"] = 0
    return config


def pauses(name: str, protocol: str, bootstrap: str, topic: str, rounds: int) -> list[float]:
    """Return the seconds that the pause of each round took."""
    config = config_of(name, protocol, bootstrap, f"bench-{uuid.uuid4().hex}")
    deliveries, writer = Deliveries(), Writer(bootstrap, topic)
    lives = [Life(KINDS[name](config, topic), i, deliveries) for i in range(MEMBERS)]
    durations: list[float] = []
    for number in range(rounds):
        settled = SETTLED + HEARTBEAT_MS / 1000 * number / rounds
        is_settled = functools.partial(deliveries.are_shared_by, MEMBERS, settled)
        writer.write_until(is_settled, "three members share")
        deliveries.begin()
        lives[-1].leave()
        writer.write_until(lambda: deliveries.are_shared_by(MEMBERS - 1), "two members share")
        durations.append(deliveries.pause)
        lives[-1].join()
        if number + 1 < rounds:
            lives[-1] = Life(KINDS[name](config, topic), MEMBERS - 1, deliveries)
    for life in lives:
        life.leave()
    for life in lives:
        life.join()
    writer.close()
    return durations


def main() -> int:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description="Measure the pause of a rebalance.")
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("protocol", choices=("classic", "consumer"))
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    result: dict[str, object]
    if options.contender not in KINDS:
        result = {"unsupported": "not compared"}
    else:
        durations = pauses(
            options.contender,
            options.protocol,
            options.bootstrap,
            options.topic,
            options.rounds,
        )
        result = {
            "rebalances": len(durations),
            "pause_p50_ms": percentile(durations, 0.5) * 1000,
            "pause_max_ms": max(durations) * 1000,
        }
    print(json.dumps({"contender": options.contender, "scenario": options.protocol, **result}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
