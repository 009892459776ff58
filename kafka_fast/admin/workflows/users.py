"""Steps for SCRAM credentials: all users at once; hashing passwords before they are sent.

Thread: the caller's.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.admin.result import AdminResult
from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.control.admin.operations.users import (
    AlterUserScramCredentials,
    Credentials,
    DescribeAllScramCredentials,
    DescribeUserScramCredentials,
    SaltedAlteration,
    rounds_of,
    salted_alteration,
)
from kafka_fast.control.admin.types.users import (
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka_fast.net.waiting.steps import InThread, Steps


def describe_credentials(
    steps: AdminSteps, users: Iterable[str] | None, timeout: float | None
) -> Steps[AdminResult[str, Credentials]]:
    """Return the credentials of users; None: of all users that have some.

    Raises:
        KafkaError: all users cannot be described, or as in `AdminSteps.run_items`.
    """
    if users is not None:
        result = yield from steps.run_items(DescribeUserScramCredentials(users), timeout)
        return result
    described = yield from steps.run_one(DescribeAllScramCredentials(), timeout)
    described.client_id = steps.client_id
    return AdminResult(DescribeAllScramCredentials.name, described)


def alter_credentials(
    steps: AdminSteps,
    upsertions: Iterable[UserScramCredentialUpsertion],
    deletions: Iterable[UserScramCredentialDeletion],
    timeout: float | None,
) -> Steps[AdminResult[str, None]]:
    """Set and delete credentials. What follows for a user after an error is left.

    Raises:
        KafkaError: a password cannot be had, or as in `AdminSteps.run_items`.
        UsageError: an alteration is one that brokers would refuse.
    """
    rounds = rounds_of(upsertions, deletions)
    deadline = steps.begin_call(timeout)

    def salt() -> list[list[SaltedAlteration]]:
        return [
            [salted_alteration(alteration, secrets.token_bytes) for alteration in alterations]
            for alterations in rounds
        ]

    salted: list[list[SaltedAlteration]] = yield InThread(salt)
    total: OperationResults[str, None] = steps.no_results(())
    for alterations in salted or [[]]:
        operation = AlterUserScramCredentials(
            one for one in alterations if one.user not in total.errors
        )
        results = yield from steps.results(operation, deadline)
        total.keys += [user for user in results.keys if user not in total.values]
        total.values.update(results.values)
        total.errors.update(results.errors)
        total.throttle_time_ms = max(total.throttle_time_ms, results.throttle_time_ms)
    for user in total.errors:
        total.values.pop(user, None)
    return AdminResult(AlterUserScramCredentials.name, total)
