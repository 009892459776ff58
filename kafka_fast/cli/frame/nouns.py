"""A noun of the command line, such as `topics`, and the verbs that stand behind it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from kafka_fast.cli.connection import add_connection, configuration, is_given
from kafka_fast.cli.frame.asking import add_yes, check_can_ask
from kafka_fast.cli.showing.reports import Report, add_output, show
from kafka_fast.cli.showing.standard_error import say
from kafka_fast.errors import ConfigError, UsageError
from kafka_fast.values import Value

if TYPE_CHECKING:
    from kafka_fast import Admin

_FAILED = 1
_VERBOSE = re.compile(r"-v+|--verbose")

Run: TypeAlias = "Callable[[Admin, argparse.Namespace], Report | None]"
"""Does what a verb says; None: the user was asked, and has said no."""

AddParser: TypeAlias = "Callable[[argparse._SubParsersAction[argparse.ArgumentParser]], None]"
"""Adds a command to those that a parser has."""


def _always(_args: argparse.Namespace) -> bool:
    return True


class Verb(Value):
    """One command of a noun."""

    name: str
    help: str
    """Its line in the help of the noun."""
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    """Adds what this verb takes, beside what all have."""
    run: Run
    examples: str = ""
    """Lines for the end of its help."""
    changes: bool = False
    """Whether it changes the cluster, and so has --dry-run."""
    asks: bool = False
    """Whether that cannot be undone: it asks on a terminal, and elsewhere needs --yes.

    Only a verb that `changes` something asks: --dry-run answers the question, too.
    """
    asks_when: Callable[[argparse.Namespace], bool] = _always
    """Whether these arguments are such that a verb that `asks` has something to ask."""
    takes_settings: bool = False
    """Whether `--config KEY=VALUE` is a setting of what it creates or alters (`args.settings`)."""
    asks_controllers: bool = False
    """Whether controllers can be asked, too (KIP-919): it takes no node for a broker."""


class Noun(Value):
    """What an operator looks after, with what can be done about it."""

    name: str
    help: str
    """Its line in the help of `kafka-fast`."""
    description: str
    verbs: tuple[Verb, ...]
    default: str | None = None
    """The verb that is meant if none is named."""
    also: Mapping[str, AddParser] = {}
    """Commands of their own that stand behind the noun, too: `groups lag` is `lag`."""

    def add_parser(self, commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        """Add the noun and its verbs to the parser."""
        parser = commands.add_parser(self.name, help=self.help, description=self.description)
        verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
        for verb in self.verbs:
            add_verb(verbs, verb)
        for add_parser in self.also.values():
            add_parser(verbs)

    def with_verb(self, argv: Sequence[str]) -> list[str]:
        """Return the arguments behind the noun, with the verb that is meant.

        Raises:
            UsageError: a verb stands behind something else, or is written as an option.
        """
        arguments = list(argv)
        place = 0
        while place < len(arguments) and _VERBOSE.fullmatch(arguments[place]):
            place += 1
        first = arguments[place] if place < len(arguments) else ""
        names = [*(verb.name for verb in self.verbs), *self.also]
        if first in names or first in ("-h", "--help"):
            return arguments
        if first.removeprefix("--") in names:
            raise UsageError(f"use: kafka-fast {self.name} {first.removeprefix('--')}")
        if self.default is None:
            return arguments
        for before, text in zip(arguments[place:], arguments[place + 1 :], strict=False):
            if text in names and not before.startswith("-"):
                raise UsageError(
                    f"{text} is a command: use kafka-fast {self.name} {text} ..., or say "
                    f"kafka-fast {self.name} {self.default} ... if it is a name"
                )
        return [*arguments[:place], self.default, *arguments[place:]]


def add_verb(verbs: argparse._SubParsersAction[argparse.ArgumentParser], verb: Verb) -> None:
    """Add a verb to those of a noun, or to the commands if it needs no noun."""
    parser = verbs.add_parser(
        verb.name, help=verb.help, description=verb.description, epilog=verb.examples or None
    )
    verb.add_arguments(parser)
    add_output(parser)
    if verb.changes:
        parser.add_argument(
            "--dry-run", action="store_true", help="change nothing: show what would be done"
        )
    if verb.asks:
        add_yes(parser)
    add_connection(
        parser,
        "admin",
        takes_settings=verb.takes_settings,
        asks_controllers=verb.asks_controllers,
    )
    parser.set_defaults(run=lambda args: _run(verb, args))


def _run(verb: Verb, args: argparse.Namespace) -> int:
    """Run a verb, show its report, name what has failed; return the exit status."""
    from kafka_fast import Admin

    if verb.asks and verb.asks_when(args):
        check_can_ask(args)
    config = configuration(args, "admin")
    if not verb.asks_controllers and is_given(config, "bootstrap.controllers"):
        raise ConfigError(
            "bootstrap.controllers: this command asks brokers; give bootstrap.servers"
        )
    with Admin(config) as admin:
        report = verb.run(admin, args)
    if report is None:
        return _FAILED
    show(report, args.output)
    for error in report.errors.values():
        say(str(error))
    if verb.changes and args.dry_run:
        say("nothing was changed: --dry-run")
    return _FAILED if report.errors else 0
