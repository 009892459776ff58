"""Groups as they are told to those outside of them: states, members, subscriptions, assignments.

Kafka describes a group as it was last written, a moment behind: so the scenarios ask again.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.groups.consumer_group_describe import ConsumerGroupDescribeRequest
from kafka_fast.protocol.apis.groups.consumer_group_describe import DescribedGroup as ConsumerGroup
from kafka_fast.protocol.apis.groups.describe_groups import DescribedGroup, DescribeGroupsRequest
from tests.integration.scenarios.groups import Member, commit, ready, until
from tests.integration.scenarios.steps import new_topic, tell_coordinator, unique_name
from tests.integration.scenarios.test_consumer_groups import Consumer
from tests.integration.scenarios.wire import CLIENT_ID, WireClient, connected

CLASSIC, NEWEST = 6, 1
NOT_FOUND = errors.GroupIdNotFound.code
HOST = "/127.0.0.1"


def classic(client: WireClient, group: str, version: int = CLASSIC) -> DescribedGroup:
    request = DescribeGroupsRequest(groups=[group])
    (answered,) = client.ask(request, version).groups
    assert answered.group_id == group
    described: DescribedGroup = answered
    return described


def consumer(client: WireClient, group: str) -> ConsumerGroup:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    (answered,) = client.ask(request, NEWEST).groups
    assert answered.group_id == group
    described: ConsumerGroup = answered
    return described


def classic_in(client: WireClient, group: str, state: str) -> DescribedGroup:
    described = until(lambda: classic(client, group), lambda one: one.group_state == state)
    assert described.error_code == 0
    return described


def consumer_in(client: WireClient, group: str, state: str, epoch: int) -> ConsumerGroup:
    def is_there(one: ConsumerGroup) -> bool:
        return (one.group_state, one.group_epoch) == (state, epoch)

    described = until(lambda: consumer(client, group), is_there)
    assert described.error_code == 0
    return described


@pytest.fixture
def group(client: WireClient) -> str:
    """A group id that the broker coordinates."""
    name = unique_name()
    ready(client, name)
    return name


@pytest.fixture
def topic(client: WireClient) -> str:
    """A topic that the group's coordinator knows of."""
    name = new_topic(client)
    tell_coordinator(client)
    return name


@pytest.fixture
def other(address: str) -> Iterator[WireClient]:
    """A second connection."""
    with connected(address) as made:
        yield made


def test_a_group_that_nobody_knows(client: WireClient, group: str) -> None:
    described = classic(client, group)
    assert (described.error_code, described.group_state) == (NOT_FOUND, "Dead")
    assert described.error_message == f"Group {group} not found."
    assert (described.protocol_type, described.protocol_data, described.members) == ("", "", [])
    for version in (0, 5):
        older = classic(client, group, version)
        assert (older.error_code, older.group_state) == (0, "Dead")
    newer = consumer(client, group)
    assert (newer.error_code, newer.error_message) == (NOT_FOUND, f"Group {group} not found.")
    assert (newer.group_state, newer.members) == ("", [])


def test_a_group_without_a_name(client: WireClient, group: str) -> None:
    assert classic(client, "").error_code == NOT_FOUND
    assert consumer(client, "").error_code == errors.InvalidGroupId.code


def test_several_groups_at_once(client: WireClient, group: str) -> None:
    asked = [group, f"{group}-2"]
    groups = client.ask(DescribeGroupsRequest(groups=asked), CLASSIC).groups
    assert sorted(one.group_id for one in groups) == asked, "Kafka answers in any order"
    newer = client.ask(ConsumerGroupDescribeRequest(group_ids=asked), NEWEST).groups
    assert sorted(one.group_id for one in newer) == asked
    assert client.ask(DescribeGroupsRequest(groups=[]), CLASSIC).groups == []


def test_a_group_that_only_commits(client: WireClient, group: str, topic: str) -> None:
    assert commit(client, group, topic, 5) == 0
    described = classic_in(client, group, "Empty")
    assert (described.protocol_type, described.members) == ("", [])
    newer = consumer(client, group)
    assert newer.error_code == NOT_FOUND
    assert newer.error_message == f"Group {group} is not a consumer group."


