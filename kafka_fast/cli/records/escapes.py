r"""Escapes in arguments, which shells pass on unchanged: \t, \n, \0, \xNN and \\."""

from __future__ import annotations

import re

_ESCAPES = {b"t": b"\t", b"n": b"\n", b"0": b"\0", b"\\": b"\\"}


def unescape(text: bytes) -> bytes:
    r"""Return the bytes that a text with escapes stands for."""

    def replace(match: re.Match[bytes]) -> bytes:
        code = match[1]
        return _ESCAPES[code] if code in _ESCAPES else bytes.fromhex(code[1:].decode())

    return re.sub(rb"\\(t|n|0|\\|x[0-9A-Fa-f]{2})", replace, text)
