"""SASL SCRAM (RFC 5802, 7677): both sides prove that they know the password; neither says it.

    client-first  n,,n=user,r=<our nonce>               ──►
                                                        ◄── r=<our nonce><its nonce>,s=<salt>,i=<n>
    client-final  c=biws,r=<both nonces>,p=<our proof>  ──►
                                                        ◄── v=<its proof>

The broker's messages are read strictly: a broker that cannot be trusted yet may have written them.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from typing import Final, NoReturn, TypeAlias

from kafka_fast.control.authentication.mechanism import Conversation, Work
from kafka_fast.control.authentication.peer_text import as_told
from kafka_fast.control.authentication.revealing import revealed
from kafka_fast.control.authentication.saslprep import saslprep
from kafka_fast.errors import AuthenticationError, ConfigError
from kafka_fast.secret import Secret
from kafka_fast.values import Value

__all__ = [
    "HASHES",
    "MIN_ITERATIONS",
    "DeriveKeys",
    "ScramKeys",
    "ScramMechanism",
    "derive_keys",
    "salted_password",
]

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

MIN_ITERATIONS = 4096
"""Fewer would make the password easy to guess for a false broker that sees our proof."""

MESSAGE_MAX = 8192
"""Bytes of a broker's message; Kafka's have less than 300."""

_GS2_HEADER = "n,,"
"""No channel binding, which Kafka does not know, and no other identity to act for."""

_BINDING = "biws"
"""The header in base64."""

_BASE64 = r"((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)?)"
_EXTENSIONS = r"((?:,[A-Za-z]+=[^,\0]+)*)"
_SERVER_FIRST = re.compile(rf"r=([\x21-\x2b\x2d-\x7e]+),s={_BASE64},i=([1-9][0-9]*){_EXTENSIONS}")
_SERVER_FINAL = re.compile(rf"v={_BASE64}{_EXTENSIONS}")
_SERVER_ERROR = re.compile(r"e=([^,\0]+)(?:,.*)?", re.DOTALL)
_KNOWN_ATTRIBUTES = frozenset("anmrcsipve")


class ScramKeys(Value, eq=False):
    """What is derived from the password, a salt and an iteration count: as good as the password."""

    client_key: bytes
    server_key: bytes


DeriveKeys: TypeAlias = Callable[[Secret, bytes, int], ScramKeys]
"""Takes the password, the salt and the iteration count. Takes long."""


def salted_password(hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Return the SaltedPassword, of which all keys are made. Takes long, without the GIL."""
    return hashlib.pbkdf2_hmac(hash_name, password, salt, iterations)


def derive_keys(hash_name: str, password: bytes, salt: bytes, iterations: int) -> ScramKeys:
    """Derive the keys of both sides. Takes up to a second, without the GIL."""
    salted = salted_password(hash_name, password, salt, iterations)
    return ScramKeys(
        hmac.digest(salted, b"Client Key", hash_name), hmac.digest(salted, b"Server Key", hash_name)
    )


