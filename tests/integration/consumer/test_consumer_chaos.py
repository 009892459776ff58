"""The promise of groups, where it is hardest to keep: members that are killed, brokers that fail.

Each member is a process of its own and keeps a journal; a writer fills the topic all the time.
In the end librdkafka reads the log, and `group_journal` compares: every record was delivered,
nothing was skipped, and no commit ever went ahead of what was done.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kafka_fast import Producer
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.conftest import started
from tests.integration.consumer.group_journal import (
    ASSIGNED,
    LOST,
    REVOKED,
    Commits,
    Life,
    check,
    delivered,
    repetitions,
)
from tests.integration.producing import TIMEOUT, new_topic, read_values, say
from tests.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
PARTITIONS = 6
MEMBERS = 3
KILLS = 3
ROLLS = 3
BURST = 200
TICK = 0.05
RECORDS = 60_000
"""At least so many for each group; the writer goes on until then, and until the faults are over."""
SAMPLE_EVERY = 0.2
ASK_TIMEOUT = 10.0
WAYS = ("poll", "loop", "batches")

# A dead member is missed after 3 s, and the survivors hear of it soon.
QUICK = {
    "group.min.session.timeout.ms": 3_000,
    "group.consumer.min.heartbeat.interval.ms": 300,
    "group.consumer.heartbeat.interval.ms": 300,
    "group.consumer.min.session.timeout.ms": 3_000,
    "group.consumer.session.timeout.ms": 3_000,
    "group.consumer.assignment.interval.ms": 0,
}
ANY = {"auto.offset.reset": "earliest", "auto.commit.interval.ms": 200}
CLASSIC = {**ANY, "session.timeout.ms": 3_000, "heartbeat.interval.ms": 300}
CONSUMER_PROTOCOL = {**ANY, "group.protocol": "consumer"}
PATIENCE_MS = 20_000
"""A session that outlasts the start of a process on a busy machine."""


def classic(*assignors: str) -> dict[str, object]:
    return {**CLASSIC, "partition.assignment.strategy": ",".join(assignors)}


KINDS: dict[str, dict[str, object]] = {
    "range": classic("range"),
    "roundrobin": classic("roundrobin"),
    "sticky": classic("sticky"),
    "cooperative-sticky": classic("cooperative-sticky"),
    "consumer protocol": CONSUMER_PROTOCOL,
}


@pytest.fixture(scope="module")
def shared_kafka(request: pytest.FixtureRequest) -> Iterator[RealKafka]:
    """Three brokers that notice dead members soon, of the release that knows all protocols."""
    if request.config.getoption("--kafka-version") is not None:
        pytest.skip("groups under faults are tried on the newest release")
    with started(3, None, QUICK) as cluster:
        yield cluster


@pytest.fixture
def kafka(shared_kafka: RealKafka) -> RealKafka:
    """All three of them running."""
    shared_kafka.heal()
    return shared_kafka


class Writer:
    """Fills a topic with values that differ, in a thread of its own."""

    def __init__(self, kafka: RealKafka, *, rate: int = BURST) -> None:
        self.topic = new_topic(kafka, PARTITIONS, replication=3)
        self.sent = 0
        self._rate = rate
        self._producer = Producer(bootstrap_servers=kafka.bootstrap)
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer")
        self._thread.start()

    def finish(self) -> None:
        """Write what is missing; return when everything is in the log."""
        self._enough.set()
        self._thread.join()
        assert self._producer.flush() == 0
        assert self._producer.metrics()["records_failed"] == 0

    def close(self) -> None:
        self._enough.set()
        self._thread.join()
        self._producer.close()

    def _run(self) -> None:
        while not (self._enough.is_set() and self.sent >= RECORDS):
            for _ in range(self._rate):
                value = b"value-%d" % self.sent
                self._producer.send_nowait(self.topic, value, partition=self.sent % PARTITIONS)
                self.sent += 1
            self._enough.wait(TICK)


class Member:
    """A process that reads."""

    def __init__(
        self, topic: str, folder: Path, name: str, way: str, config: Mapping[str, object]
    ) -> None:
        self.life = Life(name, folder / f"{name}.journal")
        self.way = way
        self.config = config
        self._said = folder / f"{name}.log"
        arguments = [topic, str(folder / f"{name}.journal"), way, json.dumps(config)]
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.consumer.member", *arguments],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def look(self) -> Life:
        """Return what it has written by now; it must be running."""
        assert self._process.poll() is None, f"{self.life.name} has ended: {self.said}"
        self.life.read()
        return self.life

    def kill(self) -> None:
        """End it without a word."""
        self.look()
        now = time.monotonic()
        self._process.kill()
        self._wait()
        self.life.kill(now)

    def leave(self) -> None:
        """Let it leave in peace."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._wait()
        assert self._process.returncode == 0, f"{self.life.name}: {self.said}"
        self.life.read()

    def abandon(self) -> None:
        """Be sure that it is gone, whatever has happened."""
        self._process.kill()
        self._wait()

    @property
    def said(self) -> str:
        """Its last words."""
        return self._said.read_text(errors="replace")[-4_000:]

    def _wait(self) -> None:
        assert self._process.stdin is not None
        self._process.wait(TIMEOUT)
        with contextlib.suppress(OSError):
            self._process.stdin.close()


