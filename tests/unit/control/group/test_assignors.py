"""The assignors: the protocol's own examples, kafka-python's results, and what each promises."""

from __future__ import annotations

import functools
import importlib
import itertools
import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_fast.control.group.assignors import (
    Assignor,
    GroupMember,
    GroupTopics,
    PartitionReplicas,
)
from kafka_fast.control.group.assignors.range import RangeAssignor
from kafka_fast.control.group.assignors.roundrobin import RoundRobinAssignor
from kafka_fast.control.group.assignors.sticky import (
    CooperativeStickyAssignor,
    StickyAssignor,
    balance,
)
from kafka_fast.types import TopicPartition

Assignment = Mapping[str, Sequence[TopicPartition]]

STICKY = [StickyAssignor, CooperativeStickyAssignor]


def make_topics(counts: Mapping[str, int]) -> GroupTopics:
    return {
        topic: [PartitionReplicas(number) for number in range(count)]
        for topic, count in counts.items()
    }


def make_members(wanted: Mapping[str, Sequence[str]]) -> list[GroupMember]:
    return [GroupMember(name, frozenset(topics)) for name, topics in wanted.items()]


def short(assignment: Assignment) -> dict[str, list[str]]:
    return {
        name: [str(partition) for partition in partitions]
        for name, partitions in assignment.items()
    }


def loads(assignment: Assignment) -> list[int]:
    return sorted(map(len, assignment.values()))


def check_valid(assignment: Assignment, topics: GroupTopics, members: list[GroupMember]) -> None:
    """Everything that anybody wants has one reader, who wants it."""
    given_out = [partition for partitions in assignment.values() for partition in partitions]
    expected = {
        TopicPartition(topic, partition.partition)
        for topic, partitions in topics.items()
        for partition in partitions
        if any(topic in member.topics for member in members)
    }
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == expected
    for member in members:
        assert {partition.topic for partition in assignment[member.member_id]} <= member.topics


class TestWorkedExample:
    """Topics A and B with two partitions each; members c1, c2 and c3 want both."""

    topics = make_topics({"A": 2, "B": 2})
    members = make_members({"c1": "AB", "c2": "AB", "c3": "AB"})

    def test_range(self) -> None:
        assert short(RangeAssignor().assign(self.topics, self.members)) == {
            "c1": ["A-0", "B-0"],
            "c2": ["A-1", "B-1"],
            "c3": [],
        }

    def test_round_robin(self) -> None:
        assert short(RoundRobinAssignor().assign(self.topics, self.members)) == {
            "c1": ["A-0", "B-1"],
            "c2": ["A-1"],
            "c3": ["B-0"],
        }

    @pytest.mark.parametrize("kind", STICKY)
    def test_sticky_balances_and_moves_the_fewest(self, kind: type[StickyAssignor]) -> None:
        first = kind().assign(self.topics, self.members[:2])
        check_valid(first, self.topics, self.members[:2])
        assert loads(first) == [2, 2]
        second = again(kind, self.topics, self.members, first)
        check_valid(second, self.topics, self.members)
        assert loads(second) == [1, 1, 2]
        assert moves(first, second) == 1
        third = again(kind, self.topics, self.members[1:], second)
        assert loads(third) == [2, 2]
        assert moves(second, third) == 0

    @pytest.mark.parametrize("kind", [RangeAssignor, RoundRobinAssignor, *STICKY])
    def test_more_members_than_partitions_leave_the_rest_idle(self, kind: type[Assignor]) -> None:
        members = make_members({f"c{number}": "A" for number in range(5)})
        assignment = kind().assign(self.topics, members)
        check_valid(assignment, {"A": self.topics["A"]}, members)
        assert loads(assignment) == [0, 0, 0, 1, 1]


def again(
    kind: type[StickyAssignor],
    topics: GroupTopics,
    members: Sequence[GroupMember],
    before: Assignment,
    generation: int = 1,
) -> Assignment:
    """Assign as the next generation would, by what members say of the last one."""
    told = []
    for member in members:
        owned = frozenset(before.get(member.member_id, ()))
        theirs = kind()
        theirs.handle_assignment(owned, generation if owned else -1, None)
        is_kept = theirs.is_cooperative
        told.append(
            GroupMember(
                member.member_id,
                member.topics,
                owned=owned if is_kept else frozenset(),
                generation=generation if owned and is_kept else -1,
                user_data=theirs.user_data(member.topics),
            )
        )
    return kind().assign(topics, told)


