"""`kafka-fast acls`: the rules of who may do what."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

from kafka_fast.admin import (
    CLUSTER_NAME,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import EXISTS, outcome_text
from kafka_fast.cli.frame.names import counted, principal
from kafka_fast.cli.frame.nouns import Noun, Verb
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import KafkaError, UsageError

if TYPE_CHECKING:
    from kafka_fast import Admin

OF_LIST = """examples:
  kafka-fast acls list
  kafka-fast acls list --topic orders --matching      also by prefix, and for *
  kafka-fast acls list --principal User:alice -o json
"""
OF_CREATE = """examples:
  kafka-fast acls create --topic orders --principal User:alice --operation read
  kafka-fast acls create --topic app- --group app- --prefixed \\
      --principal User:app --operation read --operation describe
  kafka-fast acls create --topic t --principal User:eve --operation read --deny
  kafka-fast acls create --cluster --principal User:ops --operation alter
"""
OF_DELETE = """examples:
  kafka-fast acls delete --principal User:bob --dry-run
  kafka-fast acls delete --topic orders --operation write --yes
"""

RULE_COLUMNS = (
    ReportColumn("RESOURCE"),
    ReportColumn("NAME"),
    ReportColumn("PATTERN"),
    ReportColumn("PRINCIPAL"),
    ReportColumn("PERMISSION"),
    ReportColumn("OPERATION"),
    ReportColumn("HOST"),
)
CHANGE_COLUMNS = (*RULE_COLUMNS, ReportColumn("OUTCOME"))

_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "token": ResourceType.DELEGATION_TOKEN,
    "user": ResourceType.USER,
}
"""Option -> what it names; --cluster stands beside them, because there is only one."""

_FOR_FILTERS = (AclOperation.UNKNOWN, AclOperation.ANY)


# ---- what the arguments name ----


def _add_resources(parser: argparse.ArgumentParser) -> None:
    for option, what in (
        ("--topic", "a topic"),
        ("--group", "a group"),
        ("--transactional-id", "a transactional id"),
        ("--token", "the id of a delegation token"),
        ("--user", "a user for whom tokens are made, as User:alice (Kafka 3.3)"),
    ):
        parser.add_argument(
            option,
            metavar="NAME",
            action="append",
            default=[],
            help=f"{what}; *: each; may be repeated",
        )
    parser.add_argument("--cluster", action="store_true", help="the cluster itself")
    parser.add_argument(
        "--principal",
        metavar="TYPE:NAME",
        type=principal,
        action="append",
        default=[],
        help="whom the rule is about, such as User:alice; User:*: everybody; may be repeated",
    )
    parser.add_argument(
        "--host", action="append", default=[], help="from which address; may be repeated"
    )
    names = ", ".join(_word(one) for one in AclOperation if one not in _FOR_FILTERS)
    parser.add_argument(
        "--operation",
        metavar="NAME",
        type=_operation,
        action="append",
        default=[],
        help=f"{names}; may be repeated",
    )


def _add_filter(parser: argparse.ArgumentParser) -> None:
    _add_resources(parser)
    permission = parser.add_mutually_exclusive_group()
    permission.add_argument("--deny", action="store_true", help="only rules that deny")
    permission.add_argument("--allow", action="store_true", help="only rules that allow")


def _add_list(parser: argparse.ArgumentParser) -> None:
    _add_filter(parser)
    pattern = parser.add_mutually_exclusive_group()
    pattern.add_argument("--prefixed", action="store_true", help="only rules for prefixes")
    pattern.add_argument(
        "--matching",
        action="store_true",
        help="all rules that apply to what has this name, also by prefix or *",
    )


def _add_create(parser: argparse.ArgumentParser) -> None:
    _add_resources(parser)
    parser.add_argument("--deny", action="store_true", help="forbid it, whatever else allows it")
    parser.add_argument("--prefixed", action="store_true", help="the names are beginnings of names")


def _add_delete(parser: argparse.ArgumentParser) -> None:
    _add_filter(parser)
    parser.add_argument("--prefixed", action="store_true", help="only rules for prefixes")
    parser.add_argument("--all", action="store_true", help="all rules of the cluster")


def _word(operation: AclOperation) -> str:
    return operation.name.lower().replace("_", "-")


def _operation(text: str) -> AclOperation:
    name = text.upper().replace("-", "_")
    operation = AclOperation.__members__.get(name)
    if operation is None or operation in _FOR_FILTERS:
        names = ", ".join(_word(one) for one in AclOperation if one not in _FOR_FILTERS)
        raise argparse.ArgumentTypeError(f"{text!r} is none of {names}")
    return operation


def _resources(args: argparse.Namespace) -> list[tuple[ResourceType, str]]:
    named = [(kind, name) for option, kind in _RESOURCES.items() for name in vars(args)[option]]
    if args.cluster:
        named.append((ResourceType.CLUSTER, CLUSTER_NAME))
    return list(dict.fromkeys(named))


def _filters(args: argparse.Namespace, pattern: PatternType) -> list[AclBindingFilter]:
    """Return a filter for each combination of what is named; one that matches all if nothing is.

    Args:
        args: of the command.
        pattern: how names are meant; a filter without a name looks at prefixes only if asked.
    """
    permission = AclPermissionType.ANY
    if args.deny or args.allow:
        permission = AclPermissionType.DENY if args.deny else AclPermissionType.ALLOW
    unnamed = PatternType.PREFIXED if args.prefixed else PatternType.ANY
    anything: list[tuple[ResourceType, str | None]] = [(ResourceType.ANY, None)]
    return [
        AclBindingFilter(
            kind,
            name,
            who,
            operation,
            permission,
            host,
            unnamed if name is None else pattern,
        )
        for (kind, name), who, operation, host in product(
            _resources(args) or anything,
            dict.fromkeys(args.principal) or [None],
            dict.fromkeys(args.operation) or [AclOperation.ANY],
            dict.fromkeys(args.host) or [None],
        )
    ]


def _matching(admin: Admin, filters: Iterable[AclBindingFilter]) -> list[AclBinding]:
    """Return the rules that a filter matches, each once, in the order of the table."""
    return _sorted(rule for one in filters for rule in admin.describe_acls(one))


def _sorted(rules: Iterable[AclBinding]) -> list[AclBinding]:
    return sorted(dict.fromkeys(rules), key=lambda rule: tuple(_entry(rule).values()))


# ---- what is shown ----


def _entry(rule: AclBinding) -> dict[str, str]:
    """Return what is told of a rule; the columns have this order."""
    return {
        "resource_type": rule.resource_type.name,
        "name": rule.name,
        "pattern_type": rule.pattern_type.name,
        "principal": rule.principal,
        "permission": rule.permission.name,
        "operation": rule.operation.name,
        "host": rule.host,
    }


def _rules_table(rules: Iterable[AclBinding]) -> ReportTable:
    return ReportTable(RULE_COLUMNS, [tuple(_entry(rule).values()) for rule in rules])


def _changes(
    args: argparse.Namespace,
    outcomes: dict[AclBinding, str],
    errors: Mapping[Any, KafkaError],
) -> Report:
    return Report(
        document={
            "dry_run": args.dry_run,
            "acls": [{**_entry(rule), "outcome": outcome} for rule, outcome in outcomes.items()],
        },
        table=ReportTable(
            CHANGE_COLUMNS,
            [
                (*_entry(rule).values(), outcome_text(outcome, is_dry_run=args.dry_run))
                for rule, outcome in outcomes.items()
            ],
        ),
        errors=errors,
        noun="acl",
        when_empty="there is no such rule",
    )


# ---- the commands ----


def list_rules(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the rules that match."""
    pattern = PatternType.MATCH if args.matching else PatternType.ANY
    rules = _matching(admin, _filters(args, PatternType.PREFIXED if args.prefixed else pattern))
    return Report(
        document={"acls": [_entry(rule) for rule in rules]},
        table=_rules_table(rules),
        when_empty="there is no such rule",
    )