class Group:
    """Members, living and dead, and what the broker says is committed for them."""

    def __init__(
        self,
        kafka: RealKafka,
        topic: str,
        folder: Path,
        configs: Iterable[Mapping[str, object]],
        *,
        patient: bool = False,
    ) -> None:
        """Start a member with each of `configs`.

        Args:
            kafka: the cluster.
            topic: what they read.
            folder: where their journals go.
            configs: theirs.
            patient: sessions of the consumer protocol, whose length the coordinator decides, last
                `PATIENCE_MS`.
        """
        self.id = f"group-{uuid.uuid4().hex[:8]}"
        self.lives: list[Life] = []
        self.members: list[Member] = []
        self.commits: list[Commits] = []
        self._bootstrap = kafka.bootstrap
        self._topic = topic
        self._folder = folder
        self._numbers = itertools.count(1)
        asking = {"bootstrap.servers": kafka.bootstrap, "log_level": 0}
        self._admin = AdminClient(asking)
        self._asker = confluent_kafka.Consumer({**asking, "group.id": self.id})
        self._places = [
            confluent_kafka.TopicPartition(topic, partition) for partition in range(PARTITIONS)
        ]
        self._ended = threading.Event()
        self._sampler = threading.Thread(target=self._sample, name=f"offsets of {self.id}")
        self._sampler.start()
        try:
            if patient:
                self._be_patient()
            for way, config in zip(WAYS, configs, strict=False):
                self.start(way, config)
        except BaseException:
            self.close()
            raise

    def start(self, way: str, config: Mapping[str, object]) -> Member:
        """Add a member."""
        own = {"bootstrap.servers": self._bootstrap, "group.id": self.id, **config}
        name = f"{self.id}-{next(self._numbers)}"
        member = Member(self._topic, self._folder, name, way, own)
        self.members.append(member)
        self.lives.append(member.life)
        return member

    def replace(self, member: Member) -> Member:
        """Start another one in the place of one that is gone."""
        self.members.remove(member)
        return self.start(member.way, member.config)

    def done(self) -> int:
        """Return how many records were done, those that were done again included."""
        for member in self.members:
            member.look()
        return sum(life.done for life in self.lives)

    def owned(self) -> list[set[int]]:
        """Return what each member has."""
        return [member.look().owned for member in self.members]

    def is_shared(self) -> bool:
        """Whether each partition has one reader, and all readers equally many."""
        owned = self.owned()
        even = all(len(own) == PARTITIONS // len(owned) for own in owned)
        return even and set().union(*owned) == set(range(PARTITIONS))

    def await_progress(self, count: int = 5 * BURST) -> None:
        before = self.done()
        eventually(lambda: self.done() > before + count, f"progress of {self.id}")

    def await_commit(self) -> None:
        """Wait until more is committed, for which there must be a coordinator."""

        def committed() -> int:
            return sum(self.commits[-1].offsets.values()) if self.commits else 0

        before = committed()
        eventually(lambda: committed() > before, f"a commit of {self.id}")

    def coordinator(self) -> int:
        """Return the node that coordinates the group; wait while it is not told."""

        def find() -> int | None:
            described = self._admin.describe_consumer_groups([self.id], request_timeout=10)
            try:
                return int(described[self.id].result().coordinator.id)
            except confluent_kafka.KafkaException:
                return None

        return eventually(find, f"a coordinator of {self.id}")

    def finish(self, records: int) -> None:
        """Read the rest, let everybody leave, and see what is committed in the end."""

        def is_read() -> bool:
            return self.done() >= records and len(delivered(self.lives)) >= records

        eventually(is_read, f"{self.id} to have read everything")
        for member in self.members:
            member.leave()
        self._ended.set()
        self._sampler.join()
        eventually(self._ask, "the last committed offsets")

    def close(self) -> None:
        """Leave nothing running."""
        self._ended.set()
        self._sampler.join()
        self._asker.close()
        for member in self.members:
            member.abandon()

    def _be_patient(self) -> None:
        key, value = "consumer.session.timeout.ms", str(PATIENCE_MS)
        setting = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.GROUP, self.id, incremental_configs=[setting])
        for altered in self._admin.incremental_alter_configs([resource]).values():
            altered.result()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_EVERY):
            self._ask()

    def _ask(self) -> bool:
        """Note what is committed, as librdkafka is told; return whether it was.

        By a consumer that never joins: the admin client of 2.16 crashes when it asks a coordinator
        that is none any more.
        """
        try:
            committed = self._asker.committed(self._places, ASK_TIMEOUT)
        except confluent_kafka.KafkaException:
            return False  # the coordinator is down
        if any(place.error is not None for place in committed):
            return False
        offsets = {place.partition: max(0, place.offset) for place in committed}
        self.commits.append(Commits(time.monotonic(), offsets))
        return True


