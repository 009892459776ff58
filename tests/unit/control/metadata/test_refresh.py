"""Questions are asked soon, never twice at a time, and seldom where they bring nothing."""

from __future__ import annotations

import random

import pytest

from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.control.metadata.refresh import Ask, RefreshSchedule

FOREVER = float("inf")


def make_schedule(max_age: float = 300.0, max_idle: float = 300.0) -> RefreshSchedule:
    return RefreshSchedule(Backoff(100, 1000, lambda: 0.5), max_age=max_age, max_idle=max_idle)


def settled(*topics: str, max_age: float = 300.0, max_idle: float = 300.0) -> RefreshSchedule:
    """A schedule whose first question was answered in full at time 0."""
    schedule = make_schedule(max_age, max_idle)
    for topic in topics:
        schedule.want_topic(topic, 0.0)
    assert schedule.poll(0.0) is not None
    schedule.handle_answer(set(), fruitful=True, now=0.0)
    return schedule


def test_first_question_is_due_at_once_even_without_topics() -> None:
    schedule = make_schedule()
    assert schedule.poll(0.0) == Ask((), True, "first")
    assert schedule.next_deadline() == FOREVER, "one in flight"
    assert schedule.poll(1e9) is None


def test_age() -> None:
    schedule = settled("t", max_age=300.0)
    assert schedule.next_deadline() == pytest.approx(300.0)
    assert schedule.poll(299.0) is None
    ask = schedule.poll(300.0)
    assert ask == Ask(("t",), True, "metadata.max.age.ms")


def test_age_of_zero_does_not_storm() -> None:
    schedule = settled(max_age=0.0)
    assert schedule.next_deadline() == pytest.approx(0.1)


def test_new_topic_is_asked_for_at_once_and_alone() -> None:
    schedule = settled("old")
    schedule.want_topic("new", 0.01)
    assert schedule.poll(0.01) == Ask(("new",), False, "topics to resolve")


def test_new_topic_comes_first_in_a_full_question() -> None:
    schedule = settled("old")
    schedule.request_full("NOT_LEADER_OR_FOLLOWER")
    schedule.want_topic("new", 0.2)
    ask = schedule.poll(0.2)
    assert ask == Ask(("new", "old"), True, "NOT_LEADER_OR_FOLLOWER")


def test_refresh_waits_for_its_gate_which_widens_without_progress() -> None:
    schedule, now, waits = settled("t"), 0.0, []
    for _ in range(6):
        schedule.request_full("why")
        waits.append(schedule.next_deadline() - now)
        now = schedule.next_deadline()
        assert schedule.poll(now) is not None
        schedule.handle_answer(set(), fruitful=False, now=now)
    assert waits == pytest.approx([0.1, 0.1, 0.2, 0.4, 0.8, 1.0])
    schedule.request_full("why")
    now += 5.0
    assert schedule.poll(now) is not None
    schedule.handle_answer(set(), fruitful=False, now=now)
    schedule.request_full("why")
    assert schedule.next_deadline() - now == pytest.approx(0.1), "an old row of failures is over"


def test_unresolved_topic_is_asked_for_again_alone() -> None:
    schedule = settled("t")
    schedule.want_topic("u", 1.0)
    assert schedule.poll(1.0) is not None
    schedule.handle_answer({"u"}, fruitful=True, now=1.0)
    assert schedule.poll(1.05) is None
    assert schedule.poll(1.11) == Ask(("u",), False, "topics to resolve")
    schedule.handle_answer(set(), fruitful=True, now=1.2)
    assert schedule.next_deadline() == pytest.approx(300.0)


def test_topic_in_doubt_while_its_question_is_in_flight_is_asked_for_again() -> None:
    schedule = settled("t")
    schedule.ask_again("t")
    assert schedule.poll(0.2) is not None
    schedule.ask_again("t")
    schedule.request_full("why")
    schedule.handle_answer(set(), fruitful=True, now=0.3)
    ask = schedule.poll(0.5)
    assert ask is not None
    assert ask.is_full
    assert not schedule.is_asking("u")


