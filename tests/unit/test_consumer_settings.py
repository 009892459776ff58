"""The consumer's settings: defaults are Java's, contradictions are errors."""

from __future__ import annotations

import pytest

from kafka_fast.config import KEYS, ConsumerSettings, consumer_settings
from kafka_fast.errors import ConfigError
from kafka_fast.values import field_names

SERVERS = {"bootstrap.servers": "localhost:9092"}


def test_every_field_is_in_the_table_and_the_other_way_round() -> None:
    keys = [key for key in KEYS.values() if "consumer" in key.clients]
    table = {key.field or key.field_name for key in keys}
    assert set(field_names(ConsumerSettings)) <= table
    # What is in the table and not a field means nothing, and says so.
    left = table - set(field_names(ConsumerSettings))
    silent = [
        key.name
        for key in keys
        if key.field_name in left and not (key.pending or key.refused or key.ignored)
    ]
    assert silent == []


def test_defaults() -> None:
    settings = consumer_settings(SERVERS, {"group_id": "g"})
    assert settings.enable_auto_commit
    assert settings.auto_offset_reset == "latest"
    assert settings.max_poll_records == 500
    assert settings.session_timeout == 45.0
    assert settings.partition_assignment_strategy == ("range", "cooperative-sticky")
    assert not settings.is_read_committed


def test_without_a_group_nothing_is_committed() -> None:
    assert not consumer_settings(SERVERS).enable_auto_commit
    with pytest.raises(ConfigError, match=r"group\.id"):
        consumer_settings(SERVERS, {"enable_auto_commit": True})
    with pytest.raises(ConfigError, match=r"group\.id"):
        consumer_settings(SERVERS, {"group_instance_id": "one"})
    with pytest.raises(ConfigError, match=r"group\.id"):
        consumer_settings(SERVERS, {"group_id": ""})


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("P3D", 259_200_000),
        ("PT1H30M", 5_400_000),
        ("P1DT0.5S", 86_400_500),
        ("pt15m", 900_000),
        ("PT0S", 0),
    ],
)
def test_durations(text: str, ms: int) -> None:
    properties = {"auto.offset.reset": f"by_duration:{text}"}
    assert consumer_settings({**SERVERS, **properties}).auto_offset_reset == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "3D", "-PT1H", "P1W", "PT1H30", "P1DT"])
def test_bad_durations(text: str) -> None:
    with pytest.raises(ConfigError):
        consumer_settings({**SERVERS, "auto.offset.reset": f"by_duration:{text}"})


@pytest.mark.parametrize(
    "given",
    [
        {"group.protocol": "consumer", "session.timeout.ms": 30_000},
        {"group.protocol": "consumer", "heartbeat.interval.ms": 1000},
        {"group.protocol": "consumer", "partition.assignment.strategy": "range"},
        {"group.remote.assignor": "uniform"},
        {"heartbeat.interval.ms": 45_000},
        {"group.instance.id": ""},
    ],
)
def test_contradictions(given: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(reversed(given))):
        consumer_settings({**SERVERS, "group.id": "g", **given})


def test_assignors_are_names_or_objects() -> None:
    class Mine:
        name = "mine"
        is_cooperative = False

        def assign(self, topics: object, members: object) -> dict[str, list[object]]:
            return {}

    mine = Mine()
    properties = {"group.id": "g", "partition.assignment.strategy": [mine, "RangeAssignor"]}
    settings = consumer_settings({**SERVERS, **properties})
    assert settings.partition_assignment_strategy == (mine, "range")
    java = "org.apache.kafka.clients.consumer."
    for several in (
        "RangeAssignor",
        f"{java}RangeAssignor",
        f"{java}RangeAssignor, {java}CooperativeStickyAssignor",
        "range,cooperative-sticky",
    ):
        settings = consumer_settings(
            {**SERVERS, **properties, "partition.assignment.strategy": several}
        )
        both = ("range", "cooperative-sticky")
        assert settings.partition_assignment_strategy == both[: several.count(",") + 1]
    with pytest.raises(ConfigError, match="at least one"):
        consumer_settings({**SERVERS, **properties, "partition.assignment.strategy": []})
    with pytest.raises(ConfigError, match="not one of"):
        consumer_settings({**SERVERS, **properties, "partition.assignment.strategy": [object()]})


class Named:
    """An assignor of the user's."""

    is_cooperative = False
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: object) -> None:
        self.name = name

    def assign(self, topics: object, members: object) -> dict[str, list[object]]:
        return {}


def test_an_assignor_that_is_given_twice_counts_once() -> None:
    """As in Java's 4.x; before, such a list was refused."""
    mine = Named("mine")
    for assignors, expected in (
        (["range", "range"], ("range",)),
        ("range,RangeAssignor,sticky,range", ("range", "sticky")),
        ([mine, "sticky", mine], (mine, "sticky")),
    ):
        properties = {"group.id": "g", "partition.assignment.strategy": assignors}
        settings = consumer_settings({**SERVERS, **properties})
        assert settings.partition_assignment_strategy == expected


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ([Named("mine"), Named("mine")], "two assignors are called 'mine'"),
        (["range", Named("range")], "two assignors are called 'range'"),
        ([Named("")], "has no name"),
        ([Named("\udcff")], "the name of an assignor: '\\\\udcff' cannot be written in UTF-8"),
        ([Named(None)], "has no name"),
    ],
)
def test_assignors_are_told_apart_by_name(given: list[object], complaint: str) -> None:
    properties = {"group.id": "g", "partition.assignment.strategy": given}
    with pytest.raises(ConfigError, match=complaint):
        consumer_settings({**SERVERS, **properties})