def create_rules(admin: Admin, args: argparse.Namespace) -> Report:
    """Create a rule for each combination of what is named."""
    rules = list(_new_rules(args))
    if args.dry_run:
        present = frozenset(admin.describe_acls())
        outcomes = {rule: EXISTS if rule in present else "created" for rule in rules}
        return _changes(args, outcomes, {})
    created = admin.create_acls(rules)
    return _changes(args, dict.fromkeys(created.succeeded, "created"), created.errors)


def _new_rules(args: argparse.Namespace) -> Iterator[AclBinding]:
    resources = _resources(args)
    for what, named in (
        ("for which resource: --topic, --group, --cluster, ...", resources),
        ("about whom: --principal User:alice", args.principal),
        ("what is done: --operation read", args.operation),
    ):
        if not named:
            raise UsageError(f"say {what}")
    if args.prefixed and args.cluster:
        raise UsageError("the cluster has no prefix: leave --prefixed out, or create it by itself")
    for (kind, name), who, operation, host in product(
        resources,
        dict.fromkeys(args.principal),
        dict.fromkeys(args.operation),
        dict.fromkeys(args.host) or ["*"],
    ):
        yield AclBinding(
            kind,
            name,
            who,
            operation,
            AclPermissionType.DENY if args.deny else AclPermissionType.ALLOW,
            host,
            PatternType.PREFIXED if args.prefixed else PatternType.LITERAL,
        )


