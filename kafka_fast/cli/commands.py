"""The table of commands, and the parser that is made of it.

A command's module is imported when it is run: `kafka-fast topics` loads no consumer.
"""

from __future__ import annotations

import argparse
import importlib
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from kafka_fast import __version__

if TYPE_CHECKING:
    from kafka_fast.cli.frame.nouns import Noun

COMMANDS = {
    "produce": "kafka_fast.cli.records.produce",
    "consume": "kafka_fast.cli.records.consume",
    "topics": "kafka_fast.cli.operators.topics",
    "records": "kafka_fast.cli.operators.records",
    "groups": "kafka_fast.cli.operators.groups",
    "configs": "kafka_fast.cli.operators.configs",
    "txn": "kafka_fast.cli.operators.transactions",
    "acls": "kafka_fast.cli.operators.access.acls",
    "users": "kafka_fast.cli.operators.access.users",
    "quotas": "kafka_fast.cli.operators.access.quotas",
    "tokens": "kafka_fast.cli.operators.access.tokens",
    "cluster": "kafka_fast.cli.operators.cluster",
    "elect": "kafka_fast.cli.operators.elect",
    "reassign": "kafka_fast.cli.operators.reassign",
    "lag": "kafka_fast.cli.lag",
    "check": "kafka_fast.cli.check",
    "broker": "kafka_fast.cli.broker",
    "config": "kafka_fast.cli.config",
    "info": "kafka_fast.cli.info",
    "completion": "kafka_fast.cli.completion",
}
"""Command -> its module, which has `add_parser`; in the order of the help.

A module that also has a `NOUN` is one whose verbs may be left out.
"""

STATUSES = """kafka-fast COMMAND --help tells of its options, with examples.

exit status:
  0    all was done
  1    something was not: records not delivered, no broker reached, a file missing
  2    the arguments or the configuration are wrong
  130  Ctrl-C (143: SIGTERM)
"""

WIDTH = 78


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return what the arguments say; `run` of it does the work.

    Raises:
        UsageError: a verb does not stand where it belongs.
        SystemExit: the arguments are wrong, or ask for help.
    """
    place = next((at for at, text in enumerate(argv) if not text.startswith("-")), None)
    if place is None or argv[place] not in COMMANDS:
        return whole_parser().parse_args(argv)
    module = importlib.import_module(COMMANDS[argv[place]])
    noun: Noun | None = getattr(module, "NOUN", None)
    rest = argv[place + 1 :] if noun is None else noun.with_verb(argv[place + 1 :])
    return _parser([module]).parse_args([*argv[: place + 1], *rest])


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    return _parser(importlib.import_module(name) for name in COMMANDS.values())


def _parser(modules: Iterable[ModuleType]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-fast",
        description="An Apache Kafka client on the command line.",
        epilog=STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"kafka-fast {__version__}")
    _add_verbose(parser, default=0)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in modules:
        module.add_parser(commands)
    for command in commands_below(parser):
        _add_verbose(command, default=argparse.SUPPRESS)  # keeps a -v before the command
        if command.epilog:  # the epilog has examples, whose lines must not be wrapped
            command.formatter_class = argparse.RawDescriptionHelpFormatter
            command.description = textwrap.fill(command.description or "", WIDTH)
    return parser


def commands_below(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers of commands and of their verbs."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from commands_below(command)


def _add_verbose(parser: argparse.ArgumentParser, default: object) -> None:
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=default,
        help="log what the client does to standard error; twice: everything",
    )
