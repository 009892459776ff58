from __future__ import annotations

import pytest

from kafka_fast.control.authentication.saslprep import saslprep


@pytest.mark.parametrize(
    ("text", "prepared"),
    [  # the first four are RFC 4013's examples (§3)
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("e\u0301", "é"),
        ("a\u00a0b\u3000c", "a b c"),
        ("\u0627\u0628", "\u0627\u0628"),
        ("\u06271\u0628", "\u06271\u0628"),
        ("🔑", "🔑"),  # younger than Unicode 3.2
    ],
)
def test_a_text_gets_its_form(text: str, prepared: str) -> None:
    assert saslprep(text) == (prepared, None)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "nothing in it"),
        ("\u00ad", "nothing in it"),
        ("\u0007", "a control character in it"),
        ("a\0b", "a control character in it"),
        ("\u0627\u0031", "characters of both directions in it"),
        ("\u0627a\u0628", "characters of both directions in it"),
        ("\ue000", "a character for private use in it"),
        ("\ufffe", "a code point that is no character in it"),
        ("\ud800", "a surrogate in it"),
        ("\ufffd", "a character that is not for plain text in it"),
        ("\u2ff0", "a character that is not for plain text in it"),
        ("\u202e", "a character that changes how a text is shown in it"),
        ("\U000e0041", "a tag in it"),
    ],
)
def test_a_text_is_refused(text: str, fault: str) -> None:
    assert saslprep(text)[1] == fault
