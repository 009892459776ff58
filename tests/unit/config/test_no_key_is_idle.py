"""Every property has an effect: the settings take it up, and some code outside `config/` reads it.

Whoever sets a key that does nothing believes in a protection that is not there.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import kafka_fast
from kafka_fast.config import (
    KEYS,
    AdminSettings,
    CommonSettings,
    ConsumerSettings,
    OidcSettings,
    ProducerSettings,
    SaslSettings,
    Store,
    TlsSettings,
    producer_settings,
)
from kafka_fast.config.spelling._normalize import Config
from kafka_fast.values import Value, field_names

PACKAGE = Path(kafka_fast.__file__).parent

HOLDERS = {"settings", "_settings", "tls", "sasl", "oidc", "store"}
"""What objects of settings are called, all over the package."""

ELSEWHERE = {"serializer_encoding"}
"""What is in other fields already when the settings are made: here, in the serializers."""


def _reads() -> Mapping[str, set[str]]:
    """Return the attributes of settings that are read -> the modules that do."""
    readers = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).as_posix()
        if module.startswith("testing/"):
            continue
        # In `config`, only what a settings class makes of its own fields counts.
        holders = {"self"} if module.startswith("config/") else HOLDERS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                holder = getattr(node.value, "attr", getattr(node.value, "id", ""))
                if holder in holders:
                    readers[node.attr].add(module)
    return readers


READS = _reads()


def has_one_value(field: str) -> bool:
    """Tell whether a property has nothing to choose from: all other values are refused."""
    key = KEYS.get(field.replace("_", "."))
    return key is not None and len(key.choices) == 1


@pytest.mark.parametrize(
    "settings",
    [
        OidcSettings,
        SaslSettings,
        Store,
        TlsSettings,
        CommonSettings,
        AdminSettings,
        ProducerSettings,
        ConsumerSettings,
    ],
)
def test_every_field_is_read_by_somebody(settings: type[Value]) -> None:
    idle = {
        field
        for field in set(field_names(settings)) - ELSEWHERE
        if not READS.get(field)
        and not (field.endswith("_ms") and READS.get(field.removesuffix("_ms")))
        and not has_one_value(field)
    }
    assert not idle


OIDC: dict[str, Any] = {
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauthbearer_token_endpoint_url": "https://idp/token",
}
USER = {"sasl_username": "u", "sasl_password": "p"}


@pytest.mark.parametrize("field", ["tls", "sasl"])
def test_every_property_of_security_is_taken_up(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    plain = Config.__getitem__

    def note(config: Config, name: str) -> Any:
        seen.add(name)
        return plain(config, name)

    monkeypatch.setattr(Config, "__getitem__", note)
    for properties in (
        {"sasl_mechanism": "PLAIN", **USER},
        {"sasl_mechanism": "SCRAM-SHA-256", **USER},
        {"sasl_mechanism": "GSSAPI"},
        {"sasl_mechanism": "AWS_MSK_IAM"},
        {**OIDC, "sasl_oauthbearer_client_id": "id", "sasl_oauthbearer_client_secret": "s"},
        {**OIDC, "sasl_oauthbearer_assertion_file": "/assertion"},
        {"sasl_mechanism": "OAUTHBEARER", "oauth_cb": print},
    ):
        producer_settings(
            {"bootstrap.servers": "localhost:9092"},
            {"security_protocol": "SASL_SSL", **properties},
        )
    supported = {
        key.name
        for key in KEYS.values()
        if key.field == field
        and not (key.pending or key.ignored or (key.refused and not key.choices))
    }
    assert not supported - seen
