"""A row of answers that nobody can read is told of when it has lasted, and again."""

from __future__ import annotations

import pytest

from kafka_fast.control.nonsense import PATIENCE, Nonsense
from kafka_fast.control.troubles import QUIET

FETCH = 1


@pytest.fixture
def nonsense() -> Nonsense:
    return Nonsense()


def test_it_is_told_when_it_has_lasted_and_again(nonsense: Nonsense) -> None:
    told = [now for now in range(20) if nonsense.note(1, FETCH, float(now))]
    assert told == [PATIENCE * times for times in range(1, 7)]


def test_an_answer_that_can_be_read_ends_it(nonsense: Nonsense) -> None:
    for now in range(20):
        assert not nonsense.note(1, FETCH, float(now))
        assert not nonsense.note(2, FETCH, float(now), was_well=True)
        nonsense.note_sense(1, FETCH)


def test_nodes_and_apis_have_their_own(nonsense: Nonsense) -> None:
    nonsense.note(1, FETCH, 0.0)
    assert not nonsense.note(2, FETCH, 5.0)
    assert not nonsense.note(1, 3, 5.0)
    assert nonsense.note(1, FETCH, 5.0)


def test_after_a_long_quiet_it_begins_anew(nonsense: Nonsense) -> None:
    nonsense.note(1, FETCH, 0.0)
    assert not nonsense.note(1, FETCH, QUIET + 1.0)


def test_a_row_of_broken_links_has_begun_with_the_first(nonsense: Nonsense) -> None:
    assert not nonsense.note_link(1, 0.0, 2.0)
    assert nonsense.note_link(1, 0.0, 3.0)
    assert not nonsense.note_link(1, 0.0, 4.0)
    assert not nonsense.note_link(1, 8.0, 9.0), "one has been well in between"
