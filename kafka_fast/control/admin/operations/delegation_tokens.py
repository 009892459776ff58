"""Operations on delegation tokens: create, renew, expire and describe them."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from kafka_fast.control.admin.operation import ONLY, Operation
from kafka_fast.control.admin.types.delegation_tokens import DelegationToken
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.targets import AnyNode
from kafka_fast.errors import ErrorCode, KafkaError, UnsupportedVersionError, UsageError
from kafka_fast.protocol.apis.tokens.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafka_fast.protocol.apis.tokens.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafka_fast.protocol.apis.tokens.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kafka_fast.protocol.apis.tokens.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kafka_fast.secret import Secret

WORDS: Mapping[int, str] = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "the brokers have no delegation.token.secret.key",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "a client that asks about tokens logs in by "
    "SASL or with a certificate, and not with a token",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "there is no such token",
}

FIRST_VERSION_WITH_OWNERS = 3
LONGEST = SOONEST = DEFAULT_PERIOD = -1


def _principal(text: str) -> tuple[str, str]:
    """Return the type and the name of a principal.

    Raises:
        UsageError: the text is none.
    """
    kind, colon, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not (kind and colon and name):
        raise UsageError(f'a principal is a text as "User:alice", not {text!r}')
    return kind, name


def _hmac_bytes(hmac: str | Secret) -> bytes | None:
    """Return a token's HMAC from its text; None if it cannot be one.

    It raises nothing: the error would have the secret in its frame.
    """
    text = hmac.reveal() if isinstance(hmac, Secret) else hmac
    try:
        return b64decode(text, validate=True) or None
    except (binascii.Error, ValueError, TypeError):
        return None


def _checked_hmac(operation: str, data: bytes | None) -> bytes:
    if data is None:
        raise UsageError(f"{operation}: the hmac of a token is base64, as DelegationToken has it")
    return data


def _period(name: str, period_ms: int | None, default: int) -> int:
    if period_ms is None:
        return default
    if not isinstance(period_ms, int) or period_ms < 0:
        raise UsageError(f"{name} is a number of milliseconds, not {period_ms!r}")
    return period_ms


class CreateDelegationToken(Operation[str, DelegationToken]):
    """CreateDelegationToken. After a lost answer a second try would make a second token."""

    name = "create_delegation_token"
    permission = "CREATE_TOKENS on the user, if that is another one"
    is_repeatable = False
    final = frozenset({ErrorCode.REQUEST_TIMED_OUT})
    words = WORDS
    request_class = CreateDelegationTokenRequest
    response_class = CreateDelegationTokenResponse

    def __init__(
        self, renewers: Iterable[str], *, max_lifetime_ms: int | None, owner: str | None
    ) -> None:
        """Take what the token is for.

        Args:
            renewers: principals that may renew the token.
            max_lifetime_ms: when the token expires for good; None: as late as brokers allow.
            owner: the principal as which the token logs in; None: the one that asks.

        Raises:
            UsageError: something is no principal, or no number of milliseconds.
        """
        super().__init__(AnyNode(), [ONLY])
        self._renewers = tuple(dict.fromkeys(renewers))
        self._principals = [_principal(renewer) for renewer in self._renewers]
        self._owner = None if owner is None else _principal(owner)
        self._max_lifetime_ms = _period("max_lifetime_ms", max_lifetime_ms, LONGEST)

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse other owners where brokers know none."""
        if self._owner is not None and version < FIRST_VERSION_WITH_OWNERS:
            return UnsupportedVersionError(
                f"{self.api}: tokens for another owner need Kafka 3.3 (KIP-373)"
            )
        return None

    def build(self, items: Sequence[str], version: int) -> CreateDelegationTokenRequest:
        """Ask for a token."""
        request = CreateDelegationTokenRequest(
            renewers=[
                CreatableRenewers(principal_type=kind, principal_name=name)
                for kind, name in self._principals
            ],
            max_lifetime_ms=self._max_lifetime_ms,
        )
        if version >= FIRST_VERSION_WITH_OWNERS:
            kind, name = self._owner or (None, None)
            request.owner_principal_type = kind
            request.owner_principal_name = name
        return request

    def outcomes(
        self, answer: CreateDelegationTokenResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[DelegationToken]]]:
        """Return the token."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code)
            return
        token = DelegationToken(
            answer.token_id,
            _hmac_text(answer.hmac),
            f"{answer.principal_type}:{answer.principal_name}",
            _requester(
                answer.token_requester_principal_type, answer.token_requester_principal_name
            ),
            self._renewers,
            answer.issue_timestamp_ms,
            answer.expiry_timestamp_ms,
            answer.max_timestamp_ms,
        )
        yield ONLY, Done(token)


def _hmac_text(data: bytes) -> Secret:
    return Secret(b64encode(data).decode())


def _requester(kind: str, name: str) -> str | None:
    return f"{kind}:{name}" if kind else None


class RenewDelegationToken(Operation[str, int]):
    """RenewDelegationToken."""

    name = "renew_delegation_token"
    permission = "to be the token's owner or one of its renewers"
    words = WORDS
    request_class = RenewDelegationTokenRequest
    response_class = RenewDelegationTokenResponse

    def __init__(self, hmac: str | Secret, *, renew_period_ms: int | None) -> None:
        """Take the token, and for how long it is renewed.

        Args:
            hmac: the token's, in base64.
            renew_period_ms: from now on; None: as brokers have it.

        Raises:
            UsageError: the HMAC cannot be one, or the period is no number of milliseconds.
        """
        super().__init__(AnyNode(), [ONLY])
        data = _hmac_bytes(hmac)
        del hmac  # a traceback that has this frame shows no secret
        self._hmac = _hmac_text(_checked_hmac(self.name, data))
        del data
        self._period_ms = _period("renew_period_ms", renew_period_ms, DEFAULT_PERIOD)

    def build(self, items: Sequence[str], version: int) -> RenewDelegationTokenRequest:
        """Ask for more time."""
        hmac = b64decode(self._hmac.reveal())
        return RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=self._period_ms)

    def outcomes(
        self, answer: RenewDelegationTokenResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[int]]]:
        """Return when the token expires now."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code)
        else:
            yield ONLY, Done(answer.expiry_timestamp_ms)


