"""The calls of `Admin` about users and their passwords for SCRAM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult
    from kafka_fast.control.admin.types.users import (
        ScramCredentialInfo,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )


class UserCalls(AdminCalls):
    """Users: describe, set and delete what the cluster keeps of their passwords for SCRAM."""

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> AdminResult[str, tuple[ScramCredentialInfo, ...]]:
        """Return which SCRAM credentials users have; never a password.

        DescribeUserScramCredentials; needs DESCRIBE on the cluster, and Kafka 2.7 (with KRaft 3.5).
        A user without a credential is a ResourceNotFound.

        Args:
            users: their names; None: all users that have a credential.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.admin.workflows.users import describe_credentials

        return self._core.driver.run(describe_credentials(self._steps, users, timeout))

    def alter_user_scram_credentials(
        self,
        upsertions: Iterable[UserScramCredentialUpsertion] = (),
        *,
        deletions: Iterable[UserScramCredentialDeletion] = (),
        timeout: float | None = None,
    ) -> AdminResult[str, None]:
        """Set and delete passwords of users for SCRAM.

        AlterUserScramCredentials; needs ALTER on the cluster, and Kafka 2.7 (with KRaft 3.5). Only
        salted hashes are sent. When this returns, not all brokers may know the new passwords yet.
        Several credentials of one user go out one after the other, up to the first error.

        Args:
            upsertions: passwords to set.
            deletions: credentials to delete.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: a password is empty, iterations are not 4,096 to 16,384, or a user's
                mechanism is named twice.
        """
        from kafka_fast.admin.workflows.users import alter_credentials

        steps = alter_credentials(self._steps, upsertions, deletions, timeout)
        return self._core.driver.run(steps)
