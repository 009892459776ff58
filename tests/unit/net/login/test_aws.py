from __future__ import annotations

import base64
import datetime as dt
import json
import logging
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

import kafka_fast
from kafka_fast.config.security._security_settings import SaslSettings
from kafka_fast.errors import (
    AuthenticationError,
    KafkaConnectionError,
    MissingPackageError,
)
from kafka_fast.net.login import make_mechanism, packages
from kafka_fast.net.login.aws import AwsLogin
from kafka_fast.net.login.user_tokens import user_tokens
from tests.unit.canary import CANARY, traces
from tests.unit.control.authentication.conversing import converse

NOW = 1_700_000_000.75
HOST = "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com"


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide those of this machine, and its network."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
                 "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ROLE_ARN"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)


def request_of(login: AwsLogin, host: str = HOST) -> dict[str, str]:
    request: dict[str, str] = json.loads(login.request(host))
    return request


@pytest.mark.usefixtures("environment")
def test_credentials_of_the_environment() -> None:
    request = request_of(AwsLogin(wall=lambda: NOW))
    assert request["x-amz-credential"] == "AKID/20231114/eu-west-1/kafka-cluster/aws4_request"
    assert request["user-agent"] == f"kafka_fast/{kafka_fast.__version__}"
    assert "x-amz-security-token" not in request


def test_credentials_and_region_of_a_profile(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[profile other]\nregion = ap-south-1\n")
    (tmp_path / "credentials").write_text(
        "[other]\naws_access_key_id = OTHER\naws_secret_access_key = x\naws_session_token = t\n"
    )
    request = request_of(AwsLogin(profile="other", wall=lambda: NOW), "localhost")
    assert request["x-amz-credential"] == "OTHER/20231114/ap-south-1/kafka-cluster/aws4_request"
    assert request["x-amz-security-token"] == "t"


@pytest.mark.usefixtures("environment")
def test_the_users_region_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert "/us-west-2/" in request_of(AwsLogin("us-west-2"))["x-amz-credential"]
    assert "/eu-west-1/" in request_of(AwsLogin())["x-amz-credential"]
    assert "/us-east-1/" in request_of(AwsLogin(), "localhost")["x-amz-credential"]


@pytest.mark.usefixtures("environment")
def test_no_region() -> None:
    with pytest.raises(AuthenticationError, match="needs an AWS region") as caught:
        AwsLogin().request("localhost")
    assert traces(caught.value) == []


class Sts:
    """Answers for AWS's service, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[dict[str, str]] = []
        self.error = error

    def assume_role(self, **named: str) -> dict[str, Any]:
        self.asked.append(named)
        if self.error is not None:
            raise self.error
        until = dt.datetime.now(dt.timezone.utc) + dt.timedelta(hours=1)
        return {
            "Credentials": {
                "AccessKeyId": f"ASIA{len(self.asked)}",
                "SecretAccessKey": "x",
                "SessionToken": "t",
                "Expiration": until,
            }
        }


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Sts:
    service = Sts()
    monkeypatch.setattr(
        botocore.session.Session, "create_client", lambda self, name, **_: {"sts": service}[name]
    )
    return service


@pytest.mark.usefixtures("environment")
def test_a_role_is_assumed_once_while_it_lasts(sts: Sts) -> None:
    role = "arn:aws:iam::1:role/kafka"
    login = AwsLogin("eu-west-1", role_arn=role, role_session_name="me")
    for _ in range(3):
        request = request_of(login)
        assert request["x-amz-credential"].startswith("ASIA1/")
        assert request["x-amz-security-token"] == "t"
    assert sts.asked == [{"RoleArn": role, "RoleSessionName": "me"}]


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (
            ClientError({"Error": {"Code": "AccessDenied", "Message": "no\r\n"}}, "AssumeRole"),
            AuthenticationError,
            r"AccessDenied.*no\\r\\n",
        ),
        (
            EndpointConnectionError(endpoint_url="https://sts.amazonaws.com/"),
            KafkaConnectionError,
            "Could not connect",
        ),
    ],
)
def test_a_role_that_cannot_be_assumed(
    sts: Sts, error: Exception, kind: type[Exception], text: str
) -> None:
    sts.error = error
    with pytest.raises(KafkaConnectionError, match=text) as caught:
        AwsLogin("eu-west-1", role_arn="arn:aws:iam::1:role/kafka").request(HOST)
    assert type(caught.value) is kind
    assert traces(caught.value) == []


def test_no_credentials() -> None:
    with pytest.raises(AuthenticationError, match="needs AWS credentials, and botocore finds none"):
        AwsLogin().request(HOST)


def test_a_profile_that_is_not_there() -> None:
    with pytest.raises(AuthenticationError, match=r"profile .*nobody"):
        AwsLogin(profile="nobody").request(HOST)


def test_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"pip install botocore"):
        make_mechanism(SaslSettings(mechanism="AWS_MSK_IAM"))


@pytest.mark.usefixtures("environment")
def test_the_mechanism(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    mechanism = make_mechanism(SaslSettings(mechanism="AWS_MSK_IAM", aws_region="us-east-1"))
    assert mechanism.name == "AWS_MSK_IAM"
    (said,) = converse(mechanism.converse(HOST), b"{}")
    assert json.loads(said)["host"] == HOST
    assert "/us-east-1/" in json.loads(said)["x-amz-credential"]
    assert CANARY not in caplog.text


def url_of(token: str) -> str:
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


@pytest.mark.usefixtures("environment")
def test_tokens_without_a_provider() -> None:
    mechanism = make_mechanism(
        SaslSettings(mechanism="OAUTHBEARER", uses_aws_token=True, aws_region="eu-west-1")
    )
    (said,) = converse(mechanism.converse(HOST), b"")
    token = said.removeprefix(b"n,,\1auth=Bearer ").removesuffix(b"\1\1").decode()
    assert url_of(token).startswith("https://kafka.eu-west-1.amazonaws.com/?Action=")


@pytest.mark.parametrize("name", ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"])
@pytest.mark.usefixtures("environment")
def test_credentials_that_are_no_text_are_refused_and_not_shown(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"AWS_{name}", CANARY + "\udcff")  # a byte that is no UTF-8
    with pytest.raises(AuthenticationError, match="ASCII characters only") as caught:
        AwsLogin().request(HOST)
    assert traces(caught.value) == []


@pytest.mark.usefixtures("environment")
def test_a_token_provider() -> None:
    provider = kafka_fast.aws_msk_token_provider("eu-west-1")
    token = user_tokens(provider, None)()
    url = url_of(token.value.reveal())
    assert url.startswith("https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect&")
    moment = dt.datetime.strptime(url.partition("X-Amz-Date=")[2][:16], "%Y%m%dT%H%M%S%z")
    assert token.expires_at == moment.timestamp() + 900


@pytest.mark.usefixtures("environment")
def test_a_token_provider_takes_the_region_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert "kafka.us-east-1." in url_of(kafka_fast.aws_msk_token_provider()()[0])
