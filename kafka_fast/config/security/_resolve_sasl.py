"""From properties to `SaslSettings`: who the client says it is, and by which mechanism."""

from __future__ import annotations

from typing import Any

from kafka_fast.config.security import _jaas as jaas
from kafka_fast.config.security._jaas import LoginModule, parse_jaas
from kafka_fast.config.security._resolve_tokens import token_source
from kafka_fast.config.security._sasl_keys import IAM_CLIENT_HANDLER
from kafka_fast.config.security._security_settings import SaslSettings
from kafka_fast.config.spelling._normalize import Config
from kafka_fast.errors import ConfigError
from kafka_fast.secret import Secret

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
GSSAPI, AWS_MSK_IAM = "GSSAPI", "AWS_MSK_IAM"

_MODULES = {
    PLAIN: jaas.PLAIN,
    "SCRAM-SHA-256": jaas.SCRAM,
    "SCRAM-SHA-512": jaas.SCRAM,
    OAUTHBEARER: jaas.OAUTHBEARER,
    GSSAPI: jaas.KERBEROS,
    AWS_MSK_IAM: jaas.AWS,
}
_READABLE = (PLAIN, OAUTHBEARER, AWS_MSK_IAM)
"""Mechanisms that send what opens the door: whoever reads it can use it."""

_NO_LOGIN = LoginModule("", {})


def sasl_settings(config: Config) -> SaslSettings:
    """Return how the client says who it is.

    Raises:
        ConfigError: something is missing, or properties contradict each other.
    """
    mechanism = config["sasl.mechanism"]
    login = _NO_LOGIN
    if config["sasl.jaas.config"] is not None:
        login = parse_jaas(config["sasl.jaas.config"])
    _check_mechanism(config, login)
    _check_protocol(config, mechanism)
    values: dict[str, Any] = {
        "mechanism": mechanism,
        **_refreshing(config),
    }
    if mechanism == OAUTHBEARER:
        values |= token_source(config, login)
    elif mechanism == GSSAPI:
        values |= _kerberos(config, login)
    elif mechanism != AWS_MSK_IAM:
        values |= _password(config, login)
    if mechanism == AWS_MSK_IAM or values.get("uses_aws_token"):
        values |= _aws(config, login)
    return SaslSettings(**values)


def _check_mechanism(config: Config, login: LoginModule) -> None:
    """See that the mechanism is the one that the credentials are for."""
    mechanism = config["sasl.mechanism"]
    is_default = "sasl.mechanism" not in config.explicit
    if login.module and login.module != _MODULES[mechanism]:
        fitting = [name for name, module in _MODULES.items() if module == login.module]
        label = "the default of sasl.mechanism" if is_default else "sasl.mechanism"
        raise ConfigError(
            f"{label} is {mechanism}, and sasl.jaas.config has a {login.module}: set "
            f"sasl.mechanism={' or '.join(fitting)}"
        )
    if is_default and (config["sasl.username"] or config["sasl.password"]):
        raise ConfigError(
            "sasl.mechanism is not given, and its default, GSSAPI, has no password: set "
            "sasl.mechanism=PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"
        )
    if is_default and (config["sasl.oauth.token.provider"] or config["oauth.cb"]):
        raise ConfigError(
            "sasl.mechanism is not given, and its default, GSSAPI, takes no tokens: set "
            "sasl.mechanism=OAUTHBEARER"
        )
    handler = config["sasl.client.callback.handler.class"]
    if handler == IAM_CLIENT_HANDLER and mechanism != AWS_MSK_IAM:
        raise ConfigError(
            f"sasl.client.callback.handler.class={handler} is for sasl.mechanism=AWS_MSK_IAM, "
            f"not for {mechanism}"
        )


def _check_protocol(config: Config, mechanism: str) -> None:
    """Refuse to send what opens the door where everybody can read it."""
    is_encrypted = config["security.protocol"] == "SASL_SSL"
    if mechanism in _READABLE and not is_encrypted and not config["allow.insecure.sasl"]:
        raise ConfigError(
            f"sasl.mechanism={mechanism} with security.protocol=SASL_PLAINTEXT sends credentials "
            "that everybody between here and the broker can read: set security.protocol=SASL_SSL, "
            "or allow.insecure.sasl=true if the network is yours"
        )


def _refreshing(config: Config) -> dict[str, Any]:
    return {
        "refresh_window_factor": config["sasl.login.refresh.window.factor"],
        "refresh_window_jitter": config["sasl.login.refresh.window.jitter"],
        "refresh_min_period_s": config["sasl.login.refresh.min.period.seconds"],
        "refresh_buffer_s": config["sasl.login.refresh.buffer.seconds"],
        "retry_backoff_ms": config["sasl.login.retry.backoff.ms"],
        "retry_backoff_max_ms": config["sasl.login.retry.backoff.max.ms"],
    }


def _password(config: Config, login: LoginModule) -> dict[str, Any]:
    """Return user and password of PLAIN and SCRAM."""
    username: str | None = config["sasl.username"]
    password: Secret | None = config["sasl.password"]
    if login.module:
        if username is not None or password is not None:
            raise ConfigError(
                "sasl.jaas.config and sasl.username or sasl.password are both given: one of them "
                "says all"
            )
        username, password = login.text("username"), login.options.get("password")
    if not username or password is None:
        missing = "password" if username else "username"
        where = f"option {missing} in sasl.jaas.config" if login.module else f"sasl.{missing}"
        raise ConfigError(f"sasl.mechanism={config['sasl.mechanism']} needs a {missing}: {where}")
    if login.module != jaas.SCRAM:
        return {"username": username, "password": password}
    return {
        "username": username,
        "password": password,
        "is_token": login.flag("tokenauth"),
    }


def _kerberos(config: Config, login: LoginModule) -> dict[str, Any]:
    """Return the principals of GSSAPI, and where the client's key is.

    Raises:
        ConfigError: sasl.jaas.config asks for what cannot be had, or contradicts a property.
    """
    if login.text("ticketCache") is not None:
        raise ConfigError(
            "sasl.jaas.config: a ticketCache is chosen by the environment variable KRB5CCNAME here"
        )
    keytab = login.text("keyTab") if login.flag("useKeyTab") else None
    if login.flag("useKeyTab") and keytab is None:
        raise ConfigError("sasl.jaas.config: useKeyTab=true needs the option keyTab")
    return {
        "kerberos_service_name": _one_of(
            config, "sasl.kerberos.service.name", login.text("serviceName")
        )
        or "kafka",
        "kerberos_principal": _one_of(config, "sasl.kerberos.principal", login.text("principal")),
        "kerberos_keytab": _one_of(config, "sasl.kerberos.keytab", keytab),
        "kerberos_domain_name": config["sasl.kerberos.domain.name"],
    }


def _aws(config: Config, login: LoginModule) -> dict[str, Any]:
    """Return where AWS credentials come from."""
    names = {
        "aws_region": ("sasl.aws.region", "awsStsRegion"),
        "aws_profile": ("sasl.aws.profile", "awsProfileName"),
        "aws_role_arn": ("sasl.aws.role.arn", "awsRoleArn"),
        "aws_role_session_name": ("sasl.aws.role.session.name", "awsRoleSessionName"),
    }
    return {
        field: _one_of(config, name, login.text(option)) for field, (name, option) in names.items()
    }


def _one_of(config: Config, name: str, option: str | None) -> str | None:
    """Return a property or the JAAS option of the same meaning; both may be given, if equal."""
    value: str | None = config[name]
    if value is not None and option is not None and value != option:
        raise ConfigError(f"{name} contradicts what sasl.jaas.config says")
    return option if value is None else value
