"""Tokens for Amazon MSK over OAUTHBEARER, made with AWS credentials."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["aws_msk_token_provider"]


def aws_msk_token_provider(
    region: str | None = None,
    *,
    profile: str | None = None,
    role_arn: str | None = None,
    role_session_name: str | None = None,
) -> Callable[[], tuple[str, float]]:
    """Return a token provider for clusters of Amazon MSK with IAM access control.

        Producer({
            "bootstrap.servers": "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com:9098",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": aws_msk_token_provider("eu-west-1"),
        })

    `sasl.mechanism=AWS_MSK_IAM` does the same without a provider; other clients can use this one.
    Needs botocore (`pip install botocore`), whose chain finds the credentials: nothing is
    asked of AWS before the first connection.

    Args:
        region: of the cluster; None: that of the AWS configuration.
        profile: a profile of the AWS configuration.
        role_arn: a role to assume.
        role_session_name: a name for that, seen in AWS's logs.

    Returns:
        A function that returns a token, and the Unix time in seconds at which it ends.

    Raises:
        ConfigError: botocore is not installed.
    """
    from kafka_fast.net.login.aws import AwsLogin

    return AwsLogin(
        region, profile=profile, role_arn=role_arn, role_session_name=role_session_name
    ).token
