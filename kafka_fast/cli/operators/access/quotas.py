"""`kafka-fast quotas`: how much users, clients and addresses may do."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafka_fast.admin import ClientQuotaEntity, ClientQuotaFilter, ClientQuotaName
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.nouns import Noun, Verb
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import UsageError

if TYPE_CHECKING:
    from kafka_fast import Admin

OF_LIST = """examples:
  kafka-fast quotas list
  kafka-fast quotas list --user alice            also of single clients of hers
  kafka-fast quotas list --client-id any -o json
"""
OF_SET = """examples:
  kafka-fast quotas set --user alice producer_byte_rate=1048576
  kafka-fast quotas set --user default --client-id etl consumer_byte_rate=5e6
  kafka-fast quotas set --ip 10.0.0.7 connection_creation_rate=10
  kafka-fast quotas set --user alice --delete producer_byte_rate
"""

QUOTA_COLUMNS = (
    ReportColumn("USER"),
    ReportColumn("CLIENT ID"),
    ReportColumn("IP"),
    ReportColumn("QUOTA"),
    ReportColumn("VALUE", is_number=True),
)
CHANGE_COLUMNS = (*QUOTA_COLUMNS, ReportColumn("OUTCOME"))

_SPECIAL = {"default": ClientQuotaName.DEFAULT, "any": ClientQuotaName.ANY}


# ---- arguments ----


def _add_entity(parser: argparse.ArgumentParser, special: str) -> None:
    parser.add_argument("--user", metavar="NAME", help=f"a user's name; {special}")
    parser.add_argument("--client-id", metavar="NAME", help="a client.id; words as above")
    parser.add_argument(
        "--ip", metavar="ADDRESS", help="where connections come from; words as above (Kafka 2.8)"
    )


def _add_list(parser: argparse.ArgumentParser) -> None:
    _add_entity(parser, "default: that of all others; any: each of them")
    parser.add_argument(
        "--only", action="store_true", help="leave out quotas that limit something else as well"
    )


def _add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "quota",
        nargs="*",
        metavar="NAME=VALUE",
        type=_quota,
        help="producer_byte_rate, consumer_byte_rate, request_percentage, "
        "controller_mutation_rate, connection_creation_rate",
    )
    _add_entity(parser, "default: all that have no quota of their own")
    parser.add_argument(
        "--delete",
        metavar="NAME",
        action="append",
        default=[],
        help="a quota that is removed; may be repeated",
    )


def _quota(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not name or not math.isfinite(number):
        raise argparse.ArgumentTypeError(
            f"expected NAME=NUMBER, such as producer_byte_rate=1048576, not {text!r}"
        )
    return name, number


def _names(args: argparse.Namespace) -> dict[str, str | ClientQuotaName]:
    named = {"user": args.user, "client_id": args.client_id, "ip": args.ip}
    return {kind: _SPECIAL.get(name, name) for kind, name in named.items() if name is not None}


# ---- the commands ----


def list_quotas(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the quotas that match."""
    names = _names(args)
    if args.only and not names:
        raise UsageError("--only needs something beside it: --user, --client-id or --ip")
    quotas = admin.describe_client_quotas(ClientQuotaFilter(**names, strict=args.only))
    shown = sorted(quotas.items(), key=lambda pair: str(pair[0]))
    return Report(
        document={"quotas": [{**_entity(one), "values": values} for one, values in shown]},
        table=ReportTable(
            QUOTA_COLUMNS,
            [
                (*_entity(one).values(), name, _number(value))
                for one, values in shown
                for name, value in sorted(values.items())
            ],
        ),
        when_empty="there is no such quota",
    )


def set_quotas(admin: Admin, args: argparse.Namespace) -> Report:
    """Set and remove quotas of one entity."""
    names = _names(args)
    if not names:
        raise UsageError("say whose quotas: --user, --client-id or --ip, or default for a name")
    if ClientQuotaName.ANY in names.values():
        raise UsageError("any is for list: name one, or default for all that have none of theirs")
    values = _values(args)
    entity = ClientQuotaEntity(names.get("user"), names.get("client_id"), names.get("ip"))
    errors = admin.alter_client_quotas({entity: values}, validate_only=args.dry_run).errors
    done: Mapping[str, float | None] = {} if errors else values
    outcomes = {name: "deleted" if value is None else "set" for name, value in done.items()}
    return Report(
        document={
            "dry_run": args.dry_run,
            "quotas": [
                {**_entity(entity), "quota": name, "value": value, "outcome": outcomes[name]}
                for name, value in done.items()
            ],
        },
        table=ReportTable(
            CHANGE_COLUMNS,
            [
                (
                    *_entity(entity).values(),
                    name,
                    None if value is None else _number(value),
                    outcome_text(outcomes[name], is_dry_run=args.dry_run),
                )
                for name, value in done.items()
            ],
        ),
        errors=errors,
        noun="entity",
    )


def _values(args: argparse.Namespace) -> dict[str, float | None]:
    """Return the new values by name; None: the quota is removed."""
    pairs = [*args.quota, *((name, None) for name in args.delete)]
    values = dict(pairs)
    if not values:
        raise UsageError("say which quotas: producer_byte_rate=1048576, or --delete NAME")
    if len(values) < len(pairs):
        twice = next(name for name in values if sum(name == one for one, _ in pairs) > 1)
        raise UsageError(f"{twice} is named twice")
    return values


# ---- what is shown ----


def _entity(entity: ClientQuotaEntity) -> dict[str, str | None]:
    """Return whom quotas limit; the columns have this order."""
    return {
        kind: name.value if isinstance(name, ClientQuotaName) else name
        for kind, name in (
            ("user", entity.user),
            ("client_id", entity.client_id),
            ("ip", entity.ip),
        )
    }


def _number(value: float) -> str:
    return f"{value:.15g}"


NOUN = Noun(
    "quotas",
    help="list and set how much users, clients and addresses may do",
    description="Look after quotas of users, of clients and of addresses. Without a command it "
    "lists them. They need Kafka 2.6.",
    verbs=(
        Verb(
            "list",
            help="the quotas, by whom they limit",
            description="List quotas. What is named chooses among them; without options all are "
            "listed. Changes nothing.",
            add_arguments=_add_list,
            run=list_quotas,
            examples=OF_LIST,
        ),
        Verb(
            "set",
            help="set and remove quotas",
            description="Set quotas of a user, of a client, of a client of a user, or of an "
            "address, and remove others. What is not named stays as it is.",
            add_arguments=_add_set,
            run=set_quotas,
            examples=OF_SET,
            changes=True,
        ),
    ),
    default="list",
)

add_parser = NOUN.add_parser
