"""An admin client's configuration as typed attributes; see `_settings` for the rules of naming."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_fast.config._address import Address
from kafka_fast.config._key import ADMIN
from kafka_fast.config._settings import CommonSettings, Seconds, resolve_backoff
from kafka_fast.config.security._resolve_security import resolve_security
from kafka_fast.config.spelling._normalize import normalize
from kafka_fast.errors import ConfigError
from kafka_fast.values import field_names


class AdminSettings(CommonSettings, kw_only=True):
    """An admin client's configuration, complete and free of contradictions."""

    bootstrap_controllers: tuple[Address, ...]
    """Controllers to ask in place of brokers: then `bootstrap_servers` has the same addresses."""
    default_api_timeout_ms: int

    default_api_timeout = Seconds()

    @property
    def uses_controllers(self) -> bool:
        """Whether the nodes of this client are controllers (KIP-919)."""
        return bool(self.bootstrap_controllers)


def admin_settings(
    mapping: Mapping[str, object] | None = None, kwargs: Mapping[str, object] | None = None
) -> AdminSettings:
    """Return the settings of an admin client from what its constructor was given.

    Raises:
        ConfigError: see `normalize`; or neither or both of `bootstrap.servers` and
            `bootstrap.controllers` are given, or properties that were given explicitly contradict
            each other.
    """
    try:
        config = normalize(mapping, kwargs, client=ADMIN)
    finally:
        del mapping, kwargs  # see normalize
    values = dict(config)
    if values["bootstrap.controllers"]:
        if values["bootstrap.servers"]:
            raise ConfigError(
                "bootstrap.servers has brokers, and bootstrap.controllers has controllers: an "
                "admin client takes one of them"
            )
        values["bootstrap.servers"] = values["bootstrap.controllers"]
    elif not values["bootstrap.servers"]:
        raise ConfigError(
            "bootstrap.servers or bootstrap.controllers is required: host:port of at least one node"
        )
    resolve_backoff(config, values)
    values |= resolve_security(config)
    return AdminSettings(
        **{name: values[name.replace("_", ".")] for name in field_names(AdminSettings)}
    )
