"""Transactional producers, coordinators that move, brokers that die: the checker finds nothing.

The producers here are scripts without a client: each reads a partition of its own, writes a result
for each record, and commits both or aborts. Their former lives wake up and write on.
"""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.find_coordinator import FindCoordinatorRequest
from kafka_fast.protocol.schema import Request
from kafka_fast.record import read_batches
from kafka_fast.testing.broker.transactions.settings import TransactionSettings
from kafka_fast.testing.broker.versions import TXN_OFFSET_COMMIT, WRITE_TXN_MARKERS
from tests.integration.scenarios.transactions.producers import TransactionalProducer, fetch
from tests.sim.worlds.transactions.transaction_checker import (
    Attempt,
    GroupPartition,
    Told,
    TopicPartition,
    View,
    Written,
    batches_of,
    check,
)
from tests.unit.testing.broker.memory import Client, World

NODES = (1, 2, 3)
PARTITIONS = 3
PRODUCERS = 3
STEPS = 40
PATIENCE = 1.0  # seconds that a request waits for its answer
TIMEOUT_MS = 3000
AGAIN = {
    errors.ConcurrentTransactions.code,
    errors.CoordinatorNotAvailable.code,
    errors.NotCoordinator.code,
    errors.NotEnoughReplicas.code,
    errors.NotLeaderOrFollower.code,
}
NO_ANSWER = -1000


