"""`kafka-fast groups list`, `describe`, `delete` and `members`.

`groups lag` is `lag`, and has its own tests. The embedded broker lists and deletes no groups. What
the page command-line.md shows of members is compared here, too.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafka_fast import Consumer, TopicPartition
from kafka_fast.admin import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    MemberDescription,
    ShareGroupDescription,
    StreamsGroupDescription,
    StreamsMemberDescription,
    StreamsTask,
    StreamsTasks,
)
from kafka_fast.cli.main import main
from kafka_fast.errors import (
    CoordinatorNotAvailable,
    GroupIdNotFound,
    KafkaTimeoutError,
    NonEmptyGroup,
    UnsupportedVersionError,
    UsageError,
)
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.documentation.pages import blocks
from tests.unit.cli.operators.scripted_admin import ScriptedAdmin, answered, of_nodes, replace_admin
from tests.unit.cli.terminals import terminal
from tests.waiting import eventually


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(auto_create=False) as kafka:
        kafka.create_topic("orders", 2)
        yield kafka


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> ScriptedAdmin:
    return replace_admin(monkeypatch)


@contextmanager
def member(kafka: EmbeddedKafka, **config: Any) -> Iterator[Consumer]:
    config |= {"group_id": "audit", "client_id": "ada", "bootstrap_servers": kafka.bootstrap}
    with Consumer(**config) as consumer:
        consumer.subscribe(["orders"])
        eventually(lambda: consumer.poll(0.02) or consumer.assignment())
        yield consumer


LISTED = [
    GroupListing("billing", GroupType.CLASSIC, GroupState.EMPTY, ""),
    GroupListing("audit", GroupType.CONSUMER, GroupState.STABLE, "consumer"),
    GroupListing("old", GroupType.UNKNOWN, GroupState.UNKNOWN, "connect"),
]


def test_list(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    down = CoordinatorNotAvailable("node 2 is down")
    admin.answers["list_groups"] = of_nodes({one.group_id: one for one in LISTED}, {2: down})
    assert main(["groups"]) == 1
    told = capsys.readouterr()
    assert told.out == (
        "GROUP      TYPE        STATE     MEMBERS ARE\n"
        "audit      Consumer    Stable    consumer\n"
        "billing    Classic     Empty     -\n"
        "old        -           -         connect\n"
    )
    assert "node 2 is down" in told.err
    assert main(["groups", "list", "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["groups"][0] == {
        "group": "audit",
        "type": "Consumer",
        "state": "Stable",
        "protocol_type": "consumer",
    }
    assert report["groups"][2]["state"] is None
    assert (report["errors"][0]["broker"], len(report["errors"])) == (2, 1)


def test_list_some(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.answers["list_groups"] = of_nodes({})
    words = ["--state", "preparing-rebalance", "--type", "share", "--protocol-type", "consumer"]
    assert main(["groups", "list", *words]) == 0
    assert capsys.readouterr().err == (
        "kafka-fast: there is no such group that this client may see\n"
    )
    (_, _, options), *_ = admin.calls
    assert options == {
        "states": [GroupState.PREPARING_REBALANCE],
        "types": [GroupType.SHARE],
        "protocol_types": ["consumer"],
    }


def test_each_state_is_one_of_kafkas() -> None:
    from kafka_fast.cli.operators.groups.listing import _STATES, _TYPES

    states = {GroupState(state.replace("-", "")) for state in _STATES}
    assert states == {*GroupState} - {GroupState.UNKNOWN}
    assert {GroupType(name) for name in _TYPES} == {*GroupType} - {GroupType.UNKNOWN}


# ---- describe ----


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_describe(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str], protocol: str) -> None:
    words = ["groups", "describe", "audit", "nobody", "-b", kafka.bootstrap]
    with member(kafka, group_protocol=protocol):
        assert main(words) == 1
        told = capsys.readouterr()
        assert [line.split() for line in told.out.splitlines()] == [
            ["GROUP", "STATE", "CLIENT", "HOST", "PARTITIONS"],
            ["audit", "Stable", "ada", "127.0.0.1", "orders:0,1"],
        ]
        assert "GROUP_ID_NOT_FOUND" in told.err
        assert main([*words, "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    (group,) = report["groups"]
    (one,) = group["members"]
    assert (group["group"], group["type"].lower(), group["state"]) == ("audit", protocol, "Stable")
    assert (one["client"], one["topics"], one["tasks"]) == ("ada", ["orders"], None)
    assert one["partitions"] == [{"topic": "orders", "partition": index} for index in (0, 1)]
    assert report["errors"][0]["group"] == "nobody"


def test_groups_of_all_types(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    def member_of(client: str, reads: frozenset[TopicPartition] | None) -> MemberDescription:
        return MemberDescription(f"{client}-1", client, "/10.0.0.7", reads)

    tasks = StreamsTasks(
        frozenset({StreamsTask("0", 1), StreamsTask("0", 0)}), frozenset(), frozenset()
    )
    state, streams_member = GroupState.STABLE, object.__new__(StreamsMemberDescription)
    for name, value in {
        "member_id": "s-1", "instance_id": None, "client_id": "s", "host": "/10.0.0.8",
        "rack_id": None, "member_epoch": 3, "assignment": tasks,
    }.items():  # fmt: skip
        object.__setattr__(streams_member, name, value)
    none = GroupIdNotFound("no such group")
    reads = frozenset({TopicPartition("b", 0), TopicPartition("a", 2), TopicPartition("a", 1)})
    answers = admin.answers
    consumers = ConsumerGroupDescription(
        "c", GroupType.CONSUMER, state, "uniform", (member_of("c", reads),), 1, 4, 4
    )
    answers["describe_consumer_groups"] = answered(
        {"c": consumers}, {"connect": UsageError("its members are no consumers"), "share": none,
                           "streams": none, "nobody": none}
    )  # fmt: skip
    answers["describe_classic_groups"] = answered(
        {"connect": ClassicGroupDescription("connect", state, "connect", "compatible",
                                            (member_of("w", None),), 2)}
    )  # fmt: skip
    answers["describe_share_groups"] = answered(
        {"share": ShareGroupDescription("share", state, "simple", (), 3, 5, 5)},
        {"streams": none, "nobody": none},
    )
    answers["describe_streams_groups"] = answered(
        {"streams": StreamsGroupDescription("streams", state, 1, 1, 0, (), (streams_member,), 1)},
        {"nobody": UnsupportedVersionError("too old")},
    )
    names = ["c", "connect", "share", "streams", "nobody"]
    assert main(["groups", "describe", *names]) == 1
    told = capsys.readouterr()
    assert [line.split() for line in told.out.splitlines()[1:]] == [
        ["c", "Stable", "c", "10.0.0.7", "a:1,2", "b:0"],
        ["connect", "Stable", "w", "10.0.0.7", "-"],
        ["share", "Stable", "-", "-", "-"],
        ["streams", "Stable", "s", "10.0.0.8", "0_0", "0_1"],
    ]
    assert told.err == f"kafka-fast: {none}\n"
    assert [(name, *args) for name, args, _ in admin.calls] == [
        ("describe_consumer_groups", names),
        ("describe_classic_groups", ["connect"]),
        ("describe_share_groups", ["share", "streams", "nobody"]),
        ("describe_streams_groups", ["streams", "nobody"]),
    ]


# ---- delete ----


def described(**members: int) -> Any:
    return answered(
        {
            name: ConsumerGroupDescription(
                name, GroupType.CLASSIC, GroupState.EMPTY, "",
                tuple(MemberDescription(str(index), "c", "h", None) for index in range(count)), 1,
            )
            for name, count in members.items()
        }
    )  # fmt: skip


def test_delete(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    absent, busy = GroupIdNotFound("no such group"), NonEmptyGroup("it has members")
    admin.answers["delete_groups"] = answered({"a": None}, {"b": busy, "c": absent})
    words = ["groups", "delete", "a", "b", "c", "a"]
    assert main([*words, "--yes"]) == 1
    told = capsys.readouterr()
    assert told.out == "GROUP    OUTCOME\na        deleted\n"
    assert told.err == f"kafka-fast: {busy}\nkafka-fast: {absent}\n"
    assert admin.calls == [("delete_groups", (["a", "b", "c"],), {})]
    assert main([*words, "--yes", "--if-exists", "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["groups"] == [
        {"group": "a", "outcome": "deleted"},
        {"group": "c", "outcome": "absent"},
    ]
    assert [error["group"] for error in report["errors"]] == ["b"]
    admin.calls.clear()
    assert main(words) == 2
    assert admin.calls == []


def test_delete_dry_run(admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.answers["describe_consumer_groups"] = described(a=0, b=2)
    assert main(["groups", "delete", "a", "b", "--dry-run"]) == 1
    told = capsys.readouterr()
    assert told.out == "GROUP    OUTCOME\na        would be deleted\n"
    assert "group b has 2 members: stop them first" in told.err
    assert [name for name, *_ in admin.calls] == ["describe_consumer_groups"]


def test_delete_asks(kafka: EmbeddedKafka) -> None:
    with Consumer(bootstrap_servers=kafka.bootstrap, group_id="audit") as consumer:
        consumer.commit({TopicPartition("orders", 0): 0})
    with terminal("groups", "delete", "audit", "-b", kafka.bootstrap) as screen:
        screen.await_text("kafka-fast: delete 1 group with all offsets: audit? [y/N] ")
        screen.type(b"n\n")
        assert screen.end() == 1


# ---- members ----


def test_the_page(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    how = "elsewhere, tests/unit/cli/operators/groups/test_groups.py"
    commands, shown = (block.text for block in blocks("docs/command-line.md") if block.how == how)
    with member(kafka, group_instance_id="billing-7"):
        for command in commands.splitlines():
            assert main([*command.split()[1:], "-b", kafka.bootstrap]) == 0
    plain = [re.sub(" +", " ", text) for text in (capsys.readouterr().out, shown)]
    assert fnmatch.fnmatchcase(plain[0], plain[1].replace("...", "*"))


def test_members(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["groups", "members", "audit", "-b", kafka.bootstrap]
    with member(kafka, group_instance_id="static-1"):
        assert main(words) == 0
        head, row = (line.split() for line in capsys.readouterr().out.splitlines())
        assert head == ["MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"]
        assert row[1:] == ["static-1", "ada", "127.0.0.1", "orders:0,1"]
        remove = [*words, "--remove", "static-1", "--remove", "nobody"]
        assert main(remove) == 2
        assert "give --yes" in capsys.readouterr().err
        assert main([*remove, "--dry-run"]) == 1
        told = capsys.readouterr()
        assert told.out.splitlines()[1].endswith("would be removed")
        assert "group audit has no member 'nobody'" in told.err
        assert main([*remove, "--yes", "-o", "json"]) == 1
        report = json.loads(capsys.readouterr().out)
        assert [error["member"] for error in report.pop("errors")] == ["nobody"]
        assert report == {
            "dry_run": False,
            "group": "audit",
            "members": [
                {"member": row[0], "instance": "static-1", "client": "ada", "outcome": "removed"}
            ],
        }
    assert main([*words, "--reason", "x"]) == 2
    assert "--reason is for --remove" in capsys.readouterr().err


def test_all_members(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["groups", "members", "audit", "-b", kafka.bootstrap, "-o", "text"]
    with member(kafka), terminal(*words, "--remove-all", columns=160) as screen:
        screen.await_text("remove 1 member from group audit? One that still runs may join again.")
        screen.type(b"y\n")
        assert screen.end() == 0
        assert screen.lines(160)[-1].endswith("removed")
    assert main(words) == 0
    assert capsys.readouterr().err == "kafka-fast: group audit has no members\n"
    assert main(["groups", "members", "nobody", "-b", kafka.bootstrap]) == 1


def test_a_group_that_could_not_be_looked_up_is_not_absent(
    admin: ScriptedAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: a timeout of one of the four questions was taken for its absence."""
    absent = answered({}, {"a": GroupIdNotFound("no such group")})
    admin.answers["describe_consumer_groups"] = absent
    admin.answers["describe_share_groups"] = answered({}, {"a": KafkaTimeoutError("too late")})
    admin.answers["describe_streams_groups"] = answered({}, {"a": UnsupportedVersionError("old")})
    assert main(["groups", "delete", "a", "--if-exists", "--dry-run"]) == 1
    assert "too late" in capsys.readouterr().err