def test_a_classic_group_from_its_first_member_to_its_last(
    client: WireClient, other: WireClient, group: str
) -> None:
    member = Member(other, group, protocols=[("range", b"topics")])
    member.join()
    joining = classic_in(client, group, "CompletingRebalance")
    assert (joining.protocol_type, joining.protocol_data) == ("consumer", "")
    (one,) = joining.members
    assert (one.member_id, one.group_instance_id) == (member.member_id, None)
    assert (one.client_id, one.client_host) == (CLIENT_ID, HOST)
    assert (one.member_metadata, one.member_assignment) == (b"", b"")
    member.sync({member.member_id: b"all of it"})
    stable = classic_in(client, group, "Stable")
    assert (stable.protocol_type, stable.protocol_data) == ("consumer", "range")
    (one,) = stable.members
    assert (one.member_metadata, one.member_assignment) == (b"topics", b"all of it")
    assert classic(client, group, 0).members[0].member_metadata == b"topics"
    assert member.leave() == 0
    empty = classic_in(client, group, "Empty")
    assert (empty.protocol_type, empty.protocol_data, empty.members) == ("consumer", "", [])


def test_a_static_member(client: WireClient, other: WireClient, group: str) -> None:
    member = Member(other, group, instance_id="one")
    member.join()
    member.sync({member.member_id: b"a"})
    (one,) = classic_in(client, group, "Stable").members
    assert (one.member_id, one.group_instance_id) == (member.member_id, "one")
    assert classic(client, group, 3).members[0].group_instance_id is None


def test_a_group_of_the_other_protocol(client: WireClient, group: str, topic: str) -> None:
    member = Consumer(client, group, [topic])
    member.beat()
    consumer_in(client, group, "Stable", member.epoch)
    described = classic(client, group)
    assert (described.error_code, described.group_state) == (NOT_FOUND, "Dead")
    assert described.error_message == f"Group {group} is not a classic group."


def test_a_consumer_group_from_its_first_member_to_its_last(
    client: WireClient, group: str, topic: str
) -> None:
    first = Consumer(client, group, [topic, "nowhere"])
    first.beat()
    alone = consumer_in(client, group, "Stable", 2)
    assert (alone.assignment_epoch, alone.assignor_name) == (2, "uniform")
    (one,) = alone.members
    assert (one.member_id, one.instance_id, one.rack_id) == (first.member_id, None, None)
    assert (one.client_id, one.client_host, one.member_type) == (CLIENT_ID, HOST, 1)
    assert sorted(one.subscribed_topic_names) == sorted(["nowhere", topic])
    assert (one.subscribed_topic_regex, one.member_epoch) == ("", 2)
    (owned,) = one.assignment.topic_partitions
    assert (owned.topic_name, sorted(owned.partitions)) == (topic, [0, 1, 2])
    assert owned.topic_id == client.metadata(topic).topics[0].topic_id
    assert one.target_assignment == one.assignment
    second = Consumer(client, group, [topic], instance_id="static", assignor="range")

    def step() -> ConsumerGroup:
        second.beat()  # which makes a new target, not sooner than a second after the last one
        return consumer(client, group)

    both = until(step, lambda one: one.group_state == "Reconciling")
    assert (both.group_epoch, both.assignment_epoch) == (3, 3)
    members = {one.member_id: one for one in both.members}
    assert members[second.member_id].instance_id == "static"
    assert members[second.member_id].assignment.topic_partitions == []
    (target,) = members[second.member_id].target_assignment.topic_partitions
    (left,) = members[first.member_id].target_assignment.topic_partitions
    assert sorted([*target.partitions, *left.partitions]) == [0, 1, 2]
    assert first.leave() == second.leave() == 0
    empty = consumer_in(client, group, "Empty", 5)
    assert (empty.members, empty.assignment_epoch) == ([], 5)


def test_a_regular_expression(client: WireClient, group: str, topic: str) -> None:
    member = Consumer(client, group, regex=f"{topic}.*")

    def step() -> bool:
        member.beat()
        return bool(member.owned)

    until(step, bool)
    described = until(lambda: consumer(client, group), lambda one: one.group_state == "Stable")
    (one,) = described.members
    assert (one.subscribed_topic_names, one.subscribed_topic_regex) == ([], f"{topic}.*")
    (owned,) = one.assignment.topic_partitions
    assert (owned.topic_name, sorted(owned.partitions)) == (topic, [0, 1, 2])
