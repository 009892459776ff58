"""`ssl.cipher.suites`: names as Java (IANA) and OpenSSL have them, and OpenSSL's cipher strings.

OpenSSL takes the suites of TLS 1.3 in another list than those of TLS 1.2, and calls those of TLS
1.2 by names of its own. So names are sorted and translated here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from kafka_fast.errors import ConfigError

TLS13 = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
)

_IANA = re.compile(
    r"TLS_(?P<exchange>RSA|DHE_RSA|ECDHE_RSA|ECDHE_ECDSA)_WITH_(?:"
    r"AES_(?P<bits>128|256)_(?:CBC|(?P<mode>GCM|CCM_8|CCM))(?:_(?P<hash>SHA|SHA256|SHA384))?"
    r"|(?P<chacha>CHACHA20_POLY1305)_SHA256)"
)

_SIGNAL = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
"""No suite: Java lists it, and OpenSSL sends it by itself."""


class CipherSuites(NamedTuple):
    """Cipher suites, as OpenSSL takes them."""

    tls12: tuple[str, ...]
    """Names, or parts of a cipher string."""
    tls13: tuple[str, ...]
    is_complete: bool
    """Whether a suite that is not named is not wanted, as in a list of Java's names. Cipher strings
    of OpenSSL's say nothing of TLS 1.3.
    """


def sorted_suites(entries: Iterable[str]) -> CipherSuites:
    """Return the suites that a list names.

    Raises:
        ConfigError: an entry looks like a name of Java's, and OpenSSL has no such suite.
    """
    tls12: list[str] = []
    tls13: list[str] = []
    is_complete = True
    for entry in entries:
        for name in filter(None, map(str.strip, entry.split(":"))):
            if name in TLS13:
                tls13.append(name)
            elif name.startswith(("TLS_", "SSL_")):
                if name != _SIGNAL:
                    tls12.append(_translated(name))
            else:
                tls12.append(name)
                is_complete = False
    return CipherSuites(tuple(tls12), tuple(tls13), is_complete)


def _translated(name: str) -> str:
    """Return OpenSSL's name of a suite: `ECDHE-RSA-AES128-GCM-SHA256`."""
    match = _IANA.fullmatch(name)
    is_known = match is not None and (match["chacha"] or match["mode"] or match["hash"])
    if match is None or not is_known:
        raise ConfigError(
            f"ssl.cipher.suites: there is no cipher suite {name} here; give those with AES or "
            "CHACHA20, or OpenSSL's names"
        )
    exchange = "" if match["exchange"] == "RSA" else f"{match['exchange'].replace('_', '-')}-"
    if match["chacha"]:
        return f"{exchange}CHACHA20-POLY1305"
    mode = f"-{match['mode'].replace('_', '')}" if match["mode"] else ""
    digest = f"-{match['hash']}" if match["hash"] else ""
    return f"{exchange}AES{match['bits']}{mode}{digest}"
