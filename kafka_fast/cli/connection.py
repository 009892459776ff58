"""The options `--bootstrap` and `-X` of commands, and the configuration that they make."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from kafka_fast.config import find_key
from kafka_fast.errors import ConfigError

DEFAULT_BOOTSTRAP = "localhost:9092"


def add_connection(parser: argparse.ArgumentParser, client: str) -> None:
    """Add the options to a command.

    Args:
        parser: the command's parser.
        client: the client that the properties are for: producer or consumer.
    """
    parser.add_argument(
        "-b",
        "--bootstrap",
        metavar="HOST:PORT",
        help=f"brokers, with commas (default {DEFAULT_BOOTSTRAP})",
    )
    parser.add_argument(
        "-X",
        "--config",
        metavar="KEY=VALUE",
        type=key_value,
        action="append",
        default=[],
        help=f"property of the {client} (see `kafka-fast config --client {client}`); "
        "may be repeated",
    )


def configuration(args: argparse.Namespace, client: str) -> dict[str, object]:
    """Return the client's configuration from the arguments.

    Raises:
        ConfigError: a property is unknown, or is given twice.
    """
    config: dict[str, object] = {}
    for name, value in args.config:
        if config.setdefault(name, value) != value:
            raise ConfigError(f"{name} is given twice: {config[name]!r} and {value!r}")
    if args.bootstrap is not None:
        if config.setdefault("bootstrap.servers", args.bootstrap) != args.bootstrap:
            raise ConfigError("bootstrap.servers is given twice: by --bootstrap and by --config")
    elif not is_given(config, "bootstrap.servers", client):
        config["bootstrap.servers"] = DEFAULT_BOOTSTRAP
    return config


def reader_configuration(args: argparse.Namespace) -> dict[str, object]:
    """Return the configuration of a command that reads, and so must not create topics."""
    config = configuration(args, "consumer")
    if not is_given(config, "allow.auto.create.topics", "consumer"):
        config["allow.auto.create.topics"] = False
    return config


def is_given(config: Iterable[str], name: str, client: str) -> bool:
    """Whether the user has set a property, under any of its names."""
    return any(find_key(it, client).name == name for it in config)


def group_id(config: dict[str, object], name: str | None) -> str | None:
    """Return the group that the command line names, and take it out of the configuration.

    Args:
        config: may name the group as well.
        name: value of the command's own argument; None: not given.

    Raises:
        ConfigError: the two name different groups.
    """
    given = [config.pop(it) for it in list(config) if is_given([it], "group.id", "consumer")]
    names = dict.fromkeys(it for it in (name, *given) if it is not None)
    if len(names) > 1:
        raise ConfigError(f"group.id is given twice: {' and '.join(map(repr, names))}")
    return str(next(iter(names))) if names else None


def key_value(text: str) -> tuple[str, str]:
    """Return the parts of `KEY=VALUE`."""
    key, found, value = text.partition("=")
    if not found or not key:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, not {text!r}")
    return key, value
