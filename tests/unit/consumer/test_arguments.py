"""What a subscription may be; the other arguments are tried on a client (tests/embedded)."""

from __future__ import annotations

import re

import pytest

from kafka_fast.consumer.arguments import rebalance_listener, subscription, topic_partition
from kafka_fast.consumer.listener import RebalanceListener
from kafka_fast.consumer.ranges.bounds import partitions_named
from kafka_fast.control.group.member import Subscription
from kafka_fast.errors import UsageError


def test_names_are_a_set_and_a_str_is_one() -> None:
    expected = Subscription(frozenset({"a", "b"}))
    assert subscription(["a", "b", "a"], None, broker_side=True) == expected
    assert subscription("ab", None, broker_side=False) == Subscription(frozenset({"ab"}))
    assert subscription([], None, broker_side=False) is None


def test_patterns_that_are_compiled_are_never_the_brokers() -> None:
    compiled = subscription(None, re.compile("a.*"), broker_side=True)
    assert compiled == Subscription(pattern=re.compile("a.*"))
    own = subscription(None, "a.*", broker_side=False)
    assert own == compiled
    theirs = subscription(None, "a.*", broker_side=True)
    assert theirs == Subscription(regex="a.*")


def test_the_flags_of_a_compiled_pattern_count() -> None:
    loud = re.compile("a.*", re.IGNORECASE)
    assert subscription(None, loud, broker_side=True) == Subscription(pattern=loud)


@pytest.mark.parametrize("broker_side", [False, True])
def test_what_is_no_pattern_at_all(*, broker_side: bool) -> None:
    for wrong in (b"a", re.compile(b"a"), 5):
        with pytest.raises(TypeError, match="a pattern is a str"):
            subscription(None, wrong, broker_side=broker_side)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="empty pattern"):
        subscription(None, "", broker_side=broker_side)
    with pytest.raises(TypeError, match="pattern="):
        subscription(re.compile("a"), None, broker_side=broker_side)  # type: ignore[arg-type]


def test_a_listener_has_all_methods() -> None:
    """Regression: one without them raised in the poll that had something to tell."""

    class Half:
        def on_partitions_assigned(self, consumer: object, partitions: object) -> None: ...

        def on_partitions_revoked(self, consumer: object, partitions: object) -> None: ...

    listener = RebalanceListener()
    assert rebalance_listener(listener) is listener
    assert rebalance_listener(None) is None
    for wrong in (object(), Half(), RebalanceListener, print):
        with pytest.raises(TypeError, match="a listener is a RebalanceListener, not "):
            rebalance_listener(wrong)


def test_only_a_pattern_that_is_sent_must_be_utf_8() -> None:
    with pytest.raises(UsageError, match=r"a pattern: .* cannot be written in UTF-8"):
        subscription(None, "\udcff", broker_side=True)
    assert subscription(None, "\udcff", broker_side=False) is not None


def test_what_is_no_pattern_here_may_be_one_there() -> None:
    with pytest.raises(UsageError, match="no regular expression"):
        subscription(None, r"\pN(", broker_side=False)
    assert subscription(None, r"\pN+", broker_side=True) is not None


@pytest.mark.parametrize(
    ("given", "pattern"),
    [
        ("^x.*", "x.*"),
        ("^x", "x.*"),
        ("^orders-[0-9]+$", "orders-[0-9]+"),
        ("events-*", "events-.*"),
        ("a|b", "a|b"),
        ("(a|b)*", "(a|b)*"),
        (r"^a\.b", r"a\.b.*"),
    ],
)
def test_a_pattern_among_names(given: str, pattern: str) -> None:
    """Regression: it was a topic that does not exist, as far as anybody could see."""
    for call in (
        lambda: subscription(["plain", given], None, broker_side=True),
        lambda: topic_partition((given, 0)),
        lambda: partitions_named(given),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert str(caught.value) == (
            f"{given!r} is no name of a topic; subscribe(pattern={pattern!r}) reads the topics "
            "whose whole names match"
        )


def test_what_names_may_have() -> None:
    names = "a.b_c-D0"
    assert topic_partition((names, 0)) == (names, 0)


def test_names_or_a_pattern() -> None:
    for topics, pattern in ((None, None), (["a"], "a")):
        with pytest.raises(UsageError, match="topics or a pattern"):
            subscription(topics, pattern, broker_side=False)
    with pytest.raises(UsageError, match="must not be empty"):
        subscription([" "], None, broker_side=False)
