"""Java's regular expressions, as Python's."""

from __future__ import annotations

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark.source.planning.java_regex import from_java

NAMES = [
    "events",
    "events-2",
    "ev",
    "EVENTS",
    "topic-1",
    "a.bc",
    "axb",
    "foo",
    "foo-bar",
    "__consumer_offsets",
    "aa",
    "UP_",
    "q1",
    "a-b",
]


@pytest.mark.parametrize(
    ("pattern", "found"),  # found: as java.util.regex finds them
    [
        ("^events", ["events", "events-2"]),
        ("^ev$", ["ev"]),
        (r"\Aev\z", ["ev"]),
        ("topic-[0-9]+", ["topic-1"]),
        (r"\Qa.b\E.*", ["a.bc"]),
        (r"\Qa.b", ["a.bc"]),
        ("(?i)^EV", ["events", "events-2", "ev", "EVENTS"]),
        (r"^\p{Alpha}\d", ["q1"]),
        (r"^\p{Upper}\P{Upper}", []),
        (r"[\p{Upper}_]{3}", ["EVENTS", "UP_"]),
        (r"(?<n>[a-z])\k<n>", ["foo", "foo-bar", "__consumer_offsets", "aa"]),
        (r"(\w)\1", ["foo", "foo-bar", "__consumer_offsets", "aa"]),
        (r"\bfoo\b", ["foo", "foo-bar"]),
        ("^(?!__|foo|[eEtaU]).*$", ["q1"]),
        (r"^[\w.]+$", [name for name in NAMES if "-" not in name]),
        (r"(?:x|\x2e)b", ["a.bc", "axb"]),
        (r"\u0061-", ["a-b"]),
        (r"o{2}?-", ["foo-bar"]),
        (r"a\-b|a\.b", ["a.bc", "a-b"]),
    ],
)
def test_patterns_that_mean_the_same(pattern: str, found: list[str]) -> None:
    matcher = from_java(pattern)
    assert [name for name in NAMES if matcher.search(name)] == found


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("[a-c&&[b]]", "union or an intersection"),
        ("[a[b]]", "union or an intersection"),
        ("[]a]", "union or an intersection"),
        ("[a", "bracket that is not closed"),
        ("a*+", "possessive quantifier"),
        ("a{2}+", "possessive quantifier"),
        ("a{,3}", "brace"),
        ("(?>a)", r"group \(\?>a"),
        ("a(?i)b", "flags behind the beginning"),
        ("(?m)^a", "flag m"),
        ("(?x) a", "group"),
        (r"\R", r"escape \\R"),
        (r"\p{IsGreek}", "class"),
        (r"[\P{Lower}]", "class"),
        (r"[\b]", "escape"),
        ("\\", "backslash at the end"),
        ("*a", "nothing to repeat"),
        ("(a", "missing"),
    ],
)
def test_what_has_no_counterpart_is_refused(pattern: str, what: str) -> None:
    with pytest.raises(UsageError, match=what) as raised:
        from_java(pattern)
    assert f"subscribePattern {pattern!r} cannot be used" in str(raised.value)
