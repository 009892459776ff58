"""SASLprep (RFC 4013): one form for user names and passwords that look the same.

The tables are Unicode 3.2's, as the RFC has it. Characters that are younger pass as they are: what
a client sends is a query, not a stored string (RFC 3454 §7).
"""

from __future__ import annotations

import stringprep
import unicodedata

__all__ = ["saslprep"]

_FORBIDDEN = (
    (stringprep.in_table_c12, "a space that is not ASCII's"),
    (stringprep.in_table_c21_c22, "a control character"),
    (stringprep.in_table_c3, "a character for private use"),
    (stringprep.in_table_c4, "a code point that is no character"),
    (stringprep.in_table_c5, "a surrogate"),
    (stringprep.in_table_c6, "a character that is not for plain text"),
    (stringprep.in_table_c7, "a character that is not for plain text"),
    (stringprep.in_table_c8, "a character that changes how a text is shown"),
    (stringprep.in_table_c9, "a tag"),
)


def saslprep(text: str) -> tuple[str, str | None]:
    """Return a text's prepared form, and what is wrong with it: None if it may be used.

    It raises nothing: the text may be a password, and an error would hold this frame.
    """
    if text.isascii() and text.isprintable():
        return text, None if text else "nothing in it"
    kept = [
        " " if stringprep.in_table_c12(char) else char
        for char in text
        if not stringprep.in_table_b1(char)
    ]
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", "".join(kept))
    return prepared, _fault(prepared)


def _fault(prepared: str) -> str | None:
    if not prepared:
        return "nothing in it"
    for is_in_table, name in _FORBIDDEN:
        if any(map(is_in_table, prepared)):
            return f"{name} in it"
    # RFC 3454 §6: what runs from right to left does so from its first to its last character.
    if any(map(stringprep.in_table_d1, prepared)) and (
        any(map(stringprep.in_table_d2, prepared))
        or not stringprep.in_table_d1(prepared[0])
        or not stringprep.in_table_d1(prepared[-1])
    ):
        return "characters of both directions in it"
    return None
