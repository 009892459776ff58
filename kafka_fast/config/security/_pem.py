r"""Texts in PEM as users write them into properties: on one line, with spaces or `\n` in between.

Java reads any white space in a PEM text, because a file of properties has its value on one line.
OpenSSL wants lines of 64 characters.
"""

from __future__ import annotations

import re

from kafka_fast.errors import ConfigError
from kafka_fast.secret import Secret

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_WIDTH = 64


def as_lines(text: str) -> str:
    """Return the text with each block in lines; what stands outside of blocks is left out."""
    blocks = []
    for label, body in _BLOCK.findall(text.replace("\\n", "\n").replace("\\r", "")):
        # An old encrypted key has headers (Proc-Type, DEK-Info): its lines must be there already.
        lines = body.strip() if ":" in body else _in_lines("".join(body.split()))
        blocks.append(f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n")
    return "".join(blocks)


def certificates(name: str, given: Secret) -> str:
    """Return the certificates of a property in lines.

    Raises:
        ConfigError: there are none in it, or a private key is among them; the text is not shown.
    """
    text = as_lines(given.reveal())
    if "PRIVATE KEY-----" in text:
        del text  # an error's traceback has this frame
        raise ConfigError(f"{name} is for certificates, and a private key is in it")
    if "-----BEGIN" not in text:
        raise ConfigError(
            f"{name}: no certificate in PEM is in it (-----BEGIN CERTIFICATE-----); a file's "
            "name belongs into another property, which ends in .location"
        )
    return text


def private_key(name: str, given: Secret) -> Secret:
    """Return the private key of a property in lines. A function is not called yet.

    Raises:
        ConfigError: there is none in it; the text is not shown.
    """
    if given.may_block:
        return Secret(lambda: as_lines(given.reveal()))
    text = as_lines(given.reveal())
    if "PRIVATE KEY-----" not in text:
        raise ConfigError(
            f"{name}: no private key in PEM is in it (-----BEGIN PRIVATE KEY-----); a file's name "
            "belongs into another property, which ends in .location"
        )
    return Secret(text)


def _in_lines(body: str) -> str:
    return "\n".join(body[start : start + _WIDTH] for start in range(0, len(body), _WIDTH))
