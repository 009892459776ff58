"""SASL AWS_MSK_IAM: a request to connect, signed with AWS credentials.

MSK takes a URL that is signed alike as a token of OAUTHBEARER.

    {"version": "2020_10_22", "host": …, "action": …, "x-amz-signature": …}  ──►
                                                       ◄── {"version": …, "request-id": …}

Both are presigned URLs of Signature Version 4: query parameters, and a signature over them and the
host. The signer is our own: botocore's writes what it signs, session tokens with it, into its log.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from urllib.parse import quote

from kafka_fast.control.authentication.mechanism import Conversation, Work
from kafka_fast.secret import Secret
from kafka_fast.values import Value

__all__ = [
    "LIFE_S",
    "AwsCredentials",
    "AwsMskIamMechanism",
    "connect_request",
    "connect_token",
    "region_of",
]

LIFE_S = 900
"""Seconds for which a signature is good."""

_VERSION = "2020_10_22"
_SERVICE = "kafka-cluster"
_ALGORITHM = "AWS4-HMAC-SHA256"
_EMPTY = hashlib.sha256(b"").hexdigest()
_MSK_HOST = re.compile(
    r".+\.kafka(?:-serverless)?(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-\d+)\.amazonaws\.com(?:\.cn)?",
    re.IGNORECASE,
)


class AwsCredentials(Value, eq=False):
    """What signs: an access key, and the session it belongs to if it is temporary."""

    access_key: str
    secret_key: Secret
    session_token: Secret | None = None


class AwsMskIamMechanism:
    """AWS_MSK_IAM with the credentials of one client. Thread: control, but for `sign`."""

    name = "AWS_MSK_IAM"

    def __init__(self, sign: Callable[[str], bytes]) -> None:
        """Take what signs.

        Args:
            sign: returns the signed request to connect to a broker of that name. Called as `Work`:
                it may ask AWS for credentials.
        """
        self._sign = sign

    def converse(self, host: str) -> Conversation:
        """Send one message: a request to connect to the broker of that name, signed."""
        # Nothing here holds the message, which has the session's token in it. The answer names
        # MSK's own request, and proves nothing.
        yield (yield Work(lambda: self._sign(host), "AWS credentials are asked for"))


def connect_request(
    host: str, region: str, credentials: AwsCredentials, now: float, user_agent: str
) -> bytes:
    """Return the only message of AWS_MSK_IAM.

    Args:
        host: the broker's name, as the client connects to it.
        region: of the cluster.
        credentials: sign the request.
        now: Unix seconds.
        user_agent: this client, for AWS's logs.
    """
    query = _signed_query(host, region, credentials, now)
    request = {"version": _VERSION, "host": host, "user-agent": user_agent}
    request.update((name.lower(), value) for name, value in query.items())
    return json.dumps(request, separators=(",", ":")).encode()


def connect_token(region: str, credentials: AwsCredentials, now: float, user_agent: str) -> str:
    """Return MSK's token for OAUTHBEARER: a presigned URL in base64."""
    host = f"kafka.{region}.amazonaws.com"
    query = _signed_query(host, region, credentials, now)
    query["User-Agent"] = user_agent  # added after the signature, as AWS's own signers do
    url = f"https://{host}/?{_encoded(query)}"
    return base64.urlsafe_b64encode(url.encode()).rstrip(b"=").decode()


def region_of(host: str) -> str | None:
    """Return the region in the name of one of MSK's brokers, or None."""
    match = _MSK_HOST.fullmatch(host)
    return None if match is None else match[1].lower()


def _signed_query(
    host: str, region: str, credentials: AwsCredentials, now: float
) -> dict[str, str]:
    """Return the parameters of the presigned URL, the last of which is its signature."""
    moment = dt.datetime.fromtimestamp(int(now), dt.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    scope = (moment[:8], region, _SERVICE, "aws4_request")
    query = {
        "Action": f"{_SERVICE}:Connect",
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": "/".join((credentials.access_key, *scope)),
        "X-Amz-Date": moment,
        "X-Amz-Expires": str(LIFE_S),
        "X-Amz-SignedHeaders": "host",
    }
    if credentials.session_token is not None:
        query["X-Amz-Security-Token"] = credentials.session_token.reveal()
    canonical = "\n".join(
        ("GET", "/", _encoded(dict(sorted(query.items()))), f"host:{host}", "", "host", _EMPTY)
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    said = "\n".join((_ALGORITHM, moment, "/".join(scope), digest))
    key = b"AWS4" + credentials.secret_key.reveal().encode()
    for part in (*scope, said):
        key = hmac.digest(key, part.encode(), "sha256")
    query["X-Amz-Signature"] = key.hex()
    return query


def _encoded(query: Mapping[str, str]) -> str:
    return "&".join(
        [f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in query.items()]
    )
