"""A row of answers that nobody can read is told of when it has lasted, and again."""

from __future__ import annotations

import pytest

from kafka_fast.control.connections.connection_key import BOOTSTRAP, ConnectionKey, Role
from kafka_fast.control.connections.unreadable import (
    UNREADABLE_PATIENCE,
    WHATEVER,
    UnreadableAnswers,
)
from kafka_fast.control.diagnosis.troubles import QUIET
from kafka_fast.errors import (
    KafkaConnectionError,
    KafkaError,
    MalformedError,
    UnsupportedVersionError,
)

PRODUCE, FETCH, METADATA = 0, 1, 3


NODE_1, NODE_2 = ConnectionKey(Role.DATA, 1), ConnectionKey(Role.DATA, 2)
UNREADABLE = MalformedError("nonsense")


class World:
    """The user who is told of nonsense."""

    def __init__(self) -> None:
        self.told: list[int] = []  # APIs
        self.unreadable = UnreadableAnswers(lambda row, error: self.told.append(row[1]))

    def note(
        self, key: ConnectionKey, api_key: int, now: float, *, was_well: bool = False
    ) -> list[int]:
        """Let an answer be nonsense; return what the user is told."""
        self.unreadable.note_answer(key, api_key, UNREADABLE, now, was_well=was_well)
        return self.take()

    def fail(
        self, key: ConnectionKey, since: float, now: float, error: KafkaError = UNREADABLE
    ) -> list[int]:
        """Let a link break; return what the user is told."""
        self.unreadable.note_failure(key, error, since, now)
        return self.take()

    def take(self) -> list[int]:
        told, self.told = self.told, []
        return told


@pytest.fixture
def world() -> World:
    return World()


def test_it_is_told_when_it_has_lasted_and_again(world: World) -> None:
    told = [now for now in range(20) if world.note(NODE_1, FETCH, float(now))]
    assert told == [UNREADABLE_PATIENCE * times for times in range(1, 7)]


def test_an_answer_that_can_be_read_ends_it(world: World) -> None:
    for now in range(20):
        assert not world.note(NODE_1, FETCH, float(now))
        assert not world.note(NODE_2, FETCH, float(now), was_well=True)
        world.unreadable.note_sense(NODE_1, FETCH)


def test_connections_and_apis_have_their_own(world: World) -> None:
    world.note(NODE_1, FETCH, 0.0)
    assert not world.note(NODE_2, FETCH, 5.0)
    assert not world.note(ConnectionKey(Role.CONTROL, 1), FETCH, 5.0)
    assert not world.note(NODE_1, PRODUCE, 5.0)
    assert world.note(NODE_1, FETCH, 5.0) == [FETCH]


def test_what_any_node_may_answer_is_well_if_one_does(world: World) -> None:
    world.note(NODE_1, METADATA, 0.0)
    assert world.note(NODE_2, METADATA, 5.0) == [METADATA]
    assert world.unreadable.goes_on((BOOTSTRAP, METADATA))
    world.unreadable.note_sense(NODE_1, METADATA)
    assert not world.unreadable.goes_on((BOOTSTRAP, METADATA))
    assert not world.note(NODE_2, METADATA, 10.0)


def test_after_a_long_quiet_it_begins_anew(world: World) -> None:
    world.note(NODE_1, FETCH, 0.0)
    assert not world.note(NODE_1, FETCH, QUIET + 1.0)


def test_a_row_of_broken_links_has_begun_with_the_first(world: World) -> None:
    assert not world.fail(NODE_1, 0.0, 2.0)
    assert world.fail(NODE_1, 0.0, 3.0) == [WHATEVER]
    assert not world.fail(NODE_1, 0.0, 4.0)
    assert not world.fail(NODE_1, 8.0, 9.0), "one has been well in between"


def test_a_link_that_is_closed_for_an_answer_counts_as_that_answer(world: World) -> None:
    assert not world.note(NODE_1, FETCH, 0.0)
    assert not world.fail(NODE_1, 0.0, 5.0)
    assert world.fail(NODE_1, 0.0, 5.0) == [WHATEVER]


@pytest.mark.parametrize("error", [KafkaConnectionError("refused"), UnsupportedVersionError("no")])
def test_what_is_understood_is_no_nonsense(world: World, error: KafkaError) -> None:
    assert not world.fail(NODE_1, 0.0, 5.0, error)
