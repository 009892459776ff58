"""Assertions: tokens that a client signs itself, or finds in a file, to show to its provider.

template file ◄ claims in the settings ◄ times and algorithm     (later ones win)
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from kafka_fast.config.security._security_settings import OidcSettings
from kafka_fast.control.authentication.peer_text import as_told
from kafka_fast.control.authentication.revealing import revealed
from kafka_fast.errors import (
    AuthenticationError,
    ConfigError,
    ConnectionReason,
    KafkaConnectionError,
)
from kafka_fast.net.login.jwt import ALGORITHMS, sign
from kafka_fast.net.login.packages import require_package

__all__ = ["MakeAssertion", "make_assertions"]

MakeAssertion: TypeAlias = Callable[[], "str | KafkaConnectionError"]
"""Returns an assertion or an error; it raises none, whose frames would hold the private key."""


def make_assertions(settings: OidcSettings, wall: Callable[[], float]) -> MakeAssertion | None:
    """Return what makes assertions, or None if the settings ask for none.

    Raises:
        ConfigError: the algorithm is not known.
        MissingPackageError: cryptography is not installed.
    """
    path = settings.assertion_file
    if path is not None:
        return lambda: _text_of(path)
    if settings.assertion_key is None and settings.assertion_key_file is None:
        return None
    if settings.assertion_algorithm not in ALGORITHMS:
        raise ConfigError(
            f"sasl.oauthbearer.assertion.algorithm must be one of {', '.join(ALGORITHMS)}"
        )
    signing = "to sign assertions (sasl.oauthbearer.assertion.…)"
    require_package("cryptography", extra="oauth", what=signing)
    return lambda: _signed(settings, wall())


def _text_of(path: str) -> str | KafkaConnectionError:
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:  # it may be written anew just now
        return KafkaConnectionError(
            f"needs an assertion for a token: {as_told(str(error))}",
            reason=ConnectionReason.LOGIN,
        )
    except UnicodeDecodeError:
        text = ""
    return text or AuthenticationError(f"needs an assertion for a token, and {path} holds none")


def _signed(settings: OidcSettings, now: float) -> str | KafkaConnectionError:
    """Return a new assertion. The key is read anew each time, so that it can be replaced."""
    try:
        header, claims = _template(settings)
        claims.update(
            (name, value)
            for name, value in (
                ("aud", settings.assertion_audience),
                ("iss", settings.assertion_issuer),
                ("sub", settings.assertion_subject),
            )
            if value is not None
        )
        claims["iat"] = int(now)
        claims["exp"] = int(now) + settings.assertion_lifetime_s
        claims["nbf"] = int(now) - settings.assertion_not_before_s
        if settings.assertion_has_id:
            claims["jti"] = str(uuid.uuid4())
        header = {**header, "alg": settings.assertion_algorithm, "typ": "JWT"}
        return sign(header, claims, _key(settings))
    except KafkaConnectionError as error:
        return error
    except OSError as error:
        return KafkaConnectionError(
            f"needs an assertion for a token: {as_told(str(error))}",
            reason=ConnectionReason.LOGIN,
        )
    except ConfigError as error:
        return AuthenticationError(f"needs an assertion for a token: {error}")


def _template(settings: OidcSettings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims from the template file: {"header": {…}, "payload": {…}}."""
    path = settings.assertion_template_file
    if path is None:
        return {}, {}
    try:
        template = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError):
        template = None
    if isinstance(template, dict):
        header, claims = template.get("header", {}), template.get("payload", {})
        if isinstance(header, dict) and isinstance(claims, dict):
            return header, claims
    raise ConfigError(f'{path} is no JSON object of "header" and "payload"')


def _key(settings: OidcSettings) -> Any:
    """Return the private key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    password = None
    if settings.assertion_key_password is not None:
        password = revealed(settings.assertion_key_password, "password of the private key")
    if settings.assertion_key is not None:
        pem = revealed(settings.assertion_key, "private key")
    else:
        assert settings.assertion_key_file is not None
        pem = Path(settings.assertion_key_file).read_bytes()
    try:
        return load_pem_private_key(pem, password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        pass  # its text may have more in it than the reason
    raise ConfigError("the private key is none in PEM, or its password is wrong or missing")
