"""What a command has found out or done, in the form that `--output` asks for.

    text     columns with spaces between them; what a pipe gets
    table    by the package rich, with colours on a terminal; what a terminal gets
    wide     the same with more columns; in a pipe as text
    json     one object, for programs
    yaml     the same object, by the package PyYAML

Without rich a table is text. Neither package is imported unless it is used.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import Any

from kafka_fast.cli.showing.standard_error import say
from kafka_fast.cli.showing.tables import ReportTable, print_rich, print_text
from kafka_fast.errors import BrokerError, KafkaError, MissingPackageError
from kafka_fast.values import Value

FORMS = ("text", "table", "wide", "json", "yaml")


class Report(Value):
    """What a command has to show."""

    document: Mapping[str, object]
    """For programs; its keys are documented, and stay."""
    table: ReportTable
    """For people."""
    errors: Mapping[Any, KafkaError] = {}
    """What has failed, by item; the rest was done."""
    noun: str = "topic"
    """What an item is, if it is a text."""
    when_empty: str = ""
    """Said in the place of a table without rows."""


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the option to a command."""
    parser.add_argument(
        "-o",
        "--output",
        choices=FORMS,
        help="wide: more columns; json, yaml: one object, for programs (default: table on a "
        "terminal, if the package rich is installed, and text elsewhere)",
    )


def show(report: Report, form: str | None) -> None:
    """Write a report to standard output.

    Args:
        report: what to write.
        form: a member of `FORMS`; None: what suits standard output.

    Raises:
        MissingPackageError: the package for YAML is not installed.
    """
    if form == "json":
        import json  # here and below: a table needs none

        print(json.dumps(_document(report)))  # in ASCII, for every encoding of the output
    elif form == "yaml":
        print(_yaml(_document(report)), end="")
    elif report.table.rows:
        table = report.table if form == "wide" else report.table.narrow()
        if _is_for_rich(form):
            print_rich(table)
        else:
            print_text(table)
    elif report.when_empty and not report.errors:
        say(report.when_empty)


def show_failure(error: Exception, message: str, form: str) -> None:
    """Write what a command that fails as a whole has to show: an object with this error alone.

    Args:
        error: why.
        message: its text.
        form: a member of `FORMS`; only those for programs show anything.
    """
    document = {"errors": [{"error": error_name(error), "message": message}]}
    if form == "json":
        import json

        print(json.dumps(document))
    elif form == "yaml":
        with suppress(MissingPackageError):  # which is most likely the error itself
            print(_yaml(document), end="")


def _document(report: Report) -> dict[str, object]:
    if not report.errors:
        return dict(report.document)
    return {
        **report.document,
        "errors": [
            {
                **_item(key, report.noun),
                "error": error_name(error),
                "message": str(error),
            }
            for key, error in report.errors.items()
        ],
    }


def error_name(error: Exception) -> str:
    """Return Kafka's constant of an error, or the class of any other one."""
    return error.name if isinstance(error, BrokerError) else type(error).__name__


def _item(key: Hashable, noun: str) -> dict[str, object]:
    if isinstance(key, tuple) and hasattr(key, "_asdict"):  # a TopicPartition, or more
        fields: dict[str, object] = key._asdict()
        return fields
    return {noun: key if isinstance(key, (str, int)) else str(key)}


def _yaml(document: Mapping[str, object]) -> str:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError as error:
        raise MissingPackageError(
            "--output yaml needs the package PyYAML: pip install PyYAML (the extra cli requires "
            "it)",
            package="PyYAML",
            extra="cli",
            name="yaml",
        ) from error
    import json

    # Through JSON, because PyYAML refuses tuples, and what is equal must look equal.
    plain = json.loads(json.dumps(document))
    text: str = yaml.safe_dump(plain, sort_keys=False, width=sys.maxsize)
    return text


def _is_for_rich(form: str | None) -> bool:
    if form == "text":
        return False
    is_screen = sys.stdout is not None and sys.stdout.isatty()
    return (is_screen or form == "table") and importlib.util.find_spec("rich") is not None