def judge(kafka: RealKafka, writer: Writer, *groups: Group) -> None:
    """Let everybody come to the end, and compare."""
    writer.finish()
    for group in groups:
        group.finish(writer.sent)
    logs = {}
    for partition, log in enumerate(read_values(kafka.bootstrap, writer.topic, PARTITIONS)):
        assert [offset for offset, _, _ in log] == list(range(len(log)))
        logs[partition] = [value for _, _, value in log]
    assert sum(map(len, logs.values())) == writer.sent
    wrong = {}
    for group in groups:
        faults = check(logs, group.lives, group.commits)
        say(
            f"{group.id}: {writer.sent} records, {repetitions(group.lives)} of them again, "
            f"{len(group.lives)} members, {len(group.commits)} looks at commits, {dict(faults)}"
        )
        if faults:
            wrong[group.id] = faults
    assert not wrong


@pytest.mark.parametrize("kind", KINDS)
def test_members_are_killed(kafka: RealKafka, tmp_path: Path, kind: str) -> None:
    """One after the other without a word; another one takes the place of each."""
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(contextlib.closing(Writer(kafka)))
        group = Group(kafka, writer.topic, tmp_path, [KINDS[kind]] * MEMBERS)
        stack.callback(group.close)
        eventually(group.is_shared, "a share for each")
        for _ in range(KILLS):
            group.await_progress()
            victim = group.members[0]
            victim.kill()
            member = group.replace(victim)
            eventually(lambda member=member: member.look().done, "the new one to read")
            eventually(group.is_shared, "a share for each")
        judge(kafka, writer, group)