class ScramMechanism:
    """One of the two SCRAM mechanisms with one user's credentials.

    Thread: control, but for the functions in `Work`.
    """

    def __init__(
        self,
        name: str,
        username: str,
        password: Secret,
        derive: DeriveKeys,
        nonce: Callable[[], str],
        *,
        extensions: Iterable[tuple[str, str]] = (),
        max_iterations: int,
    ) -> None:
        """Take the credentials.

        Args:
            name: SCRAM-SHA-256 or SCRAM-SHA-512.
            username: the user, or the id of a delegation token.
            password: a function is asked in each conversation, so that it may change.
            derive: derives the keys; called as `Work`.
            nonce: returns new printable ASCII without commas, of at least 128 random bits.
            extensions: sent with the user: ("tokenauth", "true") says that it is a token's id.
            max_iterations: more are refused: a false broker could have us derive for hours.

        Raises:
            ConfigError: the user's name or an extension cannot be sent.
        """
        self.name = name
        self._hash = HASHES[name]
        self._password = password
        self._derive = derive
        self._nonce = nonce
        self._max_iterations = max_iterations
        prepared, fault = saslprep(username)
        if fault is not None:
            raise ConfigError(f"sasl.username: a SCRAM user's name must not have {fault}")
        self._user = prepared.replace("=", "=3D").replace(",", "=2C")
        self._extensions = "".join([f",{_extension(*pair)}" for pair in extensions])

    def converse(self, host: str) -> Conversation:
        """Prove the password and check the broker's proof; the broker's name is not needed.

        Raises:
            AuthenticationError: the broker broke the rules, or does not know the password.
        """
        password = self._password
        if password.may_block:
            password = yield Work(self._asked, "the password is asked for")
        nonce = self._nonce()
        client_first = f"n={self._user},r={nonce}{self._extensions}"
        server_first = yield f"{_GS2_HEADER}{client_first}".encode()
        both_nonces, salt, iterations = self._read_first(server_first, nonce)
        keys: ScramKeys = yield Work(
            lambda: self._derive(password, salt, iterations),
            f"keys are derived with {iterations} iterations",
        )
        unproven = f"c={_BINDING},r={both_nonces}"
        said = b"%s,%s,%s" % (client_first.encode(), server_first, unproven.encode())
        server_final = yield b"%s,p=%s" % (unproven.encode(), self._proof(keys, said))
        self._check_final(server_final, hmac.digest(keys.server_key, said, self._hash))

    def _asked(self) -> Secret:
        return Secret(revealed(self._password, "password").decode())

    def _read_first(self, data: bytes, nonce: str) -> tuple[str, bytes, int]:
        """Return both nonces, the salt and the iteration count of a server-first message."""
        match = _SERVER_FIRST.fullmatch(_text(data))
        if match is None or not match[2] or _repeats(match[4]):
            _refuse(data, "first")
        both_nonces, salt, digits = match[1], match[2], match[3]
        if not both_nonces.startswith(nonce) or both_nonces == nonce:
            raise AuthenticationError("sent a SCRAM nonce that does not extend the client's")
        # Digits are counted first: Python refuses to read thousands of them.
        iterations = int(digits) if len(digits) < 20 else 10**20
        if not MIN_ITERATIONS <= iterations <= self._max_iterations:
            raise AuthenticationError(
                f"asks for {as_told(digits)} SCRAM iterations, which must be {MIN_ITERATIONS} to "
                f"{self._max_iterations} (sasl.scram.max.iterations)"
            )
        return both_nonces, binascii.a2b_base64(salt), iterations

    def _proof(self, keys: ScramKeys, said: bytes) -> bytes:
        stored_key = hashlib.new(self._hash, keys.client_key).digest()
        signature = hmac.digest(stored_key, said, self._hash)
        proof = bytes([a ^ b for a, b in zip(keys.client_key, signature, strict=True)])
        return binascii.b2a_base64(proof, newline=False)

    def _check_final(self, data: bytes, expected: bytes) -> None:
        """Check a server-final message against the broker's signature as it should be."""
        text = _text(data)
        refusal = _SERVER_ERROR.fullmatch(text)
        if refusal is not None:
            raise AuthenticationError(f"refused the SCRAM proof: {as_told(refusal[1])}")
        match = _SERVER_FINAL.fullmatch(text)
        if match is None or _repeats(match[2]):
            _refuse(data, "final")
        if not hmac.compare_digest(binascii.a2b_base64(match[1]), expected):
            raise AuthenticationError(
                "did not prove that it knows the password: its SCRAM signature is wrong, so it may "
                "not be the broker that it claims to be"
            )


def _text(data: bytes) -> str:
    """Return a broker's message; "", which is none, for what cannot be one."""
    try:
        return data.decode() if len(data) <= MESSAGE_MAX else ""
    except UnicodeDecodeError:
        return ""


def _repeats(extensions: str) -> bool:
    """Whether optional extensions, as ",x=1,y=2", repeat each other or the attributes before."""
    names = [part.partition("=")[0] for part in extensions.split(",")[1:]]
    return len({*names}) < len(names) or not _KNOWN_ATTRIBUTES.isdisjoint(names)


def _refuse(data: bytes, which: str) -> NoReturn:
    if data.startswith(b"m="):
        raise AuthenticationError("asks for a SCRAM extension that nobody knows (m=)")
    shown = as_told(data) if data else "nothing"
    raise AuthenticationError(f"sent a malformed server-{which} message of SCRAM: {shown}")


def _extension(name: str, value: str) -> str:
    if not re.fullmatch(r"[A-Za-z]+", name) or not re.fullmatch(r"[\x01-\x2b\x2d-\x7f]+", value):
        raise ConfigError(
            f"sasl extensions: {as_told(name)} cannot be sent as an extension of SCRAM"
        )
    return f"{name}={value}"
