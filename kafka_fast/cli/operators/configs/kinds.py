"""Of what there are settings: the first argument of `kafka-fast configs`, and the names behind."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.names import check_names
from kafka_fast.errors import KafkaError, UsageError
from kafka_fast.values import Value

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import ConfigResource, ConfigResourceType

DEFAULTS = "broker-defaults"
"""What is set for all brokers: the one resource that has no name."""


class Kind(Value):
    """Of what there are settings."""

    resource_type: str
    """The name of its `ConfigResourceType`."""
    sources: tuple[str, ...]
    """The `ConfigSource` of what somebody has set for it, rather than for something above it."""


KINDS = {
    "topic": Kind("TOPIC", ("DYNAMIC_TOPIC_CONFIG",)),
    "broker": Kind("BROKER", ("DYNAMIC_BROKER_CONFIG", "STATIC_BROKER_CONFIG")),
    DEFAULTS: Kind("BROKER", ("DYNAMIC_DEFAULT_BROKER_CONFIG",)),
    "broker-logger": Kind("BROKER_LOGGER", ("DYNAMIC_BROKER_LOGGER_CONFIG",)),
    "group": Kind("GROUP", ("DYNAMIC_GROUP_CONFIG",)),
    "client-metrics": Kind("CLIENT_METRICS", ("DYNAMIC_CLIENT_METRICS_CONFIG",)),
}

_OF_NUMBERS = ("broker", "broker-logger")


def add_resources(parser: argparse.ArgumentParser, names: str) -> None:
    """Add the kind and the names.

    Args:
        parser: the command's parser.
        names: the help of the names.
    """
    parser.add_argument(
        "kind",
        type=_kind,
        choices=tuple(KINDS),
        help="of what: a topic, a broker, all brokers (broker-defaults), the log levels of a "
        "broker, a group, or a subscription to the metrics of clients",
    )
    parser.add_argument("name", nargs="*", help=names)


def resource_type(kind: str) -> ConfigResourceType:
    """Return the type of a kind's resources."""
    from kafka_fast.admin import ConfigResourceType

    return ConfigResourceType[KINDS[kind].resource_type]


def resources(kind: str, names: Iterable[str]) -> list[ConfigResource]:
    """Return the resources of these names.

    Raises:
        UsageError: a name is none of its kind.
    """
    from kafka_fast.admin import ConfigResource

    names = list(dict.fromkeys(names))
    if kind == DEFAULTS:
        if names:
            raise UsageError("broker-defaults are set for all brokers: they take no name")
        names = [""]
    if kind == "topic":
        check_names(names)
    for name in names:
        if kind in _OF_NUMBERS and not (name.isascii() and name.isdigit()):
            raise UsageError(f"{name!r} is no broker: brokers are named by their ids, such as 1")
    return [ConfigResource(resource_type(kind), name) for name in names]


def all_names(admin: Admin, kind: str) -> list[str]:
    """Return the names of all that there is of a kind. Groups and metrics need Kafka 4.1."""
    if kind == DEFAULTS:
        return []
    if kind == "topic":
        return sorted(admin.list_topics())
    if kind in _OF_NUMBERS:
        return [str(node.id) for node in admin.describe_cluster().nodes]
    return [one.name for one in admin.list_config_resources([resource_type(kind)])]


def by_name(errors: dict[ConfigResource, KafkaError], kind: str) -> dict[str, KafkaError]:
    """Return errors by the names of what they are about; the kind stands for the defaults."""
    return {resource.name or kind: error for resource, error in errors.items()}


def _kind(text: str) -> str:
    """Return a kind, which Kafka's scripts write in the plural."""
    singular = text.removesuffix("s")
    return text if text in KINDS or singular not in KINDS else singular