def test_brokers_are_restarted(kafka: RealKafka, tmp_path: Path) -> None:
    """All of them in turn, three times over, under groups of all protocols at once."""
    mixed = [classic("range", "sticky"), classic("roundrobin", "range"), classic("range")]
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(contextlib.closing(Writer(kafka, rate=BURST // 2)))
        groups = []
        for configs in (
            mixed,
            [KINDS["cooperative-sticky"]] * MEMBERS,
            [{**CONSUMER_PROTOCOL, "group.remote.assignor": "range"}] * MEMBERS,
        ):
            groups.append(Group(kafka, writer.topic, tmp_path, configs))
            stack.callback(groups[-1].close)
        for group in groups:
            eventually(group.is_shared, "a share for each")
        for _ in range(ROLLS):
            kafka.rolling_restart(writer.topic)
            for group in groups:
                group.await_progress()
        judge(kafka, writer, *groups)


def test_coordinators_are_killed(kafka: RealKafka, tmp_path: Path) -> None:
    """Whoever coordinates a group dies, with both protocols; the group goes on with another."""
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(contextlib.closing(Writer(kafka)))
        groups = []
        for kind in ("cooperative-sticky", "consumer protocol"):
            groups.append(Group(kafka, writer.topic, tmp_path, [KINDS[kind]] * MEMBERS))
            stack.callback(groups[-1].close)
        for group in groups:
            eventually(group.is_shared, "a share for each")
        for group in groups:
            node = kafka.node(group.coordinator())
            node.kill()
            for each in groups:
                each.await_progress()
            group.await_commit()
            assert group.coordinator() != node.node_id
            kafka.heal()
            kafka.wait_isr(writer.topic)
        judge(kafka, writer, *groups)


def test_static_members_are_restarted(kafka: RealKafka, tmp_path: Path) -> None:
    """Each in turn comes back under its name, and nobody else hears of it.

    With the classic protocol a member that was killed may come back as well; with the other one
    its name is free when it has left, or when its session has ended.
    """
    patient = {**CLASSIC, "session.timeout.ms": PATIENCE_MS}
    kinds = {"classic": (patient, (Member.leave, Member.kill))}
    kinds["consumer"] = (CONSUMER_PROTOCOL, (Member.leave,))
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(contextlib.closing(Writer(kafka)))
        groups = {}
        for protocol, (config, _) in kinds.items():
            configs = [{**config, "group.instance.id": name} for name in "abc"]
            groups[protocol] = Group(kafka, writer.topic, tmp_path, configs, patient=True)
            stack.callback(groups[protocol].close)
        for protocol, group in groups.items():
            eventually(group.is_shared, "a share for each")
            heard = {member: list(member.look().heard) for member in group.members}
            for end in kinds[protocol][1]:
                for member in list(group.members):
                    had = member.look().owned
                    end(member)
                    back = group.replace(member)
                    del heard[member]
                    heard[back] = [ASSIGNED]
                    eventually(lambda back=back: back.look().done, "the member to be back")
                    group.await_progress()
                    assert back.look().owned == had
                    assert {
                        restarted: restarted.look().heard for restarted in group.members
                    } == heard
        judge(kafka, writer, *groups.values())


def test_static_members_of_the_consumer_protocol_are_killed(
    kafka: RealKafka, tmp_path: Path
) -> None:
    """The name is not free before the session has ended; the one who returns waits for it.

    By then the coordinator has given the partitions to the others, and takes some back for the one
    who returns: no client can spare them that.
    """
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(contextlib.closing(Writer(kafka)))
        configs = [{**CONSUMER_PROTOCOL, "group.instance.id": name} for name in "abc"]
        group = Group(kafka, writer.topic, tmp_path, configs)
        stack.callback(group.close)
        eventually(group.is_shared, "a share for each")
        for victim in list(group.members):
            victim.kill()
            heard = {
                member: len(member.look().heard) for member in group.members if member is not victim
            }
            back = group.replace(victim)
            eventually(lambda back=back: back.look().done, "the member to be back")
            eventually(group.is_shared, "a share for each")
            group.await_progress()
            for other, count in heard.items():
                news = other.look().heard[count:]
                assert news.count(REVOKED) <= 2, "one for the death, one for the return"
                assert LOST not in news
        judge(kafka, writer, group)
