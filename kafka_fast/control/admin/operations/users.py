"""Operations on what brokers keep of passwords for SCRAM: describe, set and delete it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NoReturn, TypeAlias

from kafka_fast.control.admin.arguments import told_secret
from kafka_fast.control.admin.operation import ONLY, Operation, OperationResults
from kafka_fast.control.admin.types.users import (
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    UserScramMechanism,
)
from kafka_fast.control.arguments import names_of
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.targets import AnyNode, Controller
from kafka_fast.errors import (
    ErrorCode,
    UsageError,
    error_description,
    reworded,
)
from kafka_fast.protocol.apis.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafka_fast.protocol.apis.security.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from kafka_fast.secret import Secret
from kafka_fast.values import Value

Credentials: TypeAlias = tuple[ScramCredentialInfo, ...]
Alteration: TypeAlias = UserScramCredentialUpsertion | UserScramCredentialDeletion

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16_384
"""What brokers take."""

SALT_BYTES = 16

NAME = "alter_user_scram_credentials"


# ---- describe ----


class DescribeUserScramCredentials(Operation[str, Credentials]):
    """DescribeUserScramCredentials of some users."""

    name = "describe_user_scram_credentials"
    noun = "user"
    permission = "DESCRIBE on the cluster"
    since = "2.7"
    request_class = DescribeUserScramCredentialsRequest
    response_class = DescribeUserScramCredentialsResponse

    def __init__(self, users: Iterable[str]) -> None:
        """Take the names of the users."""
        super().__init__(AnyNode(), names_of(users, "the names of users"))

    def build(self, items: Sequence[str], version: int) -> DescribeUserScramCredentialsRequest:
        """Ask for the users."""
        return DescribeUserScramCredentialsRequest(users=[UserName(name=item) for item in items])

    def outcomes(
        self,
        answer: DescribeUserScramCredentialsResponse,
        items: Sequence[str],
        source: AnswerSource,
    ) -> Iterator[tuple[str, Meaning[Credentials]]]:
        """Return the credentials of each user."""
        if answer.error_code:
            yield from self.all_refused(items, answer.error_code, answer.error_message)
            return
        for result in answer.results:
            if result.error_code:
                refusal = self.refusal(result.user, result.error_code, result.error_message)
                yield result.user, refusal
            else:
                yield result.user, Done(_infos(result.credential_infos))


class DescribeAllScramCredentials(Operation[str, OperationResults[str, Credentials]]):
    """DescribeUserScramCredentials of all users: only the answer names them."""

    name = DescribeUserScramCredentials.name
    permission = DescribeUserScramCredentials.permission
    since = DescribeUserScramCredentials.since
    request_class = DescribeUserScramCredentialsRequest
    response_class = DescribeUserScramCredentialsResponse

    def __init__(self) -> None:
        """Ask for everybody."""
        super().__init__(AnyNode(), [ONLY])

    def build(self, items: Sequence[str], version: int) -> DescribeUserScramCredentialsRequest:
        """Ask for all users.

        Null would mean the same as no users. But Kafka 4.4 never answers null if it refuses the
        client: to build the refusal, it goes through the users.
        """
        return DescribeUserScramCredentialsRequest(users=[])

    def outcomes(
        self,
        answer: DescribeUserScramCredentialsResponse,
        items: Sequence[str],
        source: AnswerSource,
    ) -> Iterator[tuple[str, Meaning[OperationResults[str, Credentials]]]]:
        """Return the credentials of each user, in the order of their names."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code, answer.error_message)
            return
        results = sorted(answer.results, key=lambda result: result.user)
        described: OperationResults[str, Credentials] = OperationResults(
            [result.user for result in results], throttle_time_ms=answer.throttle_time_ms
        )
        for result in results:
            if result.error_code:
                refusal = self.refusal(ONLY, result.error_code, result.error_message)
                words = result.error_message or error_description(result.error_code)
                text = f"{self.api} of user {result.user!r}: {words}"
                described.errors[result.user] = reworded(refusal.error, text)
            else:
                described.values[result.user] = _infos(result.credential_infos)
        yield ONLY, Done(described)


def _infos(infos: Iterable[CredentialInfo]) -> Credentials:
    return tuple(
        ScramCredentialInfo(UserScramMechanism(info.mechanism), info.iterations) for info in infos
    )


# ---- alter ----


def rounds_of(
    upsertions: Iterable[UserScramCredentialUpsertion],
    deletions: Iterable[UserScramCredentialDeletion],
) -> list[list[Alteration]]:
    """Return alterations in rounds that have each user once: brokers with KRaft refuse others.

    Raises:
        UsageError: an alteration is one that brokers would refuse, or another one undoes it.
    """
    rounds: list[list[Alteration]] = []
    counts: dict[str, int] = {}
    seen: set[tuple[str, int]] = set()
    alterations: list[Alteration] = [*upsertions, *deletions]
    for alteration in alterations:
        _check_alteration(alteration)
        user, mechanism = alteration.user, alteration.mechanism
        if (user, mechanism) in seen:
            raise UsageError(f"{NAME}: {mechanism.mechanism_name} of user {user!r} is named twice")
        seen.add((user, mechanism))
        number = counts.get(user, 0)
        counts[user] = number + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(alteration)
    return rounds


