"""`kafka-fast config`: the properties that this version knows."""

from __future__ import annotations

import argparse
import re

from kafka_fast.cli.connection import add_properties, properties
from kafka_fast.config import (
    KEYS,
    Config,
    as_written,
    find_key,
    normalize,
    own_key,
    reference_entry,
    reference_page,
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "config",
        help="list properties and their defaults",
        description="List the properties of a client with their defaults, as a file of "
        "properties, or print all about those that are named. With --config or -X: list what a "
        "client gets; secrets are shown as ****.",
    )
    parser.add_argument("name", nargs="*", help="print all about these, in any client's spelling")
    parser.add_argument(
        "--client",
        choices=("producer", "consumer", "admin"),
        default="producer",
        help="whose (default %(default)s)",
    )
    parser.add_argument(
        "--markdown", action="store_true", help="print the reference page of all clients"
    )
    add_properties(parser, "the client")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the page, or the properties named, or the list."""
    if args.markdown:
        print(reference_page(), end="")
    elif args.name:
        keys = [own_key(name) or find_key(name, args.client) for name in args.name]
        print("\n".join(_plain(reference_entry(key)) for key in keys), end="")
    else:
        _print_list(normalize(properties(args, args.client), client=args.client))
    return 0


def _plain(markdown: str) -> str:
    """Return an entry of the reference page as text."""
    without_links = re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", markdown)
    return without_links.removeprefix("### ").replace("`", "").replace("**", "")


def _print_list(config: Config) -> None:
    """Print the supported properties of one client as a file of properties."""
    for key in KEYS.values():
        if key.name in config and not (key.pending or key.ignored):
            print(f"{key.name}={as_written(key, config[key.name])}")
