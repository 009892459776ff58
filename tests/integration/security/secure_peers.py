"""Java's security properties in the words of other people's clients."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Any

_SAME_IN_LIBRDKAFKA = (
    "bootstrap.servers",
    "security.protocol",
    "sasl.mechanism",
    "sasl.oauthbearer.token.endpoint.url",
    "https.ca.location",
)


def login(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options of `sasl.jaas.config`."""
    return dict(re.findall(r'(\w+)="([^"]*)"', properties.get("sasl.jaas.config", "")))


def for_librdkafka(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the configuration of confluent-kafka."""
    made: dict[str, Any] = {
        name: properties[name] for name in _SAME_IN_LIBRDKAFKA if name in properties
    }
    if "ssl.truststore.location" in properties:
        made["ssl.ca.location"] = properties["ssl.truststore.location"]
    if "ssl.keystore.location" in properties:
        made["ssl.certificate.location"] = properties["ssl.keystore.location"]
        made["ssl.key.location"] = properties["ssl.keystore.location"]
    options = login(properties)
    if "username" in options:
        made |= {"sasl.username": options["username"], "sasl.password": options["password"]}
    elif options:
        made |= {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": options["clientId"],
            "sasl.oauthbearer.client.secret": options["clientSecret"],
        }
    return made


def context(properties: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return what the properties say of TLS."""
    if "ssl.truststore.location" not in properties:
        return None
    made = ssl.create_default_context(cafile=properties["ssl.truststore.location"])
    if "ssl.keystore.location" in properties:
        made.load_cert_chain(properties["ssl.keystore.location"])
    return made


def for_python_clients(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of aiokafka and kafka-python, without OAUTHBEARER's provider."""
    made: dict[str, Any] = {
        "bootstrap_servers": properties["bootstrap.servers"],
        "security_protocol": properties["security.protocol"],
        "ssl_context": context(properties),
    }
    if "sasl.mechanism" in properties:
        options = login(properties)
        made["sasl_mechanism"] = properties["sasl.mechanism"]
        made["sasl_plain_username"] = options.get("username")
        made["sasl_plain_password"] = options.get("password")
    return made
