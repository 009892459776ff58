"""Which mechanism the settings ask for, with the parts that it needs.

A client has one mechanism, so that each one's modules are imported where it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafka_fast.config.security._security_settings import SaslSettings
from kafka_fast.control.authentication.mechanism import Mechanism
from kafka_fast.errors import ConfigError
from kafka_fast.secret import Secret

if TYPE_CHECKING:
    from kafka_fast.control.authentication.oauthbearer import TokenSource
    from kafka_fast.net.login.aws import AwsLogin

__all__ = ["make_mechanism"]

NONCE_BYTES = 24
"""Random bytes in a SCRAM nonce: 192 bits."""


def make_mechanism(settings: SaslSettings) -> Mechanism:
    """Return the mechanism of one client; it serves all its links. Any thread; blocks for nothing.

    Raises:
        ConfigError: a setting is missing or cannot be used, or a package that the mechanism needs
            is not installed.
    """
    make = _MAKERS.get(settings.mechanism)
    if make is None:
        raise ConfigError(
            f"sasl.mechanism: {settings.mechanism} is not known; known: {', '.join(_MAKERS)}"
        )
    return make(settings)


def _plain(settings: SaslSettings) -> Mechanism:
    from kafka_fast.control.authentication.plain import PlainMechanism

    return PlainMechanism(*_credentials(settings))


def _scram(settings: SaslSettings) -> Mechanism:
    import secrets

    from kafka_fast.control.authentication.scram import HASHES, ScramMechanism
    from kafka_fast.net.login.scram_keys import ScramKeyCache

    username, password = _credentials(settings)
    extensions = dict(settings.extensions)
    if settings.is_token:
        extensions["tokenauth"] = "true"
    return ScramMechanism(
        settings.mechanism,
        username,
        password,
        ScramKeyCache(HASHES[settings.mechanism]).derive,
        lambda: secrets.token_urlsafe(NONCE_BYTES),
        extensions=extensions.items(),
        max_iterations=settings.scram_max_iterations,
    )


def _credentials(settings: SaslSettings) -> tuple[str, Secret]:
    if settings.username is None or settings.password is None:
        raise ConfigError(f"{settings.mechanism} needs sasl.username and sasl.password")
    return settings.username, settings.password


def _oauthbearer(settings: SaslSettings) -> Mechanism:
    from kafka_fast.control.authentication.oauthbearer import OAuthBearerMechanism

    return OAuthBearerMechanism(_tokens(settings), settings.extensions)


def _tokens(settings: SaslSettings) -> TokenSource:
    """Return where the tokens come from; the user names one source."""
    from kafka_fast.net.login.tokens import TokenCache

    if settings.token_provider is not None:
        from kafka_fast.net.login.user_tokens import user_tokens

        fetch = user_tokens(settings.token_provider, settings.token_provider_config)
        return TokenCache(fetch, "a token is asked of the user's function", settings)
    if settings.token_file is not None:
        from kafka_fast.net.login.user_tokens import file_tokens

        what = f"a token is read from {settings.token_file}"
        return TokenCache(file_tokens(settings.token_file), what, settings)
    if settings.oidc is not None:
        from kafka_fast.net.login.oidc import ProviderTokens

        provider = ProviderTokens(settings.oidc)
        return TokenCache(provider.fetch, provider.what, settings)
    if settings.uses_aws_token:
        from kafka_fast.net.login.jwt import token_from

        login = _aws_login(settings)
        what = "a token is signed with AWS credentials"
        return TokenCache(lambda: token_from(*login.token()), what, settings)
    raise ConfigError(
        "OAUTHBEARER needs sasl_oauth_token_provider, sasl.oauthbearer.token.endpoint.url, or "
        "sasl.oauthbearer.method=aws_msk_iam"
    )


def _gssapi(settings: SaslSettings) -> Mechanism:
    from kafka_fast.control.authentication.gssapi import GssapiMechanism
    from kafka_fast.net.login.kerberos import KerberosLogin

    login = KerberosLogin(
        service=settings.kerberos_service_name,
        principal=settings.kerberos_principal,
        keytab=settings.kerberos_keytab,
        host=settings.kerberos_domain_name,
    )
    return GssapiMechanism(login.make_context)


def _aws_msk_iam(settings: SaslSettings) -> Mechanism:
    from kafka_fast.control.authentication.aws_msk_iam import AwsMskIamMechanism

    return AwsMskIamMechanism(_aws_login(settings).request)


def _aws_login(settings: SaslSettings) -> AwsLogin:
    from kafka_fast.net.login.aws import AwsLogin

    return AwsLogin(
        settings.aws_region,
        profile=settings.aws_profile,
        role_arn=settings.aws_role_arn,
        role_session_name=settings.aws_role_session_name,
    )


_MAKERS: Final[dict[str, Callable[[SaslSettings], Mechanism]]] = {
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram,
    "SCRAM-SHA-512": _scram,
    "OAUTHBEARER": _oauthbearer,
    "GSSAPI": _gssapi,
    "AWS_MSK_IAM": _aws_msk_iam,
}
