"""From properties to the settings of secure connections.

    security.protocol  PLAINTEXT        neither
                       SSL              TlsSettings
                       SASL_PLAINTEXT   SaslSettings
                       SASL_SSL         both

Errors name properties and never show values: any of these may stand beside a secret.
"""

from __future__ import annotations

from kafka_fast.config.security._security_settings import SaslSettings, TlsSettings
from kafka_fast.config.spelling._normalize import KEYS, Config
from kafka_fast.errors import ConfigError
from kafka_fast.logs import get_logger

_log = get_logger("kafka_fast.config")


def resolve_security(config: Config) -> dict[str, TlsSettings | SaslSettings | None]:
    """Return the settings' fields `tls` and `sasl`.

    Raises:
        ConfigError: something is missing, or properties contradict each other.
    """
    protocol = config["security.protocol"]
    tls: TlsSettings | None = None
    sasl: SaslSettings | None = None
    if "SSL" in protocol.split("_"):
        # Here, as below: most imports need neither.
        from kafka_fast.config.security._resolve_tls import tls_settings

        tls = tls_settings(config)
    if protocol.startswith("SASL"):
        from kafka_fast.config.security._resolve_sasl import sasl_settings

        sasl = sasl_settings(config)
    _check_unused(config, {"tls": tls, "sasl": sasl})
    return {"tls": tls, "sasl": sasl}


def warn_of_weakness(tls: TlsSettings | None) -> None:
    """Log a warning if a third party could pose as a broker; once for each client."""
    if tls is None:
        return
    verifies, checks_host = tls.verifies, tls.checks_host
    said = (
        "enable.ssl.certificate.verification is false",
        "ssl.endpoint.identification.algorithm is empty",
    )
    if tls.context is not None:
        # ssl.CERT_NONE is 0; `ssl` itself is imported by those alone who have a context.
        verifies, checks_host = bool(tls.context.verify_mode), tls.context.check_hostname
        said = "verify_mode of ssl_context is CERT_NONE", "check_hostname of ssl_context is false"
    if not verifies:
        _log.warning(
            "%s: the certificates of brokers are not checked, and whoever is between can read and "
            "change everything",
            said[0],
        )
    elif not checks_host:
        _log.warning(
            "%s: the host names in the certificates of brokers are not checked, and every owner of "
            "a trusted certificate can pose as one",
            said[1],
        )


def _check_unused(config: Config, fields: dict[str, TlsSettings | SaslSettings | None]) -> None:
    """Look for properties of TLS and SASL that security.protocol leaves without effect.

    Raises:
        ConfigError: security.protocol was not given: who gives these counts on them.
    """
    unused = [
        name
        for name in sorted(config.explicit)
        if fields.get(KEYS[name].field, config) is None and config[name] != KEYS[name].default
    ]
    if not unused:
        return
    if "security.protocol" not in config.explicit:
        protocol = "SASL_SSL" if any(KEYS[name].field == "sasl" for name in unused) else "SSL"
        raise ConfigError(
            f"{', '.join(unused)} would have no effect, because security.protocol is PLAINTEXT "
            f"unless you set it: security.protocol={protocol}"
        )
    _log.info(
        "without effect, because security.protocol is %s: %s",
        config["security.protocol"],
        ", ".join(unused),
    )
