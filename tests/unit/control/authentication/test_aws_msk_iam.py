from __future__ import annotations

import base64
import datetime as dt
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import botocore.auth
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from kafka_fast.control.authentication.aws_msk_iam import (
    AwsCredentials,
    AwsMskIamMechanism,
    connect_request,
    connect_token,
    region_of,
)
from kafka_fast.secret import Secret
from tests.unit.control.authentication.conversing import converse

NOW = 1_700_000_000.75
HOST = "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com"
KEY = "AKIDEXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SESSION = "FwoGZXIvYXdzEBYaDK/+=session token"
TEMPORARY = AwsCredentials(KEY, Secret(SECRET), Secret(SESSION))
LASTING = AwsCredentials(KEY, Secret(SECRET))


def signed_by_botocore(
    monkeypatch: pytest.MonkeyPatch, host: str, token: str | None
) -> tuple[str, dict[str, str]]:
    """Return the URL that botocore's own signer makes at NOW, and its parameters."""
    moment = dt.datetime.fromtimestamp(int(NOW), dt.timezone.utc)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *_: moment)
    request = AWSRequest("GET", f"https://{host}/", params={"Action": "kafka-cluster:Connect"})
    signer = SigV4QueryAuth(
        Credentials(KEY, SECRET, token), "kafka-cluster", "eu-west-1", expires=900
    )
    signer.add_auth(request)
    return request.url, dict(parse_qsl(urlsplit(request.url).query))


def test_the_signed_request() -> None:
    """Fixed: what other signers made of the same."""
    assert connect_request(HOST, "eu-west-1", LASTING, NOW, "kafka_fast/1").decode() == (
        '{"version":"2020_10_22",'
        '"host":"b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com",'
        '"user-agent":"kafka_fast/1",'
        '"action":"kafka-cluster:Connect",'
        '"x-amz-algorithm":"AWS4-HMAC-SHA256",'
        '"x-amz-credential":"AKIDEXAMPLE/20231114/eu-west-1/kafka-cluster/aws4_request",'
        '"x-amz-date":"20231114T221320Z",'
        '"x-amz-expires":"900",'
        '"x-amz-signedheaders":"host",'
        '"x-amz-signature":"18fea88ddec6ba90d99ad16095a1a047426c3ec39b5159711b9d86ca3bdc382a"}'
    )


@pytest.mark.parametrize(("credentials", "token"), [(LASTING, None), (TEMPORARY, SESSION)])
def test_the_request_has_botocores_signature(
    monkeypatch: pytest.MonkeyPatch, credentials: AwsCredentials, token: str | None
) -> None:
    request = json.loads(connect_request(HOST, "eu-west-1", credentials, NOW, "agent"))
    _, expected = signed_by_botocore(monkeypatch, HOST, token)
    fixed = {"version": "2020_10_22", "host": HOST, "user-agent": "agent"}
    assert request == fixed | {name.lower(): value for name, value in expected.items()}
    assert request.get("x-amz-security-token") == token


def test_the_request_has_the_signature_of_kafka_python(monkeypatch: pytest.MonkeyPatch) -> None:
    msk = pytest.importorskip("kafka.net.sasl.msk")

    class Clock(dt.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.fromtimestamp(int(NOW), tz)

    monkeypatch.setattr(msk.datetime, "datetime", Clock)
    client = msk.AwsMskIamClient(HOST, KEY, SECRET, "eu-west-1", SESSION)
    request = json.loads(connect_request(HOST, "eu-west-1", TEMPORARY, NOW, "kafka-python"))
    assert request == json.loads(client.first_message())


@pytest.mark.parametrize(("credentials", "token"), [(LASTING, None), (TEMPORARY, SESSION)])
def test_the_token_is_that_of_awss_own_signer(
    monkeypatch: pytest.MonkeyPatch, credentials: AwsCredentials, token: str | None
) -> None:
    url, _ = signed_by_botocore(monkeypatch, "kafka.eu-west-1.amazonaws.com", token)
    made = connect_token("eu-west-1", credentials, NOW, "agent/1")
    assert "=" not in made
    assert base64.urlsafe_b64decode(made + "=" * (-len(made) % 4)).decode() == (
        f"{url}&User-Agent=agent%2F1"
    )


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (HOST, "eu-west-1"),
        (HOST.upper(), "eu-west-1"),
        ("boot-x.c1.kafka-serverless.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("b-1.x.c2.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("b-1-public.x.c2.kafka.ap-southeast-2.amazonaws.com", "ap-southeast-2"),
        ("localhost", None),
        ("kafka.eu-west-1.amazonaws.com", None),
        ("b-1.x.kafka.eu-west-1.amazonaws.com.example.org", None),
        ("b-1.x.s3.eu-west-1.amazonaws.com", None),
    ],
)
def test_the_region_in_a_brokers_name(host: str, region: str | None) -> None:
    assert region_of(host) == region


def test_the_conversation_is_one_message() -> None:
    mechanism = AwsMskIamMechanism(lambda host: f"signed for {host}".encode())
    answer = b'{"version":"2020_10_22","request-id":"1"}'
    assert converse(mechanism.converse("b-1"), answer) == [b"signed for b-1"]
