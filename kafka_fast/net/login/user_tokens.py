"""Tokens from a user's function or object, and from a file."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from kafka_fast.control.authentication.oauthbearer import Token
from kafka_fast.control.authentication.peer_text import as_told
from kafka_fast.control.authentication.revealing import failed_function
from kafka_fast.errors import AuthenticationError, ConnectionReason, KafkaConnectionError
from kafka_fast.net.login.jwt import number, token_from
from kafka_fast.net.login.tokens import FetchToken

__all__ = ["file_tokens", "user_tokens"]

TOKEN_MAX = 65536
"""Bytes of a token."""

MILLISECONDS = 1e11
"""An end from here on is in ms, as the signers of MSK return it: in seconds it is the year 5138."""

_Given = tuple[Any, ...]


def user_tokens(provider: Callable[..., object] | object, config: str | None) -> FetchToken:
    """Return what fetches tokens from a user's provider.

    Args:
        provider: a callable, or an object with `token()` and maybe `extensions()`. What they return
            may be awaitable: it then runs to its end in an event loop of its own.
        config: if not None, the callable's only argument (librdkafka's `oauth_cb`).
    """

    def fetch() -> Token:
        """Ask the user's provider; nothing that holds its token raises."""
        token = _asked(provider, config)
        if isinstance(token, Token):
            return token
        raise token

    return fetch


def file_tokens(path: str) -> FetchToken:
    """Return what reads a token from a file, anew for each token: others may write a new one."""

    def fetch() -> Token:
        token = _read(path)
        if isinstance(token, Token):
            return token
        raise token

    return fetch


def _asked(provider: Any, config: str | None) -> Token | KafkaConnectionError:
    try:
        extensions: object = ()
        if callable(getattr(provider, "token", None)):
            returned = _settled(provider.token())
            if callable(getattr(provider, "extensions", None)):
                extensions = _settled(provider.extensions())
        else:
            returned = _settled(provider() if config is None else provider(config))
    except Exception as error:  # noqa: BLE001 -- of a user's function
        failure = failed_function(error, "a token")
        failure.__cause__ = error
        return failure
    return _token_of(returned, extensions)


def _settled(result: object) -> object:
    """Return what a function returned, or what comes of it if it is awaitable."""
    if not inspect.isawaitable(result):
        return result
    import asyncio  # only those who await pay for the import

    async def settle(awaitable: Awaitable[object]) -> object:
        return await awaitable

    return asyncio.run(settle(result))


def _token_of(returned: object, extensions: object) -> Token | KafkaConnectionError:
    """Read what a provider returned: a token, or a token with its end (and more, of librdkafka)."""
    parts: _Given = returned if isinstance(returned, tuple) else (returned, None)
    text, end = (parts[0], parts[1]) if len(parts) in (2, 4) else (None, None)
    if len(parts) == 4:  # librdkafka: token, end, principal (not sent), extensions
        extensions = parts[3]
    expires_at = number(end)
    pairs = _pairs(extensions)
    if not isinstance(text, str) or (end is not None and expires_at is None) or pairs is None:
        shape = ", ".join(type(part).__name__ for part in parts)
        return AuthenticationError(
            "needs a token, and the function that returns it returned "
            + (f"({shape})" if isinstance(returned, tuple) else type(returned).__name__)
            + ": a str is wanted, or (str, Unix time in seconds)"
        )
    if expires_at is not None and expires_at >= MILLISECONDS:
        expires_at /= 1000
    return token_from(text, expires_at, pairs)


def _pairs(extensions: object) -> tuple[tuple[str, str], ...] | None:
    if not extensions:
        return ()
    if not isinstance(extensions, Mapping):
        return None
    pairs = tuple(extensions.items())
    return pairs if all(isinstance(part, str) for pair in pairs for part in pair) else None


def _read(path: str) -> Token | KafkaConnectionError:
    try:
        with Path(path).open("rb") as file:
            data = file.read(TOKEN_MAX + 1)
        text = data.decode().strip()
    except OSError as error:  # it may be written anew just now
        return KafkaConnectionError(
            f"needs a token, and its file cannot be read: {as_told(str(error))}",
            reason=ConnectionReason.LOGIN,
        )
    except UnicodeDecodeError:
        text = ""
    if not text or len(data) > TOKEN_MAX:
        return AuthenticationError(f"needs a token, and {path} holds none")
    return token_from(text)
