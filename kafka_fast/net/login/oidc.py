"""Tokens from an identity provider, over https.

What this client shows for them is its id and secret (KIP-768), or an assertion that it has signed:
in place of the secret (KIP-1258), or as the grant itself (jwt-bearer, KIP-1139).
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from urllib.parse import quote_plus, urlencode

from kafka_fast.config.security._security_settings import OidcSettings
from kafka_fast.control.authentication.oauthbearer import Token
from kafka_fast.control.authentication.revealing import revealed
from kafka_fast.errors import AuthenticationError, ConfigError, KafkaConnectionError
from kafka_fast.net.login.assertions import make_assertions
from kafka_fast.net.login.https import TokenEndpoint
from kafka_fast.net.login.jwt import number, token_from

__all__ = ["JWT_BEARER", "ProviderTokens"]

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class ProviderTokens:
    """Asks an identity provider for tokens. Any thread that may block."""

    def __init__(self, settings: OidcSettings, wall: Callable[[], float] = time.time) -> None:
        """Take the settings.

        Args:
            settings: the provider, and what this client says to it.
            wall: returns the Unix time in seconds.

        Raises:
            ConfigError: the URL is not allowed, credentials are missing or contradict each other,
                or a package is missing.
        """
        url = settings.token_endpoint_url
        if settings.allowed_urls and url not in settings.allowed_urls:
            raise ConfigError(
                "sasl.oauthbearer.token.endpoint.url is none of those in "
                "sasl.oauthbearer.allowed.urls"
            )
        self._endpoint = TokenEndpoint(
            url,
            ca_location=settings.ca_location,
            ca_certificates=settings.ca_certificates,
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
        )
        self._settings = settings
        self._wall = wall
        self._assertions = make_assertions(settings, wall)
        if settings.grant == JWT_BEARER:
            if self._assertions is None:
                raise ConfigError(
                    "the jwt-bearer grant needs sasl.oauthbearer.assertion.file, or "
                    "sasl.oauthbearer.assertion.private.key.file"
                )
        elif self._assertions is None and (
            settings.client_id is None or settings.client_secret is None
        ):
            raise ConfigError(
                "sasl.oauthbearer.token.endpoint.url needs the client's id and secret "
                "(sasl.oauthbearer.client.credentials.…), or an assertion"
            )

    @property
    def what(self) -> str:
        """What is done, for people."""
        return f"a token is asked of {self._endpoint.shown}"

    def fetch(self) -> Token:
        """Return a new token.

        Raises:
            AuthenticationError: the provider refuses, or what it says is no token.
            KafkaConnectionError: it cannot be reached, or is in trouble.
        """
        # Raised here, where nothing holds a secret.
        token = self._asked()
        if isinstance(token, Token):
            return token
        raise token

    def _asked(self) -> Token | KafkaConnectionError:
        assertion = None if self._assertions is None else self._assertions()
        if isinstance(assertion, KafkaConnectionError):
            return assertion
        secret = self._client_secret()
        if isinstance(secret, KafkaConnectionError):
            return secret
        began = self._wall()
        reply = self._endpoint.post(lambda: self._request(assertion, secret))
        if isinstance(reply, KafkaConnectionError):
            return reply
        for name in ("access_token", "id_token"):
            text = reply.fields.get(name)
            if isinstance(text, str) and text:
                life = number(reply.fields.get("expires_in"))
                return token_from(text, None if life is None else began + life)
        return AuthenticationError(
            f"needs a token, and {self._endpoint.shown} answered without access_token"
        )

    def _client_secret(self) -> str | KafkaConnectionError | None:
        if self._settings.client_secret is None:
            return None
        try:
            return revealed(self._settings.client_secret, "client secret").decode()
        except KafkaConnectionError as error:
            return error

    def _request(self, assertion: str | None, secret: str | None) -> tuple[dict[str, str], bytes]:
        """Return headers and body."""
        settings = self._settings
        form = {"grant_type": settings.grant}
        headers = {}
        if settings.grant == JWT_BEARER:
            form["assertion"] = assertion or ""
        elif assertion is not None:
            form["client_assertion_type"] = CLIENT_ASSERTION
            form["client_assertion"] = assertion
            if settings.client_id is not None:
                form["client_id"] = settings.client_id
        else:
            pair = (settings.client_id or "", secret or "")
            if settings.urlencodes_credentials:  # RFC 6749 §2.3.1, which few providers follow
                pair = (quote_plus(pair[0]), quote_plus(pair[1]))
            basic = base64.b64encode(":".join(pair).encode()).decode()
            headers["Authorization"] = f"Basic {basic}"
        if settings.scope is not None:
            form["scope"] = settings.scope
        return headers, urlencode(form).encode()
