"""`kafka-fast completion`: the words of the command line, for a shell. shtab writes the script."""

from __future__ import annotations

import argparse
import importlib

from kafka_fast.errors import MissingPackageError

SHELLS = ("bash", "zsh", "fish")

EXAMPLES = """examples:
  eval "$(kafka-fast completion bash)"                  in ~/.bashrc
  kafka-fast completion zsh > ~/.zfunc/_kafka-fast      a folder of $fpath
  kafka-fast completion fish > ~/.config/fish/completions/kafka-fast.fish
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in a shell",
        description="Print a script for a shell, which then completes commands, options and their "
        "values at the Tab key. Needs the package shtab: pip install shtab.",
        epilog=EXAMPLES,
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that is to read it")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from kafka_fast.cli.commands import commands_below, whole_parser  # which import this module

    try:
        shtab = importlib.import_module("shtab")
    except ImportError as error:
        raise MissingPackageError(
            "completion needs the package shtab: pip install shtab (the extra cli requires it)",
            package="shtab",
            extra="cli",
        ) from error
    parser = whole_parser()
    for command in commands_below(parser):
        for action in command._actions:
            if "FILE" in str(action.metavar or action.dest.upper()):
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # which shtab reads
    print(shtab.complete(parser, shell=args.shell))
    return 0
