"""From properties to `TlsSettings`: which store a certificate is in, which versions may be used."""

from __future__ import annotations

from kafka_fast.config.security._cipher_suites import sorted_suites
from kafka_fast.config.security._pem import certificates, private_key
from kafka_fast.config.security._security_settings import Store, TlsSettings
from kafka_fast.config.spelling._normalize import KEYS, Config
from kafka_fast.errors import ConfigError
from kafka_fast.secret import Secret

_TLS12, _TLS13 = "TLSv1.2", "TLSv1.3"


def tls_settings(config: Config) -> TlsSettings:
    """Return how TLS is spoken.

    Raises:
        ConfigError: properties contradict each other; the message names them.
    """
    if config["ssl.context"] is not None:
        _check_alone(config)
        return TlsSettings(context=config["ssl.context"])
    suites = sorted_suites(config["ssl.cipher.suites"])
    low, high = _versions(config)
    if suites.is_complete and (suites.tls12 or suites.tls13):
        low = _TLS13 if not suites.tls12 else low
        high = _TLS12 if not suites.tls13 else high
    if low > high:
        raise ConfigError(
            "ssl.cipher.suites, ssl.enabled.protocols and ssl.protocol leave no version of TLS: "
            "a cipher suite is either of TLSv1.2 or of TLSv1.3"
        )
    return TlsSettings(
        truststore=_truststore(config),
        keystore=_keystore(config),
        minimum_version=low,
        maximum_version=high,
        cipher_suites=suites.tls12,
        tls13_cipher_suites=suites.tls13,
        checks_host=config["ssl.endpoint.identification.algorithm"] == "https",
        verifies=config["enable.ssl.certificate.verification"],
        crl_location=config["ssl.crl.location"],
        key_log_location=config["ssl.keylog.location"],
    )


def _check_alone(config: Config) -> None:
    """Refuse what would have no effect beside the user's own context."""
    others = [
        name
        for name in sorted(config.explicit)
        if KEYS[name].field == "tls"
        and name != "ssl.context"
        and config[name] != KEYS[name].default
    ]
    if others:
        raise ConfigError(
            f"ssl.context is used to the letter: set {', '.join(others)} in that context instead"
        )


def _versions(config: Config) -> tuple[str, str]:
    """Return the lowest and the highest version of TLS."""
    enabled = sorted(config["ssl.enabled.protocols"])
    if config["ssl.protocol"] == _TLS12:
        enabled = [version for version in enabled if version == _TLS12]
    if not enabled:
        raise ConfigError("ssl.enabled.protocols and ssl.protocol leave no version of TLS")
    return enabled[0], enabled[-1]


def _truststore(config: Config) -> Store | None:
    location = config["ssl.truststore.location"]
    texts: Secret | None = config["ssl.truststore.certificates"]
    if location is not None and texts is not None:
        raise _either("ssl.truststore.location", "ssl.truststore.certificates")
    if texts is not None:
        _check_is_pem(config, "ssl.truststore.type", "ssl.truststore.certificates")
        return Store(certificates=certificates("ssl.truststore.certificates", texts))
    if location is None:
        return None
    return Store(location=location, password=config["ssl.truststore.password"])


def _keystore(config: Config) -> Store | None:
    location, key_location = config["ssl.keystore.location"], config["ssl.key.location"]
    key: Secret | None = config["ssl.keystore.key"]
    chain: Secret | None = config["ssl.keystore.certificate.chain"]
    if location is None and key_location is not None:
        raise ConfigError(
            "ssl.key.location needs ssl.certificate.location, the file with the certificate"
        )
    if location is not None and (key or chain):
        text = "ssl.keystore.key" if key else "ssl.keystore.certificate.chain"
        raise _either("ssl.keystore.location", text)
    if key and chain:
        _check_is_pem(config, "ssl.keystore.type", "ssl.keystore.key")
        return Store(
            key=private_key("ssl.keystore.key", key),
            certificates=certificates("ssl.keystore.certificate.chain", chain),
            key_password=config["ssl.key.password"],
        )
    if key or chain:
        missing = "ssl.keystore.certificate.chain" if key else "ssl.keystore.key"
        raise ConfigError(f"{missing} is missing: a private key and its certificates go together")
    if location is None:
        return None
    return Store(
        location=location,
        key_location=key_location,
        password=config["ssl.keystore.password"],
        key_password=config["ssl.key.password"],
    )


def _check_is_pem(config: Config, name: str, of: str) -> None:
    """Refuse another type for texts in PEM, if the user gave it: the default says nothing."""
    if name in config.explicit and config[name] != "PEM":
        raise ConfigError(f"{name}={config[name]} contradicts {of}, which is a text in PEM")


def _either(first: str, second: str) -> ConfigError:
    return ConfigError(f"{first} and {second} are both given: one of them says all")
