"""`kafka-fast configs describe`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.operators.configs.kinds import (
    KINDS,
    add_resources,
    all_names,
    by_name,
    resources,
)
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.secret import HIDDEN

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import ConfigEntry, ConfigSynonym

EXAMPLES = """examples:
  kafka-fast configs describe topic orders
  kafka-fast configs describe broker 1 --all -o wide
  kafka-fast configs describe broker-defaults
  kafka-fast configs describe topic orders --all --setting retention.ms
"""

COLUMNS = (
    ReportColumn("NAME"),
    ReportColumn("SETTING"),
    ReportColumn("VALUE"),
    ReportColumn("SOURCE"),
    ReportColumn("TYPE", is_wide=True),
    ReportColumn("READ-ONLY", is_wide=True),
    ReportColumn("SYNONYMS", is_wide=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the resources, and which of their settings."""
    add_resources(parser, "only these, brokers by their ids; default: all")
    parser.add_argument(
        "-a", "--all", action="store_true", help="also what is set nowhere, or for all"
    )
    parser.add_argument(
        "--setting",
        metavar="KEY",
        action="append",
        default=[],
        help="only this setting; may be repeated",
    )


def run(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the settings that were asked for."""
    names = args.name or all_names(admin, args.kind)
    described = admin.describe_configs(resources(args.kind, names), include_synonyms=True)
    shown = [
        (
            resource.name or args.kind,
            [configs[key] for key in sorted(configs) if _is_meant(configs[key], args)],
        )
        for resource, configs in described.succeeded.items()
    ]
    return Report(
        document={
            "kind": args.kind,
            "resources": [
                {"name": name, "configs": [_entry(one) for one in ones]} for name, ones in shown
            ],
        },
        table=ReportTable(COLUMNS, [_row(name, one) for name, ones in shown for one in ones]),
        errors=by_name(described.errors, args.kind),
        noun="name",
        when_empty="nothing is set there" if not args.all else "there is no such setting",
    )


def _is_meant(entry: ConfigEntry, args: argparse.Namespace) -> bool:
    if args.setting and entry.name not in args.setting:
        return False
    return bool(args.all) or entry.source.name in KINDS[args.kind].sources


def _row(name: str, entry: ConfigEntry) -> tuple[object, ...]:
    return (
        name,
        entry.name,
        HIDDEN if entry.is_sensitive else entry.value,
        entry.source.name,
        entry.type.name,
        entry.is_read_only,
        " ".join(map(_synonym, entry.synonyms)) or None,
    )


def _synonym(synonym: ConfigSynonym) -> str:
    value = HIDDEN if synonym.value is None else synonym.value
    return f"{synonym.source.name}:{synonym.name}={value}"


def _entry(entry: ConfigEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name,
        "type": entry.type.name,
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "synonyms": [
            {"name": one.name, "value": one.value, "source": one.source.name}
            for one in entry.synonyms
        ],
    }


DESCRIBE = Verb(
    "describe",
    help="what is set; --all: also what is not",
    description="Show the settings that somebody has made for topics, brokers and others, or with "
    "--all every setting. Changes nothing.",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
    asks_controllers=True,
)
