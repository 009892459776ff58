"""An admin client's configuration as typed attributes; see `_settings` for the rules of naming."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_fast.config._key import ADMIN
from kafka_fast.config._settings import CommonSettings, Seconds, check_required, resolve_backoff
from kafka_fast.config.security._resolve_security import resolve_security
from kafka_fast.config.spelling._normalize import normalize
from kafka_fast.values import field_names


class AdminSettings(CommonSettings, kw_only=True):
    """An admin client's configuration, complete and free of contradictions."""

    default_api_timeout_ms: int

    default_api_timeout = Seconds()


def admin_settings(
    mapping: Mapping[str, object] | None = None, kwargs: Mapping[str, object] | None = None
) -> AdminSettings:
    """Return the settings of an admin client from what its constructor was given.

    Raises:
        ConfigError: see `normalize`; or `bootstrap.servers` is missing, or properties
            that were given explicitly contradict each other.
    """
    try:
        config = normalize(mapping, kwargs, client=ADMIN)
    finally:
        del mapping, kwargs  # see normalize
    values = dict(config)
    check_required(values)
    resolve_backoff(config, values)
    values |= resolve_security(config)
    return AdminSettings(
        **{name: values[name.replace("_", ".")] for name in field_names(AdminSettings)}
    )
