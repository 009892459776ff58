"""`kafka-fast tokens`: delegation tokens, whose HMACs are shown to nobody but who creates them."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from kafka_fast.cli.frame.asking import is_confirmed
from kafka_fast.cli.frame.changes import outcome_text
from kafka_fast.cli.frame.names import principal
from kafka_fast.cli.frame.nouns import Noun, Verb
from kafka_fast.cli.operators.access.passwords import read_secret
from kafka_fast.cli.operators.access.secret_files import NewSecretFile
from kafka_fast.cli.records.points import seconds_of
from kafka_fast.cli.showing.reports import Report
from kafka_fast.cli.showing.standard_error import say
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import DelegationTokenNotFound
from kafka_fast.times import iso_time

if TYPE_CHECKING:
    from kafka_fast import Admin
    from kafka_fast.admin import DelegationToken
    from kafka_fast.secret import Secret

OF_CREATE = """examples:
  kafka-fast tokens create --renewer User:scheduler --hmac-file job.hmac
  kafka-fast tokens create --owner User:alice --max-lifetime 7d --hmac-file f
"""
OF_RENEW = """examples:
  kafka-fast tokens renew --hmac-file job.hmac
  vault read job | kafka-fast tokens renew --for 12h
"""
OF_EXPIRE = """examples:
  kafka-fast tokens expire --hmac-file job.hmac --yes
  kafka-fast tokens expire --hmac-file job.hmac --in 1h
