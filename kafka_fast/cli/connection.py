"""The options of commands that connect, and the configuration that they make.

--config FILE  <  -X KEY=VALUE, --bootstrap and the options of `secure_connection`
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_fast.cli.secure_connection import add_secure_connection, canonical, secured
from kafka_fast.config import conceal, read_properties
from kafka_fast.errors import ConfigError

DEFAULT_BOOTSTRAP = "localhost:9092"

_ADDRESSES = {"bootstrap": "bootstrap.servers", "controllers": "bootstrap.controllers"}
"""The options that say whom to ask, each in place of the other."""

_OF_BYTES = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer")
"""What a file may have for other programs: the commands read and write the records' own bytes."""


_SETTING = re.compile(r"[A-Za-z][\w.-]*=.*", re.DOTALL)
"""What is a setting and no file's name; a file of such a name is given as ./name."""


class _FileOrSetting(argparse.Action):
    """`--config FILE` of a client, and `--config KEY=VALUE` as Kafka's scripts take it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Keep the file, or add the setting to `settings`."""
        if not _SETTING.fullmatch(str(values)):
            setattr(namespace, self.dest, values)
            return
        name, value = key_value(str(values))
        if name in namespace.settings:
            parser.error(f"{name} is given twice")
        namespace.settings = {**namespace.settings, name: value}


def add_connection(
    parser: argparse.ArgumentParser,
    client: str,
    *,
    takes_settings: bool = False,
    asks_controllers: bool = False,
) -> None:
    """Add the options to a command.

    Args:
        parser: the command's parser.
        client: the client that the properties are for: producer, consumer or admin.
        takes_settings: whether `--config KEY=VALUE` is one of the `settings` of what is created.
        asks_controllers: whether the command may ask controllers in place of brokers.
    """
    parser.add_argument(
        "-b",
        "--bootstrap",
        metavar="HOST:PORT",
        help=f"brokers, with commas (default {DEFAULT_BOOTSTRAP})",
    )
    if asks_controllers:
        parser.add_argument(
            "--controllers",
            metavar="HOST:PORT",
            help="controllers of the quorum, with commas, in place of brokers",
        )
    noun = "admin client" if client == "admin" else client
    whose = f"the {noun} (kafka-fast config --client {client} lists them)"
    add_properties(parser, whose, takes_settings=takes_settings)
    add_secure_connection(parser)


def add_properties(
    parser: argparse.ArgumentParser, of: str, *, takes_settings: bool = False
) -> None:
    """Add the options for properties.

    Args:
        parser: the command's parser.
        of: whose properties, in words.
        takes_settings: as in `add_connection`.
    """
    about = "file of properties, such as a Java client has; what else is given wins"
    if takes_settings:
        parser.set_defaults(settings={})
        parser.add_argument(
            "--config",
            metavar="KEY=VALUE|FILE",
            action=_FileOrSetting,
            help="a setting of the topic, such as retention.ms=1000; may be repeated. Or a "
            f"{about}",
        )
    else:
        parser.add_argument("--config", metavar="FILE", help=about)
    parser.add_argument(
        "-X",
        "--property",
        dest="properties",
        metavar="KEY=VALUE",
        type=key_value,
        action="append",
        default=[],
        help=f"property of {of}; may be repeated. Other users of this machine can see it: a "
        "password belongs into a file",
    )


def configuration(args: argparse.Namespace, client: str) -> dict[str, object]:
    """Return the client's configuration from the arguments; secrets in it hide themselves.

    Raises:
        ConfigError: a property is unknown, or is given twice.
        OSError: a file cannot be read.
    """
    config = properties(args, client)
    addresses = {name: getattr(args, option, None) for option, name in _ADDRESSES.items()}
    for option, name in _ADDRESSES.items():
        whom = addresses[name]
        if whom is None:
            continue
        if any(value != whom for value in _given(args, name)):
            raise ConfigError(f"{name} is given twice: by --{option} and by -X")
        config = _replaced(config, {name: whom})
        for other, also in addresses.items():  # the file's, in place of which this is given
            if other != name and also is None and not _given(args, other):
                config = {key: config[key] for key in config if canonical(key) != other}
    if not any(is_given(config, name) for name in addresses):
        config["bootstrap.servers"] = DEFAULT_BOOTSTRAP
    return secured(args, config)


def properties(args: argparse.Namespace, client: str) -> dict[str, object]:
    """Return what `--config` and `-X` give; secrets hide themselves.

    Raises:
        ConfigError: a property is given twice.
        OSError: the file cannot be read.
    """
    of_options: dict[str, object] = {}
    for name, value in args.properties:
        if of_options.setdefault(name, value) != value:
            raise ConfigError(f"{name} is given twice with different values")
    of_options = conceal(of_options, client)
    if args.config is None:
        return of_options
    of_file = conceal(read_properties(args.config), client)
    return _replaced({key: of_file[key] for key in of_file if not _is_of_bytes(key)}, of_options)


def reader_configuration(args: argparse.Namespace) -> dict[str, object]:
    """Return the configuration of a command that reads, and so must not create topics."""
    config = configuration(args, "consumer")
    if not is_given(config, "allow.auto.create.topics"):
        config["allow.auto.create.topics"] = False
    return config


def is_given(config: Iterable[str], name: str) -> bool:
    """Whether the user has set a property, under any of its names."""
    return any(canonical(key) == name for key in config)


def group_id(config: dict[str, object], name: str | None) -> str | None:
    """Return the group that the command line names, and take it out of the configuration.

    Args:
        config: may name the group as well.
        name: value of the command's own argument; None: not given.

    Raises:
        ConfigError: the two name different groups.
    """
    group_ids = [config.pop(key) for key in list(config) if is_given([key], "group.id")]
    names = dict.fromkeys(text for text in (name, *group_ids) if text is not None)
    if len(names) > 1:
        raise ConfigError(f"group.id is given twice: {' and '.join(map(repr, names))}")
    return str(next(iter(names))) if names else None


def key_value(text: str) -> tuple[str, str]:
    """Return the parts of `KEY=VALUE`."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, not {text!r}")
    return key, value


def _given(args: argparse.Namespace, name: str) -> list[str]:
    return [value for key, value in args.properties if canonical(key) == name]


def _is_of_bytes(name: str) -> bool:
    return canonical(name) in _OF_BYTES


def _replaced(config: Mapping[str, object], by: Mapping[str, Any]) -> dict[str, object]:
    """Return a configuration in which some properties are replaced, under any of their names."""
    names = {canonical(name) for name in by}
    return {**{key: config[key] for key in config if canonical(key) not in names}, **by}
