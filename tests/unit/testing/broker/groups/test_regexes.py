"""RE2's syntax on Python's engine. What RE2 itself takes is a scenario on real Kafka."""

from __future__ import annotations

import pytest

from kafka_fast.errors import InvalidRegularExpression
from kafka_fast.testing.broker.groups.regexes import compile_re2


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("topic", "topic", "topics"),
        ("(?i)TOPIC.*", "topics", "a-topic"),
        (r"\Qa.b\E.?", "a.bc", "axb"),
        (r"\Qa.b", "a.b", "axb"),
        (r"a\z", "a", "b"),
        ("[a[b]+", "[ab", "c"),
        (r"[\]]", "]", "["),
        ("[^]a]", "b", "]"),
        ("a{2}", "aa", "a"),
        ("a{", "a{", "a"),
        ("a+?b*?", "aab", "b"),
        (r"\d\-\.", "1-.", "1--"),
    ],
)
def test_what_matches(pattern: str, matching: str, other: str) -> None:
    compiled = compile_re2(pattern)
    assert compiled.fullmatch(matching)
    assert not compiled.fullmatch(other)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)",
        "(?<=a)b",
        "(?>a)",
        r"(a)\1",
        "(?P<n>a)(?P=n)",
        "a*+",
        "a++",
        "a{2}{3}",
        "a{1001}",
        "a{2,1001}",
        r"a\Z",
        r"\pN",
        "[[:alpha:]]",
        "[a",
        r"[\1]",
        "(a",
        "\\",
        "(?x)a",
        "(?L)a",
        "a(?i)b",
        "[z-a]",
        "(?:" * 5000,
    ],
)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRegularExpression, match="is not a valid regular expression"):
        compile_re2(pattern)
