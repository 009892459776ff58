"""A consumer's configuration as typed attributes; see `_settings` for the rules of naming."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from kafka_fast.config._key import CONSUMER
from kafka_fast.config._settings import CommonSettings, Seconds, check_required, resolve_backoff
from kafka_fast.config._values import why_unsendable
from kafka_fast.config.security._resolve_security import resolve_security
from kafka_fast.config.spelling._normalize import Config, normalize
from kafka_fast.errors import ConfigError
from kafka_fast.serialization import Deserializer, as_deserializer
from kafka_fast.values import field_names

EARLIEST = "earliest"
LATEST = "latest"
NONE = "none"
BY_DURATION = "by_duration:"

CLASSIC = "classic"
CONSUMER_PROTOCOL = "consumer"

_CLASSIC_ONLY = ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy")
"""With `group.protocol=consumer` these are the coordinator's to decide."""

_DURATION = re.compile(
    r"(?P<sign>-)?P(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?$",
    re.IGNORECASE,
)

SHORTEST_PATIENCE = 1.0
"""Seconds that a coordinator has for an answer, however short the session is."""

OffsetReset: TypeAlias = str | int
"""`earliest`, `latest` or `none`; or a duration in ms: records from that long ago on."""


class ConsumerSettings(CommonSettings, kw_only=True):
    """A consumer's configuration, complete and free of contradictions."""

    key_deserializer: Deserializer | None
    value_deserializer: Deserializer | None
    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    partition_assignment_strategy: tuple[Any, ...]
    """Names of built-in assignors, or the user's own objects; the preferred one first."""
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    auto_offset_reset: OffsetReset
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    isolation_level: str
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    fetch_buffer_bytes: int
    max_decompressed_batch_bytes: int
    check_crcs: bool
    client_rack: str
    allow_auto_create_topics: bool
    exclude_internal_topics: bool
    default_api_timeout_ms: int

    session_timeout = Seconds()
    heartbeat_interval = Seconds()
    max_poll_interval = Seconds()
    auto_commit_interval = Seconds()
    default_api_timeout = Seconds()
    fetch_max_wait = Seconds()

    @property
    def fetch_timeout(self) -> float:
        """Seconds after which the answer to a Fetch is given up: the broker may wait by itself."""
        return self.request_timeout + self.fetch_max_wait

    @property
    def heartbeat_timeout(self) -> float:
        """Seconds after which a silent coordinator is taken for dead, by the classic protocol.

        At most half of the session: the other half is for finding the coordinator again, and for
        telling it that this member lives.
        """
        return min(self.request_timeout, max(self.session_timeout / 2, SHORTEST_PATIENCE))

    @property
    def is_read_committed(self) -> bool:
        """Whether only records of committed transactions are handed out."""
        return self.isolation_level == "read_committed"


def consumer_settings(
    mapping: Mapping[str, object] | None = None, kwargs: Mapping[str, object] | None = None
) -> ConsumerSettings:
    """Return the settings of a consumer from what its constructor was given.

    Raises:
        ConfigError: see `normalize`; or `bootstrap.servers` is missing, or properties
            that were given explicitly contradict each other.
    """
    try:
        config = normalize(mapping, kwargs, client=CONSUMER)
    finally:
        del mapping, kwargs  # see normalize
    values = dict(config)
    check_required(values)
    resolve_backoff(config, values)
    values["auto.offset.reset"] = _offset_reset(values["auto.offset.reset"])
    _check_group(config, values)
    values |= resolve_security(config)
    for name in ("key.deserializer", "value.deserializer"):
        values[name] = as_deserializer(values[name], values["serializer.encoding"])
    return ConsumerSettings(
        **{name: values[name.replace("_", ".")] for name in field_names(ConsumerSettings)}
    )


def _check_group(config: Config, values: dict[str, Any]) -> None:
    """Look for contradictions in what says how this consumer belongs to a group."""
    if values["group.id"] == "":
        raise ConfigError("group.id must not be empty; leave it out to consume without a group")
    if values["group.instance.id"] == "":
        raise ConfigError("group.instance.id must not be empty; a dynamic member has none")
    if values["group.id"] is None:
        if "enable.auto.commit" in config.explicit and values["enable.auto.commit"]:
            raise ConfigError("enable.auto.commit=true needs a group.id to commit for")
        values["enable.auto.commit"] = False
        if values["group.instance.id"] is not None:
            raise ConfigError("group.instance.id names a member of a group: it needs a group.id")
    if values["group.protocol"] == CONSUMER_PROTOCOL:
        misplaced = [name for name in _CLASSIC_ONLY if name in config.explicit]
        if misplaced:
            raise ConfigError(
                f"{', '.join(misplaced)} cannot be set with group.protocol=consumer: "
                "the coordinator decides (KIP-848)"
            )
        return
    if not values["partition.assignment.strategy"]:
        raise ConfigError("partition.assignment.strategy must name at least one assignor")
    _check_names(values["partition.assignment.strategy"])
    if "group.remote.assignor" in config.explicit:
        raise ConfigError("group.remote.assignor needs group.protocol=consumer")
    if values["heartbeat.interval.ms"] >= values["session.timeout.ms"]:
        raise ConfigError(
            f"heartbeat.interval.ms={values['heartbeat.interval.ms']} must be below "
            f"session.timeout.ms={values['session.timeout.ms']}"
        )


def _check_names(assignors: Iterable[object]) -> None:
    """Look for assignors that the members of a group could not tell apart."""
    seen: set[str] = set()
    for assignor in assignors:
        name = assignor if isinstance(assignor, str) else getattr(assignor, "name", None)
        if not isinstance(name, str) or not name:
            raise ConfigError(f"partition.assignment.strategy: {assignor!r} has no name")
        problem = why_unsendable(name)
        if problem is not None:
            raise ConfigError(f"partition.assignment.strategy: the name of an assignor: {problem}")
        if name in seen:
            raise ConfigError(f"partition.assignment.strategy: two assignors are called {name!r}")
        seen.add(name)


def _offset_reset(policy: str) -> OffsetReset:
    """Return the policy, with a duration as its number of milliseconds (KIP-1106)."""
    if not policy.startswith(BY_DURATION):
        return policy
    text = policy[len(BY_DURATION) :]
    match = _DURATION.match(text)
    parts = {} if match is None else {k: v for k, v in match.groupdict("").items() if v}
    if match is None or not parts.keys() - {"sign"}:
        raise ConfigError(
            f"auto.offset.reset=by_duration:{text}: not an ISO 8601 duration such as P3DT12H"
        )
    if "sign" in parts:
        raise ConfigError(f"auto.offset.reset=by_duration:{text}: the duration is negative")
    seconds = (
        int(parts.get("days", 0)) * 86_400
        + int(parts.get("hours", 0)) * 3_600
        + int(parts.get("minutes", 0)) * 60
        + float(parts.get("seconds", 0))
    )
    return round(seconds * 1000)
