r"""`sasl.jaas.config`: a login module with its options, in the syntax of Java's JAAS.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="alice" password="a \"quoted\" word";

The whole text is a secret. No error quotes a part of it, because a text that is not well-formed may
have its password anywhere. And no frame that raises holds a part: `_parse` returns its complaint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kafka_fast.errors import ConfigError
from kafka_fast.secret import Secret

NAME = "sasl.jaas.config"

PLAIN = "PlainLoginModule"
SCRAM = "ScramLoginModule"
OAUTHBEARER = "OAuthBearerLoginModule"
KERBEROS = "Krb5LoginModule"
AWS = "IAMLoginModule"
MODULES = (PLAIN, SCRAM, OAUTHBEARER, KERBEROS, AWS)

_FLAGS = ("required", "requisite", "sufficient", "optional")

_TOKEN = re.compile(
    r"""(?P<gap>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<sign>[;=])
    |"(?P<double>(?:[^"\\\n]|\\.)*)"
    |'(?P<single>(?:[^'\\\n]|\\.)*)'
    |(?P<word>[^\s;="']+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class LoginModule(NamedTuple):
    """A login module and its options."""

    module: str
    """The last part of the class's name."""
    options: Mapping[str, Secret]

    def text(self, name: str) -> str | None:
        """Return an option that is no secret; None: not given."""
        option = self.options.get(name)
        return None if option is None else option.reveal()

    def flag(self, name: str) -> bool:
        """Return whether an option is true."""
        return (self.text(name) or "").lower() == "true"


def parse_jaas(given: Secret) -> LoginModule:
    """Return the login module that a property's value names.

    Raises:
        ConfigError: it is not well-formed, has not exactly one module, or one that is not known.
    """
    parsed = _parse(given.reveal())
    if isinstance(parsed, str):
        raise ConfigError(f"{NAME}: {parsed}")
    return parsed


def _parse(text: str) -> LoginModule | str:
    """Return the login module, or what is wrong, without any part of the text."""
    tokens = list(_tokens(text))
    if tokens and not tokens[-1]:
        return f"a quote is not closed, or a sign is misplaced, at character {tokens[-1].pos + 1}"
    if len(tokens) < 2:
        return f"expected a login module, `required` and options; {_known()}"
    module, flag, *rest = tokens
    if (ends := [token for token in rest if token.is_sign(";")]) and ends[0] is not rest[-1]:
        return "there are several login modules in it, or text after the semicolon"
    if not ends:
        return "it must end with a semicolon"
    if module.is_sign() or flag.text.lower() not in _FLAGS:
        return f"after the login module's name comes one of {', '.join(_FLAGS)}"
    name = module.text.rpartition(".")[2]
    if name not in MODULES:
        return f"this login module has no counterpart here; {_known()}"
    options = rest[:-1]
    for option, equals, value in zip(options[::3], options[1::3], options[2::3], strict=False):
        if option.is_sign() or not equals.is_sign("=") or value.is_sign():
            return _bad_option(option)
    if len(options) % 3:
        return _bad_option(options[-(len(options) % 3)])
    pairs = zip(options[::3], options[2::3], strict=True)
    return LoginModule(name, {option.text: Secret(value.text) for option, value in pairs})


class _Token(NamedTuple):
    pos: int
    text: str
    is_quoted: bool

    def __bool__(self) -> bool:
        return bool(self.text) or self.is_quoted

    def is_sign(self, sign: str | None = None) -> bool:
        """Whether this is `;` or `=`; or the one that is asked for."""
        return not self.is_quoted and self.text in ((";", "=") if sign is None else (sign,))


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the tokens; one without text, not quoted, where the text is not well-formed."""
    pos = 0
    while pos < len(text):
        match = _TOKEN.match(text, pos)
        if match is None:
            yield _Token(pos, "", is_quoted=False)
            return
        quoted = match["double"] if match["double"] is not None else match["single"]
        if quoted is not None:
            yield _Token(pos, _ESCAPE.sub(_unescaped, quoted), is_quoted=True)
        elif not match["gap"]:
            yield _Token(pos, match[0], is_quoted=False)
        pos = match.end()


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code.isdigit() and code < "8" else _CONTROLS.get(code, code)


def _bad_option(token: _Token) -> str:
    return (
        f'an option is not name="value", at character {token.pos + 1}: quote values that hold '
        "spaces or signs"
    )


def _known() -> str:
    return f"known are {', '.join(MODULES)}"
