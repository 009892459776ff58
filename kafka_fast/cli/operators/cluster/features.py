"""`kafka-fast cluster features`, `upgrade`, `downgrade` and `disable`: levels of features."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.nouns import Verb
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import UsageError

if TYPE_CHECKING:
    from kafka_fast import Admin

FEATURE_COLUMNS = (
    ReportColumn("FEATURE"),
    ReportColumn("LEVEL", is_number=True),
    ReportColumn("POSSIBLE"),
    ReportColumn("EPOCH", is_number=True, is_wide=True),
)
CHANGE_COLUMNS = (
    ReportColumn("FEATURE"),
    ReportColumn("BEFORE", is_number=True),
    ReportColumn("LEVEL", is_number=True),
    ReportColumn("OUTCOME"),
)

OF_UPGRADE = """examples:
  kafka-fast cluster features
  kafka-fast cluster upgrade metadata.version=29 --dry-run
  kafka-fast cluster upgrade kraft.version=1
"""
OF_DOWNGRADE = """examples:
  kafka-fast cluster downgrade metadata.version=25 --dry-run
"""
OF_DISABLE = """examples:
  kafka-fast cluster disable streams.version
"""

_LEVEL = re.compile(r"([^=\s]+)=([0-9]{1,5})", re.ASCII)
_HIGHEST = 2**15 - 1


def add_nothing(parser: argparse.ArgumentParser) -> None:
    """Add no argument."""


def features(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the levels of features."""
    told = admin.describe_features()
    entries = []
    for name in sorted({*told.finalized, *told.supported}):
        level, possible = told.finalized.get(name), told.supported.get(name)
        entries.append(
            {
                "feature": name,
                "level": level.max_version_level if level else None,
                "min_possible": possible.min_version if possible else None,
                "max_possible": possible.max_version if possible else None,
            }
        )
    return Report(
        document={"epoch": told.finalized_epoch, "features": entries},
        table=ReportTable(
            FEATURE_COLUMNS,
            [
                (
                    entry["feature"],
                    entry["level"],
                    None
                    if entry["min_possible"] is None
                    else f"{entry['min_possible']} to {entry['max_possible']}",
                    told.finalized_epoch,
                )
                for entry in entries
            ],
        ),
        when_empty="the cluster has no features",
    )


# ---- changes ----


def _add_levels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "level",
        nargs="+",
        metavar="FEATURE=LEVEL",
        type=_level,
        help="the level that a feature is to have; cluster features shows those that are possible",
    )


def _add_downgrade(parser: argparse.ArgumentParser) -> None:
    _add_levels(parser)
    _add_unsafe(parser)


def _add_disable(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("feature", nargs="+", help="its name")
    _add_unsafe(parser)


def _add_unsafe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--unsafe", action="store_true", help="even if metadata are lost that nothing brings back"
    )


def _level(text: str) -> tuple[str, int]:
    match = _LEVEL.fullmatch(text)
    if match is None or int(match[2]) > _HIGHEST:
        raise argparse.ArgumentTypeError(
            f"expected FEATURE=LEVEL, such as metadata.version=25, not {text!r}"
        )
    return match[1], int(match[2])


def upgrade(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Raise levels; ask first, because few of them can be lowered again."""
    return _change(admin, args, _each_once(args.level), "UPGRADE", "upgraded")


def downgrade(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Lower levels; ask first."""
    return _change(admin, args, _each_once(args.level), _downgrade_type(args), "downgraded")


def disable(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Lower levels to 0; ask first."""
    levels = dict.fromkeys(args.feature, 0)
    return _change(admin, args, levels, _downgrade_type(args), "disabled")


def _each_once(pairs: list[tuple[str, int]]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for name, level in pairs:
        if name in levels:
            raise UsageError(f"feature {name} is named twice")
        levels[name] = level
    return levels


def _downgrade_type(args: argparse.Namespace) -> str:
    return "UNSAFE_DOWNGRADE" if args.unsafe else "SAFE_DOWNGRADE"


def _change(
    admin: Admin, args: argparse.Namespace, levels: Mapping[str, int], kind: str, outcome: str
) -> Report | None:
    """Give features other levels; with --dry-run the cluster checks whether that is possible."""
    from kafka_fast.admin import FeatureUpdate, UpgradeType

    finalized = admin.describe_features().finalized
    before = {
        name: finalized[name].max_version_level if name in finalized else None for name in levels
    }
    rows = [(name, before[name], level) for name, level in levels.items()]
    if not args.dry_run and not is_confirmed(
        args,
        "change the levels of features, which cannot always be taken back?",
        ReportTable(CHANGE_COLUMNS[:-1], rows),
    ):
        return None
    result = admin.update_features(
        {name: FeatureUpdate(level, UpgradeType[kind]) for name, level in levels.items()},
        validate_only=args.dry_run,
    )
    done = [row for row in rows if row[0] in result.succeeded]
    return Report(
        document={
            "dry_run": args.dry_run,
            "features": [
                {"feature": name, "before": was, "level": level, "outcome": outcome}
                for name, was, level in done
            ],
        },
        table=ReportTable(
            CHANGE_COLUMNS,
            [(*row, outcome_text(outcome, is_dry_run=args.dry_run)) for row in done],
        ),
        errors=result.errors,
        noun="feature",
    )


FEATURES = Verb(
    "features",
    help="the levels of the cluster's features, such as metadata.version",
    description="Show the levels of features that the cluster has, and those that a "
    "broker could have. Needs Kafka 2.7. Changes nothing.",
    add_arguments=add_nothing,
    run=features,
    asks_controllers=True,
)
UPGRADE = Verb(
    "upgrade",
    help="raise the levels of features, such as metadata.version",
    description="Raise the levels of features: all that are named, or none. On a terminal it asks, "
    "elsewhere it needs --yes. Needs Kafka 2.7; --dry-run needs Kafka 3.3.",
    add_arguments=_add_levels,
    run=upgrade,
    examples=OF_UPGRADE,
    changes=True,
    asks=True,
    asks_controllers=True,
)
DOWNGRADE = Verb(
    "downgrade",
    help="lower the levels of features",
    description="Lower the levels of features: all that are named, or none. On a terminal it asks, "
    "elsewhere it needs --yes. Needs Kafka 2.7; --dry-run needs Kafka 3.3.",
    add_arguments=_add_downgrade,
    run=downgrade,
    examples=OF_DOWNGRADE,
    changes=True,
    asks=True,
    asks_controllers=True,
)
DISABLE = Verb(
    "disable",
    help="switch features off",
    description="Lower the levels of features to 0, which switches them off. On a terminal it "
    "asks, elsewhere it needs --yes. Needs Kafka 2.7; --dry-run needs Kafka 3.3.",
    add_arguments=_add_disable,
    run=disable,
    examples=OF_DISABLE,
    changes=True,
    asks=True,
    asks_controllers=True,
)