class Wire:
    """Asks whichever broker is the right one, and waits in virtual time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.node_id = 0

    def ask(self, body: Request, version: int) -> Any:
        """Return the response, None: there is none."""
        cluster = self.world.cluster
        if not cluster.state.nodes[self.node_id].alive:
            return None
        client: Client = self.world.connect(self.node_id)
        client.send(body, version)
        deadline = self.world.now + PATIENCE
        while (answer := client.take(body, version)) is None:
            if client.closed or self.world.now >= deadline:
                return None
            self.world.run_until(self.world.now + 0.05)
        return answer


class Chain:
    """A producer that turns the records of its input into results, life after life."""

    def __init__(self, world: World, number: int, protocol: int, source: random.Random) -> None:
        self._world = world
        self._random = source
        self._wire = Wire(world)
        self._name = f"chain-{number}"
        self._input: TopicPartition = ("in", number)
        self._group = f"group-{number}"
        self._protocol = protocol
        self._producer = self._new_life()
        self._is_ready = False
        self._lives = 0
        self.zombies: list[tuple[TransactionalProducer, bytes]] = []
        self.attempts: list[Attempt] = []

    @property
    def place(self) -> GroupPartition:
        return self._group, self._input

    def step(self) -> None:
        """Do one transaction, as far as it goes."""
        if not self._is_ready and not self._init():
            return
        offsets = self._world.cluster.state.offsets.get(self._group)
        if offsets is not None and offsets.is_unstable(*self._input):
            self._world.run_until(self._world.now + 0.1)
            return  # who reads on before the markers are written reads some records again
        done = self._world.cluster.committed(self._group).get(self._input, 0)
        count = self._random.randint(1, 3)
        attempt = Attempt(f"{self._name} {len(self.attempts)}")
        self.attempts.append(attempt)
        for offset in range(done, done + count):
            value = b"%s|%d|%d" % (self._name.encode(), len(self.attempts), offset)
            partition = ("out", self._random.randrange(PARTITIONS))
            attempt.records.append(Written(value, partition, (self._input, offset)))
            if not self._write(value, partition):
                self._die(attempt)
                return
        attempt.offsets[self.place] = done + count
        if not self._commit_offsets(done + count) or self._random.random() < 0.1:
            self._die(attempt)
            return
        self._end(attempt, commit=self._random.random() < 0.7)

    def find_group(self, client: Client) -> None:
        """Let the group have a coordinator."""
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[self._group])
        client.ask(request, 4)

    def wake_zombie(self) -> None:
        """Let a former life write, if the present one has begun: nobody may ever read that."""
        if not (self.zombies and self._is_ready):
            return
        zombie, value = self._random.choice(self.zombies)
        partition = self._random.randrange(PARTITIONS)
        self._to_leader("out", partition)
        self._code(lambda: zombie.write("out", partition, value=value))
        self._to_coordinator()
        self._code(lambda: zombie.ask_to_end(commit=True).error_code)

    # ---- steps ----

    def _new_life(self) -> TransactionalProducer:
        return TransactionalProducer(self._wire, self._name, protocol=self._protocol)  # type: ignore[arg-type]

    def _die(self, attempt: Attempt) -> None:
        """Leave the transaction as it is; the next life aborts it."""
        self._lives += 1
        value = b"%s|zombie|%d" % (self._name.encode(), self._lives)
        self.zombies.append((self._producer, value))
        attempt.records.append(Written(value))
        self._producer = self._new_life()
        self._is_ready = False

    def _init(self) -> bool:
        for _ in range(30):
            self._to_coordinator()
            code = self._code(lambda: self._producer.ask_for_id(timeout_ms=TIMEOUT_MS).error_code)
            if code == 0:
                self._is_ready = True
                return True
            self._world.run_until(self._world.now + 0.1)
        return False

    def _write(self, value: bytes, partition: TopicPartition) -> bool:
        topic, index = partition
        if self._protocol == 1 and not self._coordinated(lambda: self._producer.add(topic, index)):
            return False
        for _ in range(10):
            self._to_leader(topic, index)
            code = self._code(lambda: self._producer.write(topic, index, value=value))
            if code == 0:
                return True
            if code not in (*AGAIN, NO_ANSWER):
                return False
            self._world.run_until(self._world.now + 0.1)
        return False

    def _commit_offsets(self, offset: int) -> bool:
        producer = self._producer
        if self._protocol == 1 and not self._coordinated(lambda: producer.add_offsets(self._group)):
            return False
        for _ in range(10):
            self._wire.node_id = max(self._world.cluster.coordinator(self._group), 1)
            sent = {self._input: offset}
            code = self._code(lambda: producer.commit_offsets(self._group, sent)[0])  # noqa: B023
            if code == 0:
                return True
            if code not in (*AGAIN, NO_ANSWER):
                return False
            self._world.run_until(self._world.now + 0.1)
        return False

    def _end(self, attempt: Attempt, *, commit: bool) -> None:
        if commit:
            attempt.told = Told.UNKNOWN
        if self._coordinated(lambda: self._producer.ask_to_end(commit=commit).error_code):
            attempt.told = Told.COMMITTED if commit else Told.ABORTED
        else:
            self._producer = self._new_life()
            self._is_ready = False

    def _coordinated(self, step: Any) -> bool:
        """Repeat a step at the coordinator; tell whether it succeeds."""
        for _ in range(10):
            self._to_coordinator()
            code = self._code(step)
            if code not in (*AGAIN, NO_ANSWER):
                return code == 0
            self._world.run_until(self._world.now + 0.1)
        return False

    def _code(self, step: Any) -> int:
        try:
            return int(step())
        except AttributeError:  # there was no answer to read
            return NO_ANSWER

    def _to_coordinator(self) -> None:
        self._wire.node_id = max(self._world.cluster.transaction_coordinator(self._name), 1)

    def _to_leader(self, topic: str, index: int) -> None:
        self._wire.node_id = max(self._world.cluster.state.partition(topic, index).leader, 1)


def strike(world: World, source: random.Random) -> None:
    """Let something go wrong, or end."""
    cluster = world.cluster
    live = [node.node_id for node in cluster.state.live_nodes]
    match source.randrange(8):
        case 0:
            name = f"chain-{source.randrange(PRODUCERS)}"
            cluster.move_transaction_coordinator(name, source.choice(live))
        case 1:
            cluster.move_leader("out", source.randrange(PARTITIONS), source.choice(live))
        case 2:
            cluster.move_coordinator(f"group-{source.randrange(PRODUCERS)}", source.choice(live))
        case 3 if len(live) == len(NODES):
            cluster.kill(source.choice(live))
        case 4:
            for node_id in set(NODES) - set(live):
                cluster.restart(node_id)
        case 5:
            seconds = source.choice([0.05, 0.5, 2.0])
            cluster.faults.delay(seconds, api=WRITE_TXN_MARKERS, count=source.randint(1, 3))
        case 6:
            lost = source.choice([True, False])
            cluster.faults.error(
                WRITE_TXN_MARKERS, errors.NotLeaderOrFollower, count=2, applied=lost
            )
        case _:
            cluster.faults.error(
                TXN_OFFSET_COMMIT, errors.NotCoordinator, count=1, applied=source.random() < 0.5
            )
    world.settle()


def read_committed(world: World, index: int) -> list[bytes]:
    """Return what a reader makes of a Fetch with read_committed."""
    client = world.connect(world.cluster.state.partition("out", index).leader)
    data = fetch(client, "out", partition=index, isolation=1)  # type: ignore[arg-type]
    aborted = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
    skipped: set[int] = set()
    values = []
    for one in read_batches(data.records or b""):
        while aborted and aborted[0][0] <= one.base_offset:
            skipped.add(aborted.pop(0)[1])
        if one.is_control:
            skipped.discard(one.producer_id)
        elif one.producer_id not in skipped:
            values += [bytes(record.value or b"") for record in one.records()]
    return values


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("version", [1, 2])
def test_transactions_are_whole_whatever_happens(version: int, seed: int) -> None:
    source = random.Random(seed)
    world = World(
        nodes=len(NODES),
        seed=seed,
        partitions=PARTITIONS,
        replication_factor=len(NODES),
        auto_create=False,
        unix_ms_at_zero=int(time.time() * 1000),
        transactions=TransactionSettings(version, abort_interval_ms=500),
    )
    for topic in ("in", "out"):
        world.cluster.create_topic(topic)
    chains = [Chain(world, number, version, source) for number in range(PRODUCERS)]
    client = world.connect()
    for chain in chains:
        TransactionalProducer(client, "x").find_coordinator_once()  # type: ignore[arg-type]
        chain.find_group(client)
    for _ in range(STEPS):
        source.choice(chains).step()
        if source.random() < 0.4:
            strike(world, source)
        if source.random() < 0.2:
            source.choice(chains).wake_zombie()
    world.cluster.faults.clear()
    for node in list(world.cluster.state.nodes.values()):
        if not node.alive:
            world.cluster.restart(node.node_id)
    world.run_until(world.now + 2 * TIMEOUT_MS / 1000)
    world.settle()
    attempts = [attempt for chain in chains for attempt in chain.attempts]
    partitions = [("out", index) for index in range(PARTITIONS)]
    state = world.cluster.state
    view = View(
        {one: read_committed(world, one[1]) for one in partitions},
        {one: state.partition(*one).log.last_stable_offset for one in partitions},
        {
            chain.place: world.cluster.committed(chain.place[0]).get(chain.place[1], 0)
            for chain in chains
        },
    )
    logs = {one: batches_of(world.cluster.batches(*one)) for one in partitions}
    assert check(attempts, logs, view) == []
    assert sum(one.told is Told.COMMITTED for one in attempts) > 5
