"""DescribeUserScramCredentials (50): which SCRAM credentials users have (KIP-554)."""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class UserName(Struct):
    """An entry of `DescribeUserScramCredentialsRequest.users`."""

    name: str = string("0+")


class DescribeUserScramCredentialsRequest(Request, api_key=50, versions="0", flexible="0+"):
    """The users; null or no users means all of them."""

    users: list[UserName] | None = array(UserName, "0+", nullable="0+")


class CredentialInfo(Struct):
    """An entry of `DescribeUserScramCredentialsResult.credential_infos`."""

    mechanism: int = int8("0+")
    iterations: int = int32("0+")


class DescribeUserScramCredentialsResult(Struct):
    """An entry of `DescribeUserScramCredentialsResponse.results`."""

    user: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    credential_infos: list[CredentialInfo] = array(CredentialInfo, "0+")


class DescribeUserScramCredentialsResponse(Response, api_key=50, versions="0", flexible="0+"):
    """Mechanisms and iterations; no salts and no passwords."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array(
        DescribeUserScramCredentialsResult, "0+"
    )
