"""Groups of any type with their members, as the commands show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from kafka_fast import TopicPartition
from kafka_fast.cli.operators.described import told
from kafka_fast.errors import GroupIdNotFound, KafkaError, UnsupportedVersionError, UsageError
from kafka_fast.values import Value

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import AdminResult, MemberDescription, StreamsMemberDescription


class MemberFacts(Value):
    """A member of a group of any type."""

    member_id: str
    instance_id: str | None
    """group.instance.id; None: it is no static member."""
    client_id: str
    host: str
    rack_id: str | None
    epoch: int | None
    """Of its assignment; None: of a classic group."""
    topics: tuple[str, ...] | None
    """To which it subscribes by name; None: of a streams group."""
    regex: str | None
    partitions: tuple[TopicPartition, ...] | None
    """What it reads; None: it is no consumer."""
    tasks: tuple[str, ...] | None
    """The active tasks of a member of a streams group; None: it is of another group."""

    @property
    def reads(self) -> str | None:
        """What it reads, as a cell: "orders:0,1 audit:2"; None: not known."""
        if self.partitions is None:
            return None if self.tasks is None else " ".join(self.tasks) or None
        numbers: dict[str, list[str]] = {}
        for partition in self.partitions:
            numbers.setdefault(partition.topic, []).append(str(partition.partition))
        return " ".join(f"{topic}:{','.join(ones)}" for topic, ones in numbers.items()) or None

    @property
    def entry(self) -> dict[str, object]:
        """The member for programs."""
        return {
            "member": self.member_id,
            "instance": self.instance_id,
            "client": self.client_id,
            "host": self.host,
            "rack": self.rack_id,
            "epoch": self.epoch,
            "topics": self.topics,
            "regex": self.regex,
            "partitions": None
            if self.partitions is None
            else [partition._asdict() for partition in self.partitions],
            "tasks": self.tasks,
        }


class GroupFacts(Value):
    """A group of any type."""

    group_id: str
    type: str
    """Kafka's word."""
    state: str | None
    """Kafka's word; None: it has told one that is not known here."""
    assignor: str | None
    coordinator: int
    group_epoch: int | None
    assignment_epoch: int | None
    members: tuple[MemberFacts, ...]


def describe(
    admin: Admin, group_ids: Iterable[str]
) -> tuple[dict[str, GroupFacts], dict[str, KafkaError]]:
    """Return groups of whichever type, and what is wrong with the others.

    A group is first taken for one of consumers. The coordinator says so if it is none, or that no
    group of consumers has this name.
    """
    names = list(dict.fromkeys(group_ids))
    groups: dict[str, GroupFacts] = {}
    errors = _described(admin.describe_consumer_groups, names, groups, None)
    others = [name for name in names if isinstance(errors.get(name), UsageError)]
    errors |= _described(admin.describe_classic_groups, others, groups, "Classic")
    for call, type_name in (
        (admin.describe_share_groups, "Share"),
        (admin.describe_streams_groups, "Streams"),
    ):
        absent = [
            name
            for name in names
            if name not in groups and isinstance(errors.get(name), GroupIdNotFound)
        ]
        for name, error in _described(call, absent, groups, type_name).items():
            # An older broker has no such groups: then the first error stays.
            if not isinstance(error, (GroupIdNotFound, UnsupportedVersionError)):
                errors[name] = error  # nobody knows whether the group is there
    return (
        {name: groups[name] for name in names if name in groups},
        {name: errors[name] for name in names if name not in groups},
    )


def _described(
    call: Callable[[list[str]], AdminResult[str, Any]],
    names: list[str],
    groups: dict[str, GroupFacts],
    type_name: str | None,
) -> dict[str, KafkaError]:
    """Add what one API knows of these groups; return why it does not know the others."""
    if not names:
        return {}
    result = call(names)
    for name, group in result.succeeded.items():
        groups[name] = GroupFacts(
            name,
            type_name or group.type.value,
            told(group.state.value),
            (group.protocol if type_name == "Classic" else group.assignor) or None,
            group.coordinator,
            getattr(group, "group_epoch", None),
            getattr(group, "assignment_epoch", None),
            tuple(
                sorted(
                    (
                        _streams_member(one) if type_name == "Streams" else _member(one)
                        for one in group.members
                    ),
                    key=lambda one: (one.client_id, one.instance_id or "", one.member_id),
                )
            ),
        )
    errors: dict[str, KafkaError] = result.errors
    return errors


def _member(member: MemberDescription) -> MemberFacts:
    reads = member.assignment
    return MemberFacts(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.host.lstrip("/"),
        member.rack_id,
        member.member_epoch,
        tuple(sorted(member.subscribed_topics)),
        member.subscribed_regex,
        None if reads is None else tuple(sorted(reads)),
        None,
    )


def _streams_member(member: StreamsMemberDescription) -> MemberFacts:
    return MemberFacts(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.host.lstrip("/"),
        member.rack_id,
        member.member_epoch,
        None,
        None,
        None,
        tuple(f"{one.subtopology_id}_{one.partition}" for one in sorted(member.assignment.active)),
    )
