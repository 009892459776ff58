"""`kafka-fast topics alter`: change settings of topics."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.configs.alteration import altered, set_or_deleted
from kafka_fast.cli.showing.reports import Report

if TYPE_CHECKING:
    from kafka_fast import Admin

EXAMPLES = """examples:
  kafka-fast topics alter orders --config retention.ms=86400000
  kafka-fast topics alter orders audit --delete-config retention.ms --dry-run
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names, and what is deleted; --config is added to all verbs."""
    parser.add_argument("topic", nargs="+", help="its name")
    parser.add_argument(
        "--delete-config",
        metavar="KEY",
        action="append",
        default=[],
        help="let a setting go back to its default; may be repeated",
    )


def run(admin: Admin, args: argparse.Namespace) -> Report:
    """Change the settings."""
    changes = set_or_deleted(args.settings.items(), args.delete_config)
    return altered(admin, args, "topic", args.topic, changes, noun="topic")


ALTER = Verb(
    "alter",
    help="change settings of topics",
    description="Change single settings of topics: --config KEY=VALUE sets one. What "
    "kafka-fast configs alter topic does, too. Needs Kafka 2.3.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    changes=True,
    takes_settings=True,
)
