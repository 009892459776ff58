"""`kafka-fast check`: which step of connecting fails, why, and what to do about it."""

from __future__ import annotations

import argparse
import json
import math

from kafka_fast.cli.check.facts import as_facts
from kafka_fast.cli.check.screen import screen
from kafka_fast.cli.check.verdict import is_well
from kafka_fast.cli.connection import add_connection, configuration
from kafka_fast.config import consumer_settings, warn_of_weakness
from kafka_fast.net.probe import probe_cluster

TIMEOUT = 10.0
"""Seconds for each step, unless the user says otherwise."""

EXAMPLES = """examples:
  kafka-fast check -b broker:9092
  kafka-fast check --config client.properties
  kafka-fast check -b broker:9093 --ca ca.pem --timeout 2 -o json | jq .ok
"""

_FAILED = 1


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "check",
        help="find out why a client does not connect",
        description="Take each step of a client that connects, to each bootstrap server and to "
        "each broker that these name: DNS, TCP, TLS, ApiVersions, SASL, Metadata. Say which one "
        "fails, and what to do. Reads and changes nothing. The exit status is 0 if all is well.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=TIMEOUT,
        help=f"the longest that one step may take (default {TIMEOUT:g})",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="json: one object, for programs (default %(default)s)",
    )
    add_connection(parser, "consumer")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what was found; return 1 if a client could not work with all of it."""
    settings = consumer_settings(configuration(args, "consumer"))
    warn_of_weakness(settings.tls)
    probe = probe_cluster(settings, args.timeout)
    if args.output == "json":
        print(json.dumps(as_facts(probe, settings)))  # in ASCII, for every encoding of the output
    else:
        print("\n".join(screen(probe, settings)))
    return 0 if is_well(probe) else _FAILED


def _seconds(text: str) -> float:
    """Return a time as a number above 0."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"expected seconds above 0, not {text!r}")
    return seconds
