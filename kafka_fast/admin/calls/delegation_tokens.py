"""The calls of `Admin` about delegation tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls

if TYPE_CHECKING:
    from kafka_fast.control.admin.types.delegation_tokens import DelegationToken
    from kafka_fast.secret import Secret


class DelegationTokenCalls(AdminCalls):
    """Delegation tokens: create, renew, expire and describe them.

    Brokers need a delegation.token.secret.key. The client logs in by SASL or with a certificate of
    its own, and not with a token.
    """

    def create_delegation_token(
        self,
        renewers: Iterable[str] = (),
        *,
        max_lifetime_ms: int | None = None,
        owner: str | None = None,
        timeout: float | None = None,
    ) -> DelegationToken:
        """Create a token with which others can log in as its owner.

        CreateDelegationToken; needs CREATE_TOKENS on the user if that is another one, and then
        Kafka 3.3. If the connection breaks, nobody knows whether there is a token: the call fails,
        and is not tried again. When this returns, not all brokers may know the token yet.

        Args:
            renewers: principals that may renew the token, as "User:alice".
            max_lifetime_ms: how long the token can be renewed; None: as long as brokers allow.
            owner: the principal as which the token logs in; None: this client's.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            DelegationTokenAuthDisabled: brokers have no delegation.token.secret.key.
            DelegationTokenRequestNotAllowed: this client's way to log in does not permit it.
            KafkaConnectionError: the connection broke; there may be a token.
            UsageError: something is no principal, or no number of milliseconds.
        """
        from kafka_fast.control.admin.operations.delegation_tokens import CreateDelegationToken

        operation = CreateDelegationToken(renewers, max_lifetime_ms=max_lifetime_ms, owner=owner)
        return self._core.driver.run(self._steps.run_one(operation, timeout))

    def renew_delegation_token(
        self,
        hmac: str | Secret,
        *,
        renew_period_ms: int | None = None,
        timeout: float | None = None,
    ) -> int:
        """Let a token expire later, and return when: Unix time in ms.

        RenewDelegationToken; only the token's owner and its renewers may.

        Args:
            hmac: the token's, in base64, as `DelegationToken.hmac`.
            renew_period_ms: how long it lasts from now; None: as brokers have it.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            DelegationTokenExpired: it has expired, or reached its longest lifetime.
            DelegationTokenNotFound: there is no such token.
            UsageError: the HMAC cannot be one.
        """
        from kafka_fast.control.admin.operations.delegation_tokens import RenewDelegationToken

        try:
            operation = RenewDelegationToken(hmac, renew_period_ms=renew_period_ms)
        finally:
            del hmac  # a traceback that has this frame shows no secret
        return self._core.driver.run(self._steps.run_one(operation, timeout))

    def expire_delegation_token(
        self,
        hmac: str | Secret,
        *,
        expiry_period_ms: int | None = None,
        timeout: float | None = None,
    ) -> int:
        """Let a token expire now or at another time, and return when: Unix time in ms.

        ExpireDelegationToken; only the token's owner and its renewers may.

        Args:
            hmac: the token's, in base64, as `DelegationToken.hmac`.
            expiry_period_ms: how long it lasts from now; None: it ends at once.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            DelegationTokenNotFound: there is no such token.
            UsageError: the HMAC cannot be one.
        """
        from kafka_fast.control.admin.operations.delegation_tokens import ExpireDelegationToken

        try:
            operation = ExpireDelegationToken(hmac, expiry_period_ms=expiry_period_ms)
        finally:
            del hmac  # a traceback that has this frame shows no secret
        return self._core.driver.run(self._steps.run_one(operation, timeout))

    def describe_delegation_token(
        self, owners: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> list[DelegationToken]:
        """Return tokens, with their HMACs.

        DescribeDelegationToken; owners and renewers see their tokens. Other tokens need DESCRIBE on
        the delegation token, or DESCRIBE_TOKENS on its owner.

        Args:
            owners: principals that own the tokens, may renew them or have asked for them; None:
                all tokens that this client may see.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: an owner is no principal.
        """
        from kafka_fast.control.admin.operations.delegation_tokens import DescribeDelegationToken

        operation = DescribeDelegationToken(owners)
        return self._core.driver.run(self._steps.run_one(operation, timeout))
