"""`sasl.jaas.config`: what Java's parser reads is read, and no error has a part of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.config.security._jaas import LoginModule, parse_jaas
from kafka_fast.errors import ConfigError
from kafka_fast.secret import Secret

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

ESCAPES = {"\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def parsed(text: str) -> LoginModule:
    return parse_jaas(Secret(text))


def options_of(text: str) -> dict[str, str]:
    return {name: option.reveal() for name, option in parsed(text).options.items()}


def quoted(text: str) -> str:
    return '"' + "".join(ESCAPES.get(character, character) for character in text) + '"'


def test_what_confluent_cloud_hands_out() -> None:
    text = f"{PLAIN} required username='KEY' password='sec+ret/==';"
    assert parsed(text).module == "PlainLoginModule"
    assert options_of(text) == {"username": "KEY", "password": "sec+ret/=="}


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ('"a b"', "a b"),
        (r'"a\"b"', 'a"b'),
        (r'"a\\b"', "a\\b"),
        (r'"a\tb\nc"', "a\tb\nc"),
        (r'"\101\12"', "A\n"),
        (r"'it\'s'", "it's"),
        ("'a\"b'", 'a"b'),
        ('"a;b=c"', "a;b=c"),
        ('"//no comment"', "//no comment"),
        ('""', ""),
        ("true", "true"),
        ("42", "42"),
    ],
)
def test_values(value: str, meant: str) -> None:
    assert options_of(f"{PLAIN} required username={value} ;") == {"username": meant}


def test_comments_lines_and_flags() -> None:
    text = f"""/* who */ {PLAIN}
        OPTIONAL // a flag in any case
        username = "a"
        password="b"
        ;"""
    assert options_of(text) == {"username": "a", "password": "b"}
    assert options_of(f"{PLAIN} sufficient;") == {}


@given(st.dictionaries(st.from_regex(r"[a-zA-Z_]{1,9}", fullmatch=True), st.text(), max_size=5))
def test_every_value_can_be_quoted(values: dict[str, str]) -> None:
    options = " ".join(f"{name}={quoted(value)}" for name, value in values.items())
    assert options_of(f"{PLAIN} required {options};") == values


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "expected a login module"),
        ("canary", "expected a login module"),
        ("canary required;", "this login module has no counterpart here; known are Plain"),
        (f'{PLAIN} required password="canary"', "end with a semicolon"),
        (f'{PLAIN} password="canary";', "after the login module's name comes one of required"),
        (f'{PLAIN} required password="canary;', "a quote is not closed"),
        (f"{PLAIN} required password='canary\n';", "a quote is not closed"),
        (f"{PLAIN} required password=canary tail;", 'an option is not name="value"'),
        (f"{PLAIN} required password canary;", 'an option is not name="value"'),
        (f"{PLAIN} required password= ;", 'an option is not name="value"'),
        (f"{PLAIN} required = canary;", 'an option is not name="value"'),
        (f"{PLAIN} required a=b; {PLAIN} required c=canary;", "several login modules"),
        (f"{PLAIN} required a=b; canary", "or text after the semicolon"),
    ],
)
def test_errors_quote_nothing(text: str, what: str) -> None:
    with pytest.raises(ConfigError, match=r"^sasl\.jaas\.config: ") as caught:
        parsed(text)
    assert what in str(caught.value)
    assert "canary" not in str(caught.value)


@given(st.text(alphabet="abc ;='\"\\/*\n", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        login = parsed(f"{PLAIN} required {text}")
    except ConfigError:
        return
    assert login.module == "PlainLoginModule"
