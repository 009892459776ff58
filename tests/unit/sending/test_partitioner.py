"""Which partition a record without one goes to, as far as queues and leaders decide."""

from __future__ import annotations

import pytest

from kafka_fast.sending._accumulator import Accumulator
from tests.unit.dataplane.rig import ProduceRig

BATCH = bytes(250_000)
"""A record that fills a batch: each one is a draw of its own."""


def drawn(rig: ProduceRig, count: int, *, adaptive: bool) -> list[int]:
    """Send so many batches, each answered before the next; return how many went where."""
    accumulator = Accumulator(rig.queues, max_block=1e-6, adaptive=adaptive)
    counts = [0] * 4
    for _ in range(count):
        accumulator.send_nowait("t", BATCH)
        for sent in rig.requests():
            for _, partition in sent.batches:
                counts[partition] += 1
            rig.answer(sent)
    return counts


def with_a_queue_that_waits() -> ProduceRig:
    """Return a rig in which three batches wait for a link to partition 0."""
    rig = ProduceRig(partitions=4, linger=3600.0, warm=True)
    rig.route(0, 0)
    for _ in range(3):
        rig.send_nowait(BATCH, 0)
    rig.turn()
    return rig


def test_the_adaptive_choice_avoids_where_much_waits() -> None:
    """With weights 1 and 4 or more, partition 0 gets less than a thirteenth (KIP-794)."""
    counts = drawn(with_a_queue_that_waits(), 300, adaptive=True)
    assert sum(counts) > 300 - 40, "what went to partition 0 waits there"
    mean = sum(counts) / 3
    chi_square = sum((count - mean) ** 2 / mean for count in counts[1:])
    assert chi_square < 22, counts  # two degrees of freedom: p < 0.00002


def test_without_it_all_are_alike() -> None:
    counts = drawn(with_a_queue_that_waits(), 120, adaptive=False)
    assert 10 < 120 - sum(counts) < 60, "a quarter, however much waits there"


@pytest.mark.parametrize("without_leader", [set[int](), {1}, {0, 3}, {0, 1, 2, 3}])
def test_turns_pass_over_partitions_without_a_leader(without_leader: set[int]) -> None:
    """As Java's RoundRobinPartitioner: where no partition has a leader, all have their turn."""
    rig = ProduceRig(partitions=4, linger=3600.0)
    for partition in range(4):
        rig.queues.set_available(partition, partition not in without_leader)
    robin = Accumulator(rig.queues, max_block=1e-6, partitioner="round_robin")
    for number in range(24):
        robin.send_nowait("t", b"%d" % number)
    rig.turner.begin_flush()
    (sent,) = rig.requests()
    turns = sorted(set(range(4)) - without_leader) or list(range(4))
    assert sorted(partition for _, partition in sent.batches) == turns
    for at, partition in enumerate(turns):
        assert sent.values(partition) == [b"%d" % number for number in range(24)][at :: len(turns)]
