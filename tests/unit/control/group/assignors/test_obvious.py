"""`range` and `roundrobin` against the plainest way to say what they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_fast.control.group.assignors import GroupMember, GroupTopics, PartitionReplicas
from kafka_fast.control.group.assignors.range import RangeAssignor
from kafka_fast.control.group.assignors.roundrobin import RoundRobinAssignor
from kafka_fast.control.group.assignors.subscribers import each, lowest, ordered
from kafka_fast.types import TopicPartition

Assignment = Mapping[str, Sequence[TopicPartition]]


def obvious_range(topics: GroupTopics, members: Sequence[GroupMember]) -> Assignment:
    """Cut each topic into pieces; a partition goes to the first member with room in its rack."""
    pieces: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    for topic in sorted(topics):
        takers = [member for member in ordered(members) if topic in member.topics]
        if not takers:
            continue
        size, extra = divmod(len(topics[topic]), len(takers))
        room = {taker.member_id: size + (place < extra) for place, taker in enumerate(takers)}
        left = list(topics[topic])
        racks = {member.rack_id for member in takers if member.rack_id}
        if any(not racks <= partition.racks for partition in topics[topic]):
            for partition in topics[topic]:
                near = [
                    taker
                    for taker in takers
                    if taker.rack_id in partition.racks and room[taker.member_id]
                ]
                if near:
                    room[near[0].member_id] -= 1
                    pieces[near[0].member_id].append(TopicPartition(topic, partition.partition))
                    left.remove(partition)
        for member in takers:
            for _ in range(room[member.member_id]):
                number = left.pop(0).partition
                pieces[member.member_id].append(TopicPartition(topic, number))
    return pieces


def obvious_round_robin(topics: GroupTopics, members: Sequence[GroupMember]) -> Assignment:
    """Deal the partitions out; a member that does not want the topic is passed over."""
    hands: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    turn = cycle(ordered(members))
    for topic in sorted(topics):
        for partition in topics[topic]:
            if any(topic in member.topics for member in members):
                taker = next(member for member in turn if topic in member.topics)
                hands[taker.member_id].append(TopicPartition(topic, partition.partition))
    return hands


names = st.sampled_from("ABCD")
racks = st.sampled_from("xyz")


@st.composite
def members(draw: Callable[..., object]) -> list[GroupMember]:
    joined = []
    for number in range(draw(st.integers(1, 6))):
        subscribed = draw(st.frozensets(names))
        instance = draw(
            st.none() | st.sampled_from("ab").map(lambda letter, n=number: f"{letter}{n}")
        )
        joined.append(
            GroupMember(f"c{number}", subscribed, instance, rack_id=draw(st.none() | racks))
        )
    return joined


topics = st.dictionaries(
    names,
    st.lists(st.frozensets(racks), min_size=1, max_size=9).map(
        lambda every: [PartitionReplicas(number, its) for number, its in enumerate(every)]
    ),
)


def in_order(assignment: Assignment) -> dict[str, list[TopicPartition]]:
    return {member: sorted(partitions) for member, partitions in assignment.items()}


@given(topics, members())
@settings(deadline=None)
def test_range_is_the_obvious_one(topics: GroupTopics, members: list[GroupMember]) -> None:
    assignment = RangeAssignor().assign(topics, members)
    assert in_order(assignment) == in_order(obvious_range(topics, members))


@given(topics, members())
@settings(deadline=None)
def test_round_robin_is_the_obvious_one(topics: GroupTopics, members: list[GroupMember]) -> None:
    assert RoundRobinAssignor().assign(topics, members) == obvious_round_robin(topics, members)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_masks_hold_numbers_in_order(numbers: set[int]) -> None:
    mask = sum(1 << number for number in numbers)
    assert list(each(mask)) == sorted(numbers)
    assert lowest(mask) == min(numbers)
