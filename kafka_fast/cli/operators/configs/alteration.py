"""`kafka-fast configs alter`, and the same for topics: change single settings."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast.cli.connection import key_value
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.configs.kinds import DEFAULTS, add_resources, by_name, resources
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import UsageError
from kafka_fast.secret import Secret

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import AlterConfigOp

EXAMPLES = """examples:
  kafka-fast configs alter topic orders --set retention.ms=86400000
  kafka-fast configs alter topic orders --delete retention.ms --dry-run
  kafka-fast configs alter broker-defaults --set log.cleaner.threads=2
  kafka-fast configs alter broker 1 --set-from ssl.keystore.password=secret.txt
  kafka-fast configs alter broker-logger 1 --set kafka.server.KafkaApis=DEBUG
"""

_LIKE_SECRETS = re.compile(r"password|secret|\.jaas\.config$|keystore\.key$", re.IGNORECASE)
"""Names of settings that no argument may hold."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the resources, and the changes."""
    add_resources(parser, "their names; of brokers their ids; of broker-defaults nothing")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        type=key_value,
        action="append",
        default=[],
        help="set it; may be repeated",
    )
    parser.add_argument(
        "--set-from",
        metavar="KEY=FILE",
        type=key_value,
        action="append",
        default=[],
        help="set it to the text of a file, less its last line feed: for passwords; may be "
        "repeated",
    )
    parser.add_argument(
        "--delete",
        metavar="KEY",
        action="append",
        default=[],
        help="let it go back to its default; may be repeated",
    )
    parser.add_argument(
        "--append",
        metavar="KEY=VALUES",
        type=key_value,
        action="append",
        default=[],
        help="add values to a list; may be repeated",
    )
    parser.add_argument(
        "--subtract",
        metavar="KEY=VALUES",
        type=key_value,
        action="append",
        default=[],
        help="remove values from a list; may be repeated",
    )


def run(admin: Admin, args: argparse.Namespace) -> Report:
    """Make the changes."""
    if not args.name and args.kind != DEFAULTS:
        raise UsageError(f"say which: kafka-fast configs alter {args.kind} NAME ...")
    return altered(admin, args, args.kind, args.name, _changes(args))


def altered(
    admin: Admin,
    args: argparse.Namespace,
    kind: str,
    names: Iterable[str],
    changes: list[AlterConfigOp],
    noun: str = "name",
) -> Report:
    """Make the same changes to several resources; return what became of each.

    Args:
        admin: the client.
        args: of the command, with `dry_run`.
        kind: of the resources.
        names: of the resources.
        changes: of single settings.
        noun: the key of a name in the report.

    Raises:
        UsageError: there is no change, or two of the same setting.
    """
    keys = [change.name for change in changes]
    for key in keys:
        if keys.count(key) > 1:
            raise UsageError(f"{key} is given twice")
    if not changes:
        raise UsageError("say what is to become of which settings")
    result = admin.incremental_alter_configs(
        dict.fromkeys(resources(kind, names), changes), validate_only=args.dry_run
    )
    entries = [
        {noun: resource.name or kind, "outcome": "altered", "configs": sorted(keys)}
        for resource in result.succeeded
    ]
    text = outcome_text("altered", is_dry_run=args.dry_run)
    head = {"kind": kind} if noun == "name" else {}
    return Report(
        document={
            "dry_run": args.dry_run,
            **head,
            "resources" if noun == "name" else f"{noun}s": entries,
        },
        table=ReportTable(
            (ReportColumn(noun.upper()), ReportColumn("SETTINGS"), ReportColumn("OUTCOME")),
            [(entry[noun], entry["configs"], text) for entry in entries],
        ),
        errors=by_name(result.errors, kind),
        noun=noun,
    )


def set_or_deleted(
    values: Iterable[tuple[str, str | Secret]], deleted: Iterable[str]
) -> list[AlterConfigOp]:
    """Return the changes that set these values, and that delete others.

    Raises:
        UsageError: a value is a secret, and stands among the arguments.
    """
    from kafka_fast.admin import AlterConfigOp, AlterConfigOpType

    changes = []
    for key, value in values:
        if _LIKE_SECRETS.search(key) and not isinstance(value, Secret):
            raise UsageError(
                f"every user of this machine sees the arguments of a command: put {key} into a "
                f"file, and use kafka-fast configs alter ... --set-from {key}=FILE"
            )
        changes.append(AlterConfigOp(key, value))
    return changes + [AlterConfigOp(key, None, AlterConfigOpType.DELETE) for key in deleted]


def _changes(args: argparse.Namespace) -> list[AlterConfigOp]:
    from kafka_fast.admin import AlterConfigOp, AlterConfigOpType

    read = [(key, _text_of(name)) for key, name in args.set_from]
    return [
        *set_or_deleted([*args.set, *read], args.delete),
        *(AlterConfigOp(key, value, AlterConfigOpType.APPEND) for key, value in args.append),
        *(AlterConfigOp(key, value, AlterConfigOpType.SUBTRACT) for key, value in args.subtract),
    ]


def _text_of(name: str) -> Secret:
    from pathlib import Path  # takes 3 ms, for which every command on topics would wait

    try:
        return Secret(Path(name).read_text(encoding="utf-8").removesuffix("\n"))
    except UnicodeDecodeError:  # its text would show a part of the secret
        raise UsageError(f"{name} is no text in UTF-8") from None


ALTER = Verb(
    "alter",
    help="set, delete, append to or subtract from single settings",
    description="Change single settings of topics, brokers and others. Other settings stay. With "
    "--dry-run the brokers only check the changes. Needs Kafka 2.3.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    changes=True,
    asks_controllers=True,
)
