"""What a client needs to connect to a secure broker, by Java's names; and properties files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["LOGIN_MODULES", "login_properties", "tls_properties", "write_properties_file"]

LOGIN_MODULES: Mapping[str, str] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}


def tls_properties(truststore: Path, keystore: Path | None = None) -> dict[str, str]:
    """Return whom a client trusts, and what it shows: PEM files.

    Args:
        truststore: the authority's certificate.
        keystore: a private key and its certificate; None: the client shows nothing.
    """
    properties = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(truststore)}
    if keystore is not None:
        properties["ssl.keystore.type"] = "PEM"
        properties["ssl.keystore.location"] = str(keystore)
    return properties


def login_properties(mechanism: str, **options: str) -> dict[str, str]:
    """Return how a client says who it is; `options` are its login module's."""
    told = "".join(f' {name}="{value}"' for name, value in options.items())
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{LOGIN_MODULES[mechanism]} required{told};",
    }


def write_properties_file(path: Path, properties: Mapping[str, str]) -> Path:
    """Write a Java properties file, one line for each of them; return its path."""
    lines = (f"{key}={value}\n".replace("\\", "\\\\") for key, value in properties.items())
    path.write_text("".join(lines), encoding="utf-8")
    return path
