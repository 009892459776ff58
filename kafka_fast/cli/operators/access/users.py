"""`kafka-fast users`: what the cluster keeps of users' passwords for SCRAM."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_fast.admin import (
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    UserScramMechanism,
)
from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import counted, positive
from kafka_fast.cli.frame.nouns import Noun, Verb
from kafka_fast.cli.operators.access.passwords import read_secret
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import KafkaError, ResourceNotFound

if TYPE_CHECKING:
    from kafka_fast import Admin

OF_SET = """examples:
  kafka-fast users set alice                               asks for the password
  kafka-fast users set alice --new-password-file alice.txt --iterations 8192
  pwgen -s 32 1 | tee alice.txt | kafka-fast users set alice
"""
OF_DELETE = """examples:
  kafka-fast users delete alice bob
  kafka-fast users delete alice --mechanism SCRAM-SHA-256 --yes
"""

CREDENTIAL_COLUMNS = (
    ReportColumn("USER"),
    ReportColumn("MECHANISM"),
    ReportColumn("ITERATIONS", is_number=True),
)
CHANGE_COLUMNS = (*CREDENTIAL_COLUMNS, ReportColumn("OUTCOME"))

_MECHANISMS = {
    one.mechanism_name: one for one in UserScramMechanism if one != UserScramMechanism.UNKNOWN
}

_DEFAULT = UserScramMechanism.SCRAM_SHA_512
_ITERATIONS = 4096


# ---- arguments ----


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", nargs="*", help="only these; default: all that have a password")


def _add_mechanism(parser: argparse.ArgumentParser, about: str) -> None:
    parser.add_argument(
        "--mechanism",
        metavar="NAME",
        type=_mechanism,
        action="append",
        default=[],
        help=f"{' or '.join(_MECHANISMS)}; may be repeated ({about})",
    )


def _add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", help="whose password is set")
    _add_mechanism(parser, f"default: {_DEFAULT.mechanism_name}")
    parser.add_argument(
        "--new-password-file",
        metavar="FILE",
        help="its first line is the password; -: standard input. Without a file the password is "
        "asked for on the terminal, or is the first line of what a pipe brings",
    )
    parser.add_argument(
        "--iterations",
        metavar="N",
        type=positive,
        default=_ITERATIONS,
        help=f"how often the password is hashed: 4096 to 16384 (default {_ITERATIONS})",
    )


def _add_delete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", nargs="+", help="who can no longer log in")
    _add_mechanism(parser, "default: all that the user has")


def _mechanism(text: str) -> UserScramMechanism:
    mechanism = _MECHANISMS.get(text.upper())
    if mechanism is None:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(_MECHANISMS)}")
    return mechanism


# ---- the commands ----


def list_users(admin: Admin, args: argparse.Namespace) -> Report:
    """Return which users have which credentials."""
    described = admin.describe_user_scram_credentials(dict.fromkeys(args.user) or None)
    users = [(user, _ordered(some)) for user, some in sorted(described.succeeded.items())]
    return Report(
        document={
            "users": [
                {"user": user, "credentials": [_entry(one) for one in credentials]}
                for user, credentials in users
            ]
        },
        table=ReportTable(
            CREDENTIAL_COLUMNS,
            [(user, *_entry(one).values()) for user, some in users for one in some],
        ),
        errors=described.errors,
        noun="user",
        when_empty="no user has a password for SCRAM",
    )


def set_password(admin: Admin, args: argparse.Namespace) -> Report:
    """Set a user's password for each of the mechanisms."""
    mechanisms = dict.fromkeys(args.mechanism) or {_DEFAULT: None}
    errors: dict[str, KafkaError] = {}
    if not args.dry_run:
        password = read_secret(args.new_password_file, f"new password of {args.user}", is_new=True)
        errors = admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion(args.user, mechanism, password, args.iterations)
                for mechanism in mechanisms
            ]
        ).errors
    done = [ScramCredentialInfo(mechanism, args.iterations) for mechanism in mechanisms]
    return _changes(args, {args.user: [] if errors else done}, "set", errors)


def delete_users(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Delete the credentials of the users; look first which there are, and ask."""
    described = admin.describe_user_scram_credentials(dict.fromkeys(args.user))
    errors = described.errors
    chosen: dict[str, list[ScramCredentialInfo]] = {}
    for user, credentials in described.succeeded.items():
        names = args.mechanism or list(_MECHANISMS.values())
        some = [one for one in _ordered(credentials) if one.mechanism in names]
        if some:
            chosen[user] = some
        else:
            names = ", ".join(one.mechanism_name for one in names)
            errors[user] = ResourceNotFound(f"user {user!r} has no password for {names}")
    if chosen and not args.dry_run:
        plan = ReportTable(CREDENTIAL_COLUMNS, _rows(chosen))
        if not is_confirmed(args, f"delete the passwords of {counted(len(chosen), 'user')}?", plan):
            return None
        refused = admin.alter_user_scram_credentials(
            deletions=[
                UserScramCredentialDeletion(user, one.mechanism)
                for user, some in chosen.items()
                for one in some
            ]
        ).errors
        errors |= refused
        chosen = {user: some for user, some in chosen.items() if user not in refused}
    return _changes(args, chosen, "deleted", errors)


# ---- what is shown ----


def _changes(
    args: argparse.Namespace,
    credentials: Mapping[str, Iterable[ScramCredentialInfo]],
    outcome: str,
    errors: Mapping[str, KafkaError],
) -> Report:
    words = outcome_text(outcome, is_dry_run=args.dry_run)
    return Report(
        document={
            "dry_run": args.dry_run,
            "users": [
                {"user": user, **_entry(one), "outcome": outcome}
                for user, some in credentials.items()
                for one in some
            ],
        },
        table=ReportTable(CHANGE_COLUMNS, [(*row, words) for row in _rows(credentials)]),
        errors=errors,
        noun="user",
    )


def _ordered(credentials: Iterable[ScramCredentialInfo]) -> list[ScramCredentialInfo]:
    """Return credentials by mechanism: brokers have no order of theirs."""
    return sorted(credentials, key=lambda one: one.mechanism)


def _rows(credentials: Mapping[str, Iterable[ScramCredentialInfo]]) -> list[tuple[object, ...]]:
    return [(user, *_entry(one).values()) for user, some in credentials.items() for one in some]


def _entry(credential: ScramCredentialInfo) -> dict[str, object]:
    """Return what is told of a credential; the columns have this order."""
    return {
        "mechanism": credential.mechanism.mechanism_name,
        "iterations": credential.iterations,
    }


NOUN = Noun(
    "users",
    help="list, set and delete passwords of users for SCRAM",
    description="Look after users who log in by SCRAM. Passwords are never shown, and never "
    "arguments. Without a command it lists the users.",
    verbs=(
        Verb(
            "list",
            help="the users that have a password for SCRAM",
            description="List users that have a password for SCRAM. Changes nothing.",
            add_arguments=_add_list,
            run=list_users,
        ),
        Verb(
            "set",
            help="set the password of a user",
            description="Set the password of a user, who need not exist yet. Only salted hashes "
            "go to the cluster.",
            add_arguments=_add_set,
            run=set_password,
            examples=OF_SET,
            changes=True,
        ),
        Verb(
            "delete",
            help="delete passwords of users",
            description="Delete passwords of users, who can then no longer log in. On a terminal "
            "it asks, elsewhere it needs --yes.",
            add_arguments=_add_delete,
            run=delete_users,
            examples=OF_DELETE,
            changes=True,
            asks=True,
        ),
    ),
    default="list",
)

add_parser = NOUN.add_parser
