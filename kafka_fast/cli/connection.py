"""How a command reaches its brokers: `--bootstrap` and `-X`, and the configuration they make."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from kafka_fast.config import find_key
from kafka_fast.errors import ConfigError

DEFAULT_BOOTSTRAP = "localhost:9092"


def add_connection(parser: argparse.ArgumentParser, client: str) -> None:
    """Add the options to a command.

    Args:
        parser: of the command.
        client: whose properties they are: producer or consumer.
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
        help=f"property of the {client} (see `kafka-fast config`); may be repeated",
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
    """Likewise, of a command that reads: to name a topic must not create it."""
    config = configuration(args, "consumer")
    if not is_given(config, "allow.auto.create.topics", "consumer"):
        config["allow.auto.create.topics"] = False
    return config


def is_given(config: Iterable[str], name: str, client: str) -> bool:
    """Whether the user has set a property, under whatever name."""
    return any(find_key(it, client).name == name for it in config)


def key_value(text: str) -> tuple[str, str]:
    """Return the parts of `KEY=VALUE`."""
    key, found, value = text.partition("=")
    if not found or not key:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, not {text!r}")
    return key, value