def delete_rules(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Delete the rules that match; without --yes look first which these are, and ask."""
    filters = _filters(args, PatternType.PREFIXED if args.prefixed else PatternType.LITERAL)
    if filters == [AclBindingFilter()] and not args.all:
        raise UsageError("this names no rule: say which, or --all for all rules of the cluster")
    if not args.yes or args.dry_run:
        rules = _matching(admin, filters)
        if args.dry_run or not rules:
            return _changes(args, dict.fromkeys(rules, "deleted"), {})
        question = f"delete {counted(len(rules), 'rule')}?"
        if not is_confirmed(args, question, _rules_table(rules)):
            return None
        filters = [_exactly(rule) for rule in rules]  # no other than those that were shown
    deleted = admin.delete_acls(filters)
    errors: dict[Any, KafkaError] = {**deleted.errors}
    matched = [one for some in deleted.succeeded.values() for one in some]
    errors |= {one.binding: one.error for one in matched if one.error is not None}
    gone = _sorted(one.binding for one in matched if one.error is None)
    return _changes(args, dict.fromkeys(gone, "deleted"), errors)


def _exactly(rule: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        rule.resource_type,
        rule.name,
        rule.principal,
        rule.operation,
        rule.permission,
        rule.host,
        rule.pattern_type,
    )


def _verb(
    name: str,
    about: str,
    add_arguments: Callable[[argparse.ArgumentParser], None],
    run: Callable[[Admin, argparse.Namespace], Report | None],
    examples: str,
) -> Verb:
    return Verb(
        name,
        help=about.split(". ", maxsplit=1)[0].removesuffix(".").lower(),
        description=about,
        add_arguments=add_arguments,
        run=run,
        examples=examples,
        changes=name != "list",
        asks=name == "delete",
        asks_controllers=True,
    )


NOUN = Noun(
    "acls",
    help="list, create and delete the rules of who may do what",
    description="Look after access: the rules that allow principals to use topics, groups and the "
    "cluster, or forbid it. Without a command it lists them.",
    verbs=(
        _verb(
            "list",
            "List rules. What is named chooses among them; without options all are listed. Changes "
            "nothing.",
            _add_list,
            list_rules,
            OF_LIST,
        ),
        _verb(
            "create",
            "Create rules. There is one for each combination of the resources, principals, "
            "operations and hosts that are named; one that exists already is no failure.",
            _add_create,
            create_rules,
            OF_CREATE,
        ),
        _verb(
            "delete",
            "Delete rules. Those that match all that is named are shown, and on a terminal it "
            "asks; elsewhere it needs --yes.",
            _add_delete,
            delete_rules,
            OF_DELETE,
        ),
    ),
    default="list",
)

add_parser = NOUN.add_parser
