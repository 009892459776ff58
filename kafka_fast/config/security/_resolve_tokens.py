"""From properties to a source of OAUTHBEARER's tokens: exactly one must be given."""

from __future__ import annotations

from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from kafka_fast.config.security._jaas import LoginModule
from kafka_fast.config.security._oauthbearer_keys import CLIENT_CREDENTIALS, JWT_BEARER
from kafka_fast.config.security._pem import certificates, private_key
from kafka_fast.config.security._sasl_keys import IAM_LOGIN_HANDLER
from kafka_fast.config.security._security_settings import OidcSettings
from kafka_fast.config.spelling._normalize import Config
from kafka_fast.errors import ConfigError

_URL = "sasl.oauthbearer.token.endpoint.url"
_METHOD = "sasl.oauthbearer.method"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_ID = "sasl.oauthbearer.client.credentials.client.id"
_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
_ASSERTION = "sasl.oauthbearer.assertion."
_EXTENSION = "extension_"

_SOURCES = (
    "sasl_oauth_token_provider= (a callable), "
    f"{_URL} (an identity provider, or a file), or {_METHOD}=aws_msk_iam"
)


def token_source(config: Config, login: LoginModule) -> dict[str, Any]:
    """Return the fields of `SaslSettings` that say where tokens come from.

    Raises:
        ConfigError: there is no source, there are several, or one lacks something.
    """
    uses_aws = (
        config[_METHOD] == "aws_msk_iam"
        or config["sasl.login.callback.handler.class"] == IAM_LOGIN_HANDLER
    )
    sources = {
        "sasl.oauth.token.provider": config["sasl.oauth.token.provider"],
        "oauth.cb": config["oauth.cb"],
        _URL: config[_URL],
        f"{_METHOD}=aws_msk_iam": uses_aws or None,
    }
    configured = [name for name, source in sources.items() if source is not None]
    if len(configured) > 1:
        raise ConfigError(f"{' and '.join(configured)} are given: a token has one source")
    if not configured or (config[_METHOD] == "oidc" and config[_URL] is None):
        raise ConfigError(f"sasl.mechanism=OAUTHBEARER needs a source of tokens: {_SOURCES}")
    fields: dict[str, Any] = {"extensions": _extensions(config, login)}
    if uses_aws:
        return {**fields, "uses_aws_token": True}
    if config["oauth.cb"] is not None:
        # The callback is always called with a text, as confluent-kafka does.
        text = config["sasl.oauthbearer.config"] or ""
        return {**fields, "token_provider": config["oauth.cb"], "token_provider_config": text}
    if config["sasl.oauth.token.provider"] is not None:
        return {**fields, "token_provider": config["sasl.oauth.token.provider"]}
    url = urlsplit(config[_URL])
    _check_url(config, url)
    if url.scheme == "file":
        return {**fields, "token_file": unquote(url.path)}
    return {**fields, "oidc": _oidc(config, login)}


def _check_url(config: Config, url: SplitResult) -> None:
    if "@" in url.netloc:
        raise ConfigError(f"{_URL} must hold no user and no password: {_ID} and {_SECRET} do")
    allowed = config["sasl.oauthbearer.allowed.urls"]
    if allowed and config[_URL] not in allowed:
        raise ConfigError(f"{_URL} is none of sasl.oauthbearer.allowed.urls")
    if url.scheme not in ("https", "file"):
        raise ConfigError(
            f"{_URL} must begin with https:// (or file:///): what is sent there opens the door"
        )
    if config[_RETRIEVER] == "FileJwtRetriever" and url.scheme != "file":
        raise ConfigError(f"{_RETRIEVER}=FileJwtRetriever needs a file: URL in {_URL}")