class ExpireDelegationToken(Operation[str, int]):
    """ExpireDelegationToken."""

    name = "expire_delegation_token"
    permission = "to be the token's owner or one of its renewers"
    words = WORDS
    explained: ClassVar[Mapping[int, str]] = {
        ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "an earlier try, of which no answer came, may have "
        "ended it"
    }
    request_class = ExpireDelegationTokenRequest
    response_class = ExpireDelegationTokenResponse

    def __init__(self, hmac: str | Secret, *, expiry_period_ms: int | None) -> None:
        """Take the token, and when it is to expire.

        Args:
            hmac: the token's, in base64.
            expiry_period_ms: from now on; None: at once.

        Raises:
            UsageError: the HMAC cannot be one, or the period is no number of milliseconds.
        """
        super().__init__(AnyNode(), [ONLY])
        data = _hmac_bytes(hmac)
        del hmac  # a traceback that has this frame shows no secret
        self._hmac = _hmac_text(_checked_hmac(self.name, data))
        del data
        self._period_ms = _period("expiry_period_ms", expiry_period_ms, SOONEST)

    def build(self, items: Sequence[str], version: int) -> ExpireDelegationTokenRequest:
        """Ask for the end."""
        hmac = b64decode(self._hmac.reveal())
        return ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=self._period_ms)

    def outcomes(
        self, answer: ExpireDelegationTokenResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[int]]]:
        """Return when the token expires now."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code)
        else:
            yield ONLY, Done(answer.expiry_timestamp_ms)


class DescribeDelegationToken(Operation[str, list[DelegationToken]]):
    """DescribeDelegationToken."""

    name = "describe_delegation_token"
    permission = "DESCRIBE on the delegation token, or DESCRIBE_TOKENS on its owner"
    words = WORDS
    request_class = DescribeDelegationTokenRequest
    response_class = DescribeDelegationTokenResponse

    def __init__(self, owners: Iterable[str] | None) -> None:
        """Take whose tokens are described; None: all that may be seen.

        Raises:
            UsageError: an owner is no principal.
        """
        super().__init__(AnyNode(), [ONLY])
        self._owners = None if owners is None else [_principal(owner) for owner in owners]

    def build(self, items: Sequence[str], version: int) -> DescribeDelegationTokenRequest:
        """Ask for the tokens."""
        owners = self._owners
        return DescribeDelegationTokenRequest(
            owners=None
            if owners is None
            else [
                DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
                for kind, name in owners
            ]
        )

    def outcomes(
        self, answer: DescribeDelegationTokenResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[list[DelegationToken]]]]:
        """Return the tokens."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code)
        else:
            yield ONLY, Done([_described(token) for token in answer.tokens])


def _described(token: DescribedDelegationToken) -> DelegationToken:
    return DelegationToken(
        token.token_id,
        _hmac_text(token.hmac),
        f"{token.principal_type}:{token.principal_name}",
        _requester(token.token_requester_principal_type, token.token_requester_principal_name),
        tuple(f"{one.principal_type}:{one.principal_name}" for one in token.renewers),
        token.issue_timestamp,
        token.expiry_timestamp,
        token.max_timestamp,
    )
