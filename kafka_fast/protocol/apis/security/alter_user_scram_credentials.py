"""AlterUserScramCredentials (51): what a broker keeps of SCRAM passwords (KIP-554)."""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bytes_,
    int8,
    int16,
    int32,
    string,
)


class ScramCredentialDeletion(Struct):
    """An entry of `AlterUserScramCredentialsRequest.deletions`."""

    name: str = string("0+")
    mechanism: int = int8("0+")


class ScramCredentialUpsertion(Struct):
    """An entry of `AlterUserScramCredentialsRequest.upsertions`."""

    name: str = string("0+")
    mechanism: int = int8("0+")
    iterations: int = int32("0+")
    salt: bytes = bytes_("0+")
    salted_password: bytes = bytes_("0+")


class AlterUserScramCredentialsRequest(Request, api_key=51, versions="0", flexible="0+"):
    """The credentials to remove and to set."""

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion, "0+")
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion, "0+")


class AlterUserScramCredentialsResult(Struct):
    """An entry of `AlterUserScramCredentialsResponse.results`."""

    user: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class AlterUserScramCredentialsResponse(Response, api_key=51, versions="0", flexible="0+"):
    """One result for each user."""

    throttle_time_ms: int = int32("0+")
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult, "0+")