def moves(before: Assignment, after: Assignment) -> int:
    """Return how many partitions went from one member to another that are both there."""
    owner = {partition: name for name, some in before.items() for partition in some}
    return sum(
        owner.get(partition, name) != name and owner.get(partition) in after
        for name, some in after.items()
        for partition in some
    )


# ---- against kafka-python ----


class FakeCluster:
    """What kafka-python's assignors ask of its cluster metadata."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def topics(self) -> set[str]:
        return set(self._counts)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self._counts[topic])) if topic in self._counts else None


names = st.sampled_from("ABCDEF")
counts = st.dictionaries(names, st.integers(1, 9), min_size=1, max_size=6)
wanted = st.dictionaries(
    st.integers(0, 99).map("c{:02}".format),
    st.sets(names, min_size=1, max_size=6).map(sorted),
    min_size=1,
    max_size=7,
)


class TheirMember(NamedTuple):
    """What they are told of a member."""

    member_id: str
    metadata: Any
    group_instance_id: str | None = None


@functools.cache
def class_of_theirs(name: str) -> Any:
    """Return one of kafka-python's assignors."""
    modules = {"sticky": "sticky.sticky_assignor"}
    classes = {"range": "Range", "roundrobin": "RoundRobin", "sticky": "Sticky"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of its own imports
        pytest.importorskip("kafka", minversion="2.3")
        module = importlib.import_module(f"kafka.coordinator.assignors.{modules.get(name, name)}")
    logging.getLogger("kafka.coordinator").setLevel(logging.ERROR)
    return getattr(module, f"{classes[name]}PartitionAssignor")


def theirs_of(
    name: str,
    topic_counts: Mapping[str, int],
    subscriptions: Mapping[str, Sequence[str]],
    before: Assignment | None = None,
) -> Assignment:
    """Return what kafka-python's assignor makes of it, after `before` in generation 1."""
    members = []
    for member_id, topics in subscriptions.items():
        theirs = class_of_theirs(name)()
        if before is not None and member_id in before:
            theirs.member_assignment, theirs.generation = list(before[member_id]), 1
        members.append(TheirMember(member_id, theirs.metadata(set(topics))))
    assignments = class_of_theirs(name)().assign(FakeCluster(topic_counts), members)
    return {
        member_id: sorted(TopicPartition(*partition) for partition in assignment.partitions())
        for member_id, assignment in assignments.items()
    }


@given(counts, wanted | st.builds(dict.fromkeys, st.sets(names, min_size=1), names.map(list)))
@settings(deadline=None)
def test_range_and_round_robin_equal_kafka_pythons(
    topic_counts: dict[str, int], subscriptions: dict[str, list[str]]
) -> None:
    topics, members = make_topics(topic_counts), make_members(subscriptions)
    for ours in (RangeAssignor(), RoundRobinAssignor()):
        assignment = ours.assign(topics, members)
        check_valid(assignment, topics, members)
        try:
            expected = theirs_of(ours.name, topic_counts, subscriptions)
        except KeyError:  # of its own round robin, where subscriptions differ
            assert len(set(map(tuple, subscriptions.values()))) > 1
            continue
        assert {name: sorted(some) for name, some in assignment.items()} == expected


def spread(assignment: Assignment) -> int:
    """Return a measure of imbalance: the least there is has the least sum of squares."""
    return sum(load * load for load in loads(assignment))


@given(counts, wanted, wanted, st.booleans())
@settings(deadline=None, max_examples=60)
def test_sticky_is_as_balanced_as_kafka_pythons_and_moves_no_more(
    topic_counts: dict[str, int],
    before: dict[str, list[str]],
    newcomers: dict[str, list[str]],
    leaves: bool,
) -> None:
    """From one generation to the next: some come, and perhaps one goes."""
    after = {**newcomers, **before}
    if leaves and len(after) > 1:
        after.pop(min(before))
    topics = make_topics(topic_counts)
    first = StickyAssignor().assign(topics, make_members(before))
    check_valid(first, topics, make_members(before))
    members = make_members(after)
    theirs = theirs_of("sticky", topic_counts, after, first)
    for kind in STICKY:
        second = again(kind, topics, members, first)
        check_valid(second, topics, members)
        assert spread(second) <= spread(theirs)
        if spread(second) == spread(theirs):
            assert moves(first, second) <= moves(first, theirs)


@given(counts, wanted)
@settings(deadline=None, max_examples=60)
def test_sticky_keeps_everything_when_nothing_has_changed(
    topic_counts: dict[str, int], subscriptions: dict[str, list[str]]
) -> None:
    topics, members = make_topics(topic_counts), make_members(subscriptions)
    for kind in STICKY:
        first = kind().assign(topics, members)
        assert moves(first, again(kind, topics, members, first)) == 0


# ---- claims ----


class TestClaims:
    topics = make_topics({"A": 4})
    one, two = (TopicPartition("A", number) for number in range(2))

    def test_the_later_generation_has_it(self) -> None:
        members = make_members({"c1": "A", "c2": "A"})
        assignment = balance(self.topics, members, {"c1": (3, [self.one]), "c2": (4, [self.one])})
        assert self.one in assignment["c2"]

    def test_foreign_user_data_claim_nothing(self) -> None:
        members = [GroupMember("c1", frozenset("A"), user_data=b"\xff\x00 not ours")]
        for kind in STICKY:
            check_valid(kind().assign(self.topics, members), self.topics, members)

    def test_what_is_gone_or_unwanted_is_not_kept(self) -> None:
        members = make_members({"c1": "A", "c2": "A"})
        claims = {"c1": (1, [TopicPartition("A", 9), TopicPartition("Z", 0)]), "c2": (1, [])}
        check_valid(balance(self.topics, members, claims), self.topics, members)


# ---- static members and racks ----


def test_a_static_member_keeps_its_place_over_a_restart() -> None:
    topics = make_topics({"A": 4})
    for kind in (RangeAssignor, RoundRobinAssignor):
        results = []
        for life in itertools.count():
            members = [
                GroupMember(f"id-{life * 7 % 5}-{name}", frozenset("A"), instance_id=name)
                for name in ("x", "y")
            ]
            assignment = kind().assign(topics, members)
            results.append([assignment[member.member_id] for member in members])
            if life == 4:
                break
        assert all(result == results[0] for result in results)


class TestRacks:
    """KIP-881: within the sizes of the plain cut, partitions go where a replica is."""

    def members(self, *racks: str | None) -> list[GroupMember]:
        return [
            GroupMember(f"c{number}", frozenset("A"), rack_id=rack)
            for number, rack in enumerate(racks)
        ]

    def topics(self, *racks: str) -> GroupTopics:
        return {"A": [PartitionReplicas(n, frozenset(rack)) for n, rack in enumerate(racks)]}

    def test_everybody_reads_in_their_own_rack(self) -> None:
        assignment = RangeAssignor().assign(self.topics("y", "x", "y", "x"), self.members("x", "y"))
        assert short(assignment) == {"c0": ["A-1", "A-3"], "c1": ["A-0", "A-2"]}

    def test_balance_comes_before_nearness(self) -> None:
        assignment = RangeAssignor().assign(self.topics("x", "x", "x", "x"), self.members("x", "y"))
        assert short(assignment) == {"c0": ["A-0", "A-1"], "c1": ["A-2", "A-3"]}

    @pytest.mark.parametrize(
        ("partitions", "takers"),
        [(("", "", ""), ("x", "y")), (("xy", "xy", "xy"), ("x", "y")), (("x", "y", "x"), ())],
    )
    def test_where_racks_do_not_matter_the_cut_is_plain(
        self, partitions: Sequence[str], takers: Sequence[str]
    ) -> None:
        assignment = RangeAssignor().assign(
            self.topics(*partitions), self.members(*(takers or (None, None)))
        )
        assert short(assignment) == {"c0": ["A-0", "A-1"], "c1": ["A-2"]}

    @given(
        st.lists(st.sets(st.sampled_from("xyz")).map("".join), min_size=1, max_size=12),
        st.lists(st.sampled_from(["x", "y", "z", None]), min_size=1, max_size=5),
    )
    def test_sizes_never_depend_on_racks(
        self, partitions: list[str], racks: list[str | None]
    ) -> None:
        topics, members = self.topics(*partitions), self.members(*racks)
        assignment = RangeAssignor().assign(topics, members)
        check_valid(assignment, topics, members)
        plain = RangeAssignor().assign(topics, self.members(*(None for _ in racks)))
        assert {name: len(some) for name, some in assignment.items()} == {
            name: len(some) for name, some in plain.items()
        }