"""

TOKEN_COLUMNS = (
    ReportColumn("TOKEN"),
    ReportColumn("OWNER"),
    ReportColumn("REQUESTER", is_wide=True),
    ReportColumn("RENEWERS"),
    ReportColumn("ISSUED", is_wide=True),
    ReportColumn("EXPIRES"),
    ReportColumn("AT THE LATEST"),
)
_HMAC_COLUMN = ReportColumn("HMAC")
_OUTCOME_COLUMN = ReportColumn("OUTCOME")

_DURATION = re.compile(r"(?:[0-9]{1,9}[smhd])+")


# ---- arguments ----


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "principal",
        nargs="*",
        type=principal,
        help="only tokens that these own, may renew or have asked for; default: all that this "
        "client may see",
    )


def _add_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--owner",
        metavar="TYPE:NAME",
        type=principal,
        help="as whom the token logs in (default: this client; another one needs Kafka 3.3)",
    )
    parser.add_argument(
        "--renewer",
        metavar="TYPE:NAME",
        type=principal,
        action="append",
        default=[],
        help="who may renew it, beside the owner; may be repeated",
    )
    parser.add_argument(
        "--max-lifetime",
        metavar="TIME",
        type=_duration,
        help="how long it can be renewed, such as 7d (default: as long as brokers allow)",
    )
    parser.add_argument(
        "--hmac-file",
        metavar="FILE",
        help="a new file for the HMAC, which only you can read; without one it is shown, once",
    )


def _add_hmac(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hmac-file",
        metavar="FILE",
        help="its first line is the HMAC; -: standard input. Without a file it is asked for on the "
        "terminal, or is the first line of what a pipe brings",
    )


def _add_renew(parser: argparse.ArgumentParser) -> None:
    _add_hmac(parser)
    parser.add_argument(
        "--for",
        dest="period",
        metavar="TIME",
        type=_duration,
        help="how long it lasts from now, such as 12h (default: as brokers have it)",
    )


def _add_expire(parser: argparse.ArgumentParser) -> None:
    _add_hmac(parser)
    parser.add_argument(
        "--in",
        dest="period",
        metavar="TIME",
        type=_duration,
        help="how long it still lasts, such as 1h (default: it ends at once)",
    )


def _duration(text: str) -> int:
    """Return a time such as 1h30m in ms."""
    if not _DURATION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"expected a time such as 90s, 12h or 7d, not {text!r}")
    return 1000 * seconds_of(text)


# ---- the commands ----


def list_tokens(admin: Admin, args: argparse.Namespace) -> Report:
    """Return the tokens, without what logs in with them."""
    tokens = admin.describe_delegation_token(dict.fromkeys(args.principal) or None)
    tokens = sorted(tokens, key=lambda token: (token.owner, token.issue_timestamp))
    return Report(
        document={"tokens": [_entry(token) for token in tokens]},
        table=ReportTable(TOKEN_COLUMNS, [_row(token) for token in tokens]),
        when_empty="there is no token that this client may see",
    )


def create_token(admin: Admin, args: argparse.Namespace) -> Report:
    """Create a token. Its HMAC goes to the new file, or is shown."""
    if args.dry_run:
        entry = {"owner": args.owner, "renewers": args.renewer, "outcome": "created"}
        outcome = outcome_text("created", is_dry_run=True)
        return Report(
            document={"dry_run": True, "tokens": [entry]},
            table=ReportTable(
                (ReportColumn("OWNER"), ReportColumn("RENEWERS"), _OUTCOME_COLUMN),
                [(args.owner, args.renewer, outcome)],
            ),
        )
    if args.hmac_file is None:
        token = _created(admin, args)
        shown = token.hmac.reveal()
    else:
        with NewSecretFile(args.hmac_file) as file:
            token = _created(admin, args)
            try:
                file.write_secret(token.hmac.reveal() + "\n")
            except BaseException as error:
                _withdraw(admin, token, error)
                raise
        shown = None
    columns, cells = [*TOKEN_COLUMNS], [*_row(token)]
    if shown is not None:
        columns, cells = [*columns, _HMAC_COLUMN], [*cells, shown]
    return Report(
        document={
            "dry_run": False,
            "tokens": [{**_entry(token), "outcome": "created", "hmac": shown}],
        },
        table=ReportTable([*columns, _OUTCOME_COLUMN], [[*cells, "created"]]),
    )


def _created(admin: Admin, args: argparse.Namespace) -> DelegationToken:
    return admin.create_delegation_token(
        dict.fromkeys(args.renewer), max_lifetime_ms=args.max_lifetime, owner=args.owner
    )


def _withdraw(admin: Admin, token: DelegationToken, reason: BaseException) -> None:
    """Let a token expire whose HMAC could not be kept; say so, or that it did not work."""
    name = f"token {token.token_id} of {token.owner}"
    why = f": {reason.strerror}" if isinstance(reason, OSError) else ""
    lost = f"{name} was created, but its HMAC could not be written{why}"
    try:
        admin.expire_delegation_token(token.hmac)
    except BaseException:
        ends = iso_time(token.expiry_timestamp)
        say(f"{lost}. It could not be withdrawn either: its HMAC is lost, and it ends at {ends}")
        raise
    say(f"{lost}. It was withdrawn: it has expired")


def renew_token(admin: Admin, args: argparse.Namespace) -> Report:
    """Let a token expire later."""
    hmac = _hmac(args)
    if args.dry_run:
        return _change(args, _token_of(admin, hmac), None, "renewed")
    expires = admin.renew_delegation_token(hmac, renew_period_ms=args.period)
    return _change(args, None, expires, "renewed")


def expire_token(admin: Admin, args: argparse.Namespace) -> Report | None:
    """Let a token expire now or soon; without --yes look first which one this is, and ask."""
    hmac = _hmac(args)
    token = None if args.yes and not args.dry_run else _token_of(admin, hmac)
    if token is not None:
        if args.dry_run:
            return _change(args, token, None, "expired")
        question = f"let the token {token.token_id} of {token.owner} expire?"
        if not is_confirmed(args, question, ReportTable(TOKEN_COLUMNS, [_row(token)]).narrow()):
            return None
    expires = admin.expire_delegation_token(hmac, expiry_period_ms=args.period)
    return _change(args, token, expires, "expired")


def _hmac(args: argparse.Namespace) -> Secret:
    return read_secret(args.hmac_file, "HMAC of the token")


def _token_of(admin: Admin, hmac: Secret) -> DelegationToken:
    """Return the token that an HMAC belongs to.

    Raises:
        DelegationTokenNotFound: there is none that this client may see.
    """
    for token in admin.describe_delegation_token():
        if token.hmac.is_same(hmac):
            return token
    raise DelegationTokenNotFound("there is no token with this HMAC that this client may see")


# ---- what is shown ----


def _change(
    args: argparse.Namespace, token: DelegationToken | None, expires: int | None, outcome: str
) -> Report:
    token_id = None if token is None else token.token_id
    owner = None if token is None else token.owner
    return Report(
        document={
            "dry_run": args.dry_run,
            "tokens": [
                {"token": token_id, "owner": owner, "expires_ms": expires, "outcome": outcome}
            ],
        },
        table=ReportTable(
            (
                ReportColumn("TOKEN"),
                ReportColumn("OWNER"),
                ReportColumn("EXPIRES"),
                _OUTCOME_COLUMN,
            ),
            [
                (
                    token_id,
                    owner,
                    None if expires is None else iso_time(expires),
                    outcome_text(outcome, is_dry_run=args.dry_run),
                )
            ],
        ),
    )


def _row(token: DelegationToken) -> tuple[object, ...]:
    return (
        token.token_id,
        token.owner,
        token.requester,
        token.renewers,
        iso_time(token.issue_timestamp),
        iso_time(token.expiry_timestamp),
        iso_time(token.max_timestamp),
    )


def _entry(token: DelegationToken) -> dict[str, object]:
    return {
        "token": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": token.renewers,
        "issued_ms": token.issue_timestamp,
        "expires_ms": token.expiry_timestamp,
        "max_ms": token.max_timestamp,
    }


NOUN = Noun(
    "tokens",
    help="list, create, renew and expire delegation tokens",
    description="Look after delegation tokens, with which programs log in for somebody. HMACs are "
    "never arguments, and are shown only when a token is created. Without a command it lists them.",
    verbs=(
        Verb(
            "list",
            help="the tokens, without their HMACs",
            description="List tokens, without their HMACs. Changes nothing.",
            add_arguments=_add_list,
            run=list_tokens,
        ),
        Verb(
            "create",
            help="create a token",
            description="Create a token. Its id and its HMAC are the user name and the password "
            "to log in with. The HMAC is shown once, or written to a file.",
            add_arguments=_add_create,
            run=create_token,
            examples=OF_CREATE,
            changes=True,
        ),
        Verb(
            "renew",
            help="let a token expire later",
            description="Let a token expire later. Its owner and its renewers may do that.",
            add_arguments=_add_renew,
            run=renew_token,
            examples=OF_RENEW,
            changes=True,
        ),
        Verb(
            "expire",
            help="let a token expire now or soon",
            description="Let a token expire now or soon. On a terminal it asks, elsewhere it needs "
            "--yes.",
            add_arguments=_add_expire,
            run=expire_token,
            examples=OF_EXPIRE,
            changes=True,
            asks=True,
        ),
    ),
    default="list",
)

add_parser = NOUN.add_parser