def _oidc(config: Config, login: LoginModule) -> OidcSettings:
    """Return how an identity provider is asked."""
    grant = _grant(config)
    client_id = config[_ID] or login.text("clientId")
    secret = config[_SECRET] or login.options.get("clientSecret")
    has_assertion = any(
        config[f"{_ASSERTION}{name}"] is not None
        for name in ("file", "private.key.file", "private.key.pem")
    )
    if grant == JWT_BEARER and not has_assertion:
        raise ConfigError(
            f"the grant jwt-bearer needs {_ASSERTION}file, or a key that signs assertions: "
            f"{_ASSERTION}private.key.file"
        )
    if grant == CLIENT_CREDENTIALS and not has_assertion and (client_id is None or secret is None):
        missing = _ID if client_id is None else _SECRET
        raise ConfigError(f"{missing} is missing: {_URL} is asked with an id and a secret")
    return OidcSettings(
        grant=grant,
        token_endpoint_url=config[_URL],
        allowed_urls=config["sasl.oauthbearer.allowed.urls"],
        scope=config["sasl.oauthbearer.scope"] or login.text("scope"),
        client_id=client_id,
        client_secret=secret,
        urlencodes_credentials=config["sasl.oauthbearer.header.urlencode"],
        **_https(config, login),
        **_assertion(config),
    )


def _grant(config: Config) -> str:
    grant: str | None = config["sasl.oauthbearer.grant.type"]
    by_class = {
        "JwtBearerJwtRetriever": JWT_BEARER,
        "ClientCredentialsJwtRetriever": CLIENT_CREDENTIALS,
    }.get(config[_RETRIEVER])
    if grant and by_class and grant != by_class:
        raise ConfigError(f"sasl.oauthbearer.grant.type contradicts {_RETRIEVER}")
    return grant or by_class or CLIENT_CREDENTIALS


def _https(config: Config, login: LoginModule) -> dict[str, Any]:
    """Return how the identity provider is connected to."""
    location = config["https.ca.location"] or login.text("ssl.truststore.location")
    text = config["https.ca.pem"]
    if location is not None and text is not None:
        raise ConfigError("https.ca.location and https.ca.pem are both given: one says all")
    fields: dict[str, Any] = {
        "ca_location": location,
        "ca_certificates": None if text is None else certificates("https.ca.pem", text),
    }
    for field, name in (("connect_timeout", "connect"), ("read_timeout", "read")):
        milliseconds = config[f"sasl.login.{name}.timeout.ms"]
        if milliseconds is not None:
            fields[field] = milliseconds / 1000
    return fields


def _assertion(config: Config) -> dict[str, Any]:
    """Return what assertions are made of, or the file that has one."""
    key_file = config[f"{_ASSERTION}private.key.file"]
    key = config[f"{_ASSERTION}private.key.pem"]
    if key_file is not None and key is not None:
        raise ConfigError(f"{_ASSERTION}private.key.file and .pem are both given: one says all")
    return {
        "assertion_file": config[f"{_ASSERTION}file"],
        "assertion_key_file": key_file,
        "assertion_key": key and private_key(f"{_ASSERTION}private.key.pem", key),
        "assertion_key_password": config[f"{_ASSERTION}private.key.passphrase"],
        "assertion_template_file": config[f"{_ASSERTION}template.file"],
        "assertion_algorithm": config[f"{_ASSERTION}algorithm"],
        "assertion_audience": config[f"{_ASSERTION}claim.aud"],
        "assertion_issuer": config[f"{_ASSERTION}claim.iss"],
        "assertion_subject": config[f"{_ASSERTION}claim.sub"],
        "assertion_lifetime_s": config[f"{_ASSERTION}claim.exp.seconds"],
        "assertion_not_before_s": config[f"{_ASSERTION}claim.nbf.seconds"],
        "assertion_has_id": config[f"{_ASSERTION}claim.jti.include"],
    }


def _extensions(config: Config, login: LoginModule) -> tuple[tuple[str, str], ...]:
    """Return SASL extensions: the property's, and those of sasl.jaas.config."""
    extensions = {
        name[len(_EXTENSION) :]: login.text(name) or ""
        for name in login.options
        if name.startswith(_EXTENSION)
    }
    for entry in (config["sasl.oauthbearer.extensions"] or "").split(","):
        if not entry.strip():
            continue
        name, equals, value = entry.partition("=")
        if not equals:
            raise ConfigError("sasl.oauthbearer.extensions: expected name=value, with commas")
        extensions[name.strip()] = value.strip()
    return tuple(extensions.items())