def test_a_known_topic_is_asked_for_anew_at_once() -> None:
    schedule = settled("t", "u")
    schedule.ask_anew("t", 0.01)
    assert schedule.is_outdated("t")
    assert schedule.poll(0.01) == Ask(("t",), False, "topics to resolve")
    schedule.handle_answer(set(), fruitful=False, now=0.02)
    assert not schedule.is_outdated("t")
    assert schedule.next_deadline() == pytest.approx(300.0)


def test_an_answer_to_an_earlier_request_is_not_news() -> None:
    schedule = settled("t")
    schedule.ask_anew("t", 0.01)
    assert schedule.poll(0.01) is not None
    schedule.ask_anew("t", 0.02)
    schedule.handle_answer(set(), fruitful=False, now=0.03)
    assert schedule.is_outdated("t")
    assert schedule.poll(0.03) == Ask(("t",), False, "topics to resolve")
    schedule.handle_failure(0.04)
    assert schedule.is_outdated("t")
    assert schedule.poll(0.2) is not None
    schedule.handle_answer({"t"}, fruitful=False, now=0.3)
    assert not schedule.is_outdated("t"), "the answer was of no use, but it was one"


def test_failure_holds_back_everything_and_asks_all_of_it_again() -> None:
    schedule = settled("t")
    schedule.want_topic("u", 1.0)
    assert schedule.poll(1.0) is not None
    schedule.handle_failure(1.0)
    schedule.want_topic("v", 1.0)
    assert schedule.next_deadline() == pytest.approx(1.1)
    assert schedule.poll(1.1) == Ask(("v", "u"), False, "topics to resolve")
    schedule.handle_failure(1.1)
    schedule.handle_failure(1.1)
    assert schedule.next_deadline() == pytest.approx(1.5), "0.1, 0.2, 0.4"


def test_failed_full_refresh_stays_due() -> None:
    schedule = settled("t")
    assert schedule.poll(300.0) is not None
    schedule.handle_failure(301.0)
    ask = schedule.poll(302.0)
    assert ask is not None
    assert ask.is_full


def test_start_over_asks_for_everything_but_keeps_the_gate_of_failures() -> None:
    schedule = settled("t")
    schedule.request_full("why")
    assert schedule.poll(10.0) is not None
    schedule.handle_failure(10.0)
    schedule.start_over()
    assert schedule.next_deadline() == pytest.approx(10.1)
    assert schedule.poll(10.1) == Ask(("t",), True, "first")


def test_idle_topics_are_dropped_unless_new_or_touched() -> None:
    schedule = settled("idle", "busy", max_idle=10.0)
    schedule.touch("busy", 9.0)
    schedule.touch("never wanted", 9.0)
    schedule.want_topic("new", 0.0)
    assert schedule.drop_idle(12.0) == ["idle"]
    assert schedule.wanted() == ("busy", "new")
    assert not schedule.is_wanted("idle")


def test_forgotten_topic_is_not_asked_for() -> None:
    schedule = settled()
    schedule.ask_again("t")
    assert schedule.next_deadline() == pytest.approx(300.0)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("world", ["failures", "unresolved", "mixed"])
def test_no_storm_when_nothing_ever_helps(world: str, seed: int) -> None:
    """Everybody asks all the time, nobody gets a useful answer: a minute has few requests."""
    source = random.Random(seed)
    schedule = RefreshSchedule(Backoff(100, 1000, source.random), max_age=300.0, max_idle=300.0)
    for topic in "abc":
        schedule.want_topic(topic, 0.0)
    sent, now = [], 0.0
    while now < 240.0:
        now += source.choice([0.001, 0.01, 0.1])
        schedule.request_full("error code")
        schedule.ask_again(source.choice("abc"))
        ask = schedule.poll(now)
        if ask is None:
            continue
        sent.append(now)
        now += source.choice([0.0, 0.002])
        fails = world == "failures" or (world == "mixed" and source.random() < 0.5)
        if fails:
            schedule.handle_failure(now)
        else:
            schedule.handle_answer(set(ask.topics), fruitful=False, now=now)
    per_minute = [sum(at <= x < at + 60 for x in sent) for at in (60.0, 120.0, 180.0)]
    # Two gates, of full questions and of single topics, each at most once per 0.8 s.
    assert max(per_minute) <= 2 * 60 / 0.8, per_minute
    assert min(per_minute) >= 60 / 1.2 - 5, "but it never gives up"