def _check_alteration(alteration: Alteration) -> None:
    if not isinstance(alteration, (UserScramCredentialUpsertion, UserScramCredentialDeletion)):
        kind = type(alteration).__name__
        raise UsageError(f"{NAME}: {kind} is no upsertion and no deletion of a credential")
    user, mechanism = alteration.user, alteration.mechanism
    if not isinstance(user, str) or not user:
        raise UsageError(f"{NAME}: a user's name is a text that is not empty, not {user!r}")
    if not isinstance(mechanism, UserScramMechanism) or not mechanism:
        raise UsageError(f"{NAME}: a mechanism of user {user!r} cannot be {mechanism!r}")
    if isinstance(alteration, UserScramCredentialDeletion):
        return
    iterations = alteration.iterations
    if not isinstance(iterations, int) or not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise UsageError(
            f"{NAME}: user {user!r} cannot have {iterations!r} iterations: brokers take "
            f"{MIN_ITERATIONS} to {MAX_ITERATIONS}"
        )
    if not isinstance(alteration.password, (str, Secret)):
        kind = type(alteration.password).__name__
        raise UsageError(f"{NAME}: the password of user {user!r} is a text, not {kind}")


class SaltedAlteration(Value, eq=False):
    """An alteration as brokers get it. What it holds is as good as the password."""

    user: str
    mechanism: int
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes | None = None
    """None: the credential is deleted."""

    def __repr__(self) -> str:
        return f"SaltedAlteration(user={self.user!r}, mechanism={self.mechanism})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("what is made of a password is not pickled")


def salted_alteration(
    alteration: Alteration, random_bytes: Callable[[int], bytes]
) -> SaltedAlteration:
    """Return an alteration as brokers get it. Hashing takes milliseconds; any thread.

    Args:
        alteration: one that was checked.
        random_bytes: returns so many random bytes, for a salt.

    Raises:
        KafkaError: there is no password, or none that can be sent.
    """
    if isinstance(alteration, UserScramCredentialDeletion):
        return SaltedAlteration(alteration.user, alteration.mechanism)
    from kafka_fast.control.authentication.scram import HASHES, salted_password

    salt = random_bytes(SALT_BYTES)
    password = _password(alteration)
    try:
        salted = salted_password(
            HASHES[alteration.mechanism.mechanism_name], password, salt, alteration.iterations
        )
    finally:
        del password  # a traceback that has this frame shows no secret
    return SaltedAlteration(
        alteration.user, alteration.mechanism, alteration.iterations, salt, salted
    )


def _password(upsertion: UserScramCredentialUpsertion) -> bytes:
    source = upsertion.password
    secret = source if isinstance(source, Secret) else Secret(source)
    del source
    password = told_secret(secret, "password", f"{NAME}: user {upsertion.user!r}")
    if password:
        return password
    raise UsageError(f"{NAME}: the password of user {upsertion.user!r} is empty")


class AlterUserScramCredentials(Operation[str, None]):
    """AlterUserScramCredentials, of each user once."""

    name = NAME
    noun = "user"
    permission = "ALTER on the cluster"
    since = "2.7"
    explained: ClassVar[Mapping[int, str]] = {
        ErrorCode.RESOURCE_NOT_FOUND: "an earlier try, of which no answer came, may have deleted it"
    }
    request_class = AlterUserScramCredentialsRequest
    response_class = AlterUserScramCredentialsResponse

    def __init__(self, alterations: Iterable[SaltedAlteration]) -> None:
        """Take the alterations, one of each user."""
        self._alterations = {alteration.user: alteration for alteration in alterations}
        super().__init__(Controller(), self._alterations)

    def build(self, items: Sequence[str], version: int) -> AlterUserScramCredentialsRequest:
        """Ask for the alterations."""
        request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[])
        for item in items:
            alteration = self._alterations[item]
            if alteration.salted_password is None:
                request.deletions.append(
                    ScramCredentialDeletion(name=item, mechanism=alteration.mechanism)
                )
            else:
                request.upsertions.append(
                    ScramCredentialUpsertion(
                        name=item,
                        mechanism=alteration.mechanism,
                        iterations=alteration.iterations,
                        salt=alteration.salt,
                        salted_password=alteration.salted_password,
                    )
                )
        return request

    def outcomes(
        self,
        answer: AlterUserScramCredentialsResponse,
        items: Sequence[str],
        source: AnswerSource,
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Return whose credential was altered."""
        for result in answer.results:
            user, code = result.user, result.error_code
            yield user, self.done_or_refusal(user, code, result.error_message)
