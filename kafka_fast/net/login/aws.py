"""AWS credentials: from the environment, a profile, a container or an instance, as botocore does.

They sign the requests of AWS_MSK_IAM, and MSK's tokens for OAUTHBEARER.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from kafka_fast._version import __version__
from kafka_fast.control.authentication.aws_msk_iam import (
    LIFE_S,
    AwsCredentials,
    connect_request,
    connect_token,
    region_of,
)
from kafka_fast.control.authentication.peer_text import as_told
from kafka_fast.errors import AuthenticationError, ConnectionReason, KafkaConnectionError
from kafka_fast.net.login.packages import require_package
from kafka_fast.secret import Secret

__all__ = ["AwsLogin"]

USER_AGENT = f"kafka_fast/{__version__}"
SESSION_NAME = "kafka_fast"
"""Of an assumed role, if the user gives none."""


class AwsLogin:
    """Signs with the credentials that botocore finds, and renews. Any thread that may block."""

    def __init__(
        self,
        region: str | None = None,
        *,
        profile: str | None = None,
        role_arn: str | None = None,
        role_session_name: str | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Take the settings; nothing is asked for yet.

        Args:
            region: of the cluster. None: that in the broker's name, or the profile's.
            profile: a profile of the AWS configuration; None: the chain's own choice.
            role_arn: a role to assume with these credentials.
            role_session_name: a name for that, seen in AWS's logs.
            wall: returns the Unix time in seconds.

        Raises:
            MissingPackageError: botocore is not installed.
        """
        require_package("botocore", extra="aws", what="to authenticate with AWS")
        self._region = region
        self._profile = profile
        self._role = role_arn
        self._session_name = role_session_name or SESSION_NAME
        self._wall = wall
        self._lock = threading.Lock()
        self._session: Any = None
        self._found: Any = None  # botocore's credentials: they renew themselves

    def request(self, host: str) -> bytes:
        """Return the signed request of AWS_MSK_IAM.

        Raises:
            AuthenticationError: there are no credentials, or no region.
            KafkaConnectionError: AWS cannot be asked for credentials now.
        """
        credentials = self._credentials()
        region = self._region or region_of(host) or self._default_region()
        return connect_request(host, region, credentials, self._wall(), USER_AGENT)

    def token(self) -> tuple[str, float]:
        """Return a token for OAUTHBEARER, and the Unix time at which it ends.

        Raises:
            AuthenticationError: there are no credentials, or no region.
            KafkaConnectionError: AWS cannot be asked for credentials now.
        """
        credentials = self._credentials()
        now = self._wall()
        region = self._region or self._default_region()
        return connect_token(region, credentials, now, USER_AGENT), int(now) + LIFE_S

    def _credentials(self) -> AwsCredentials:
        """Return what signs now. Links that ask at the same time wait for one request of AWS."""
        frozen = self._frozen()
        if isinstance(frozen, KafkaConnectionError):
            raise frozen
        return frozen

    def _frozen(self) -> AwsCredentials | KafkaConnectionError:
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            HTTPClientError,
        )
        from botocore.exceptions import (
            ConnectionError as NotConnectedError,
        )

        try:
            with self._lock:
                if self._found is None:
                    self._found = self._search()
                if self._found is None:
                    return AuthenticationError("needs AWS credentials, and botocore finds none")
                frozen = self._found.get_frozen_credentials()
        except (NotConnectedError, HTTPClientError) as error:
            return KafkaConnectionError(
                f"needs AWS credentials: {as_told(str(error))}", reason=ConnectionReason.LOGIN
            )
        except (BotoCoreError, ClientError) as error:
            return AuthenticationError(f"needs AWS credentials: {as_told(str(error))}")
        if not frozen.access_key or not frozen.secret_key:
            return AuthenticationError("needs AWS credentials, and botocore finds empty ones")
        if not "".join((frozen.access_key, frozen.secret_key, frozen.token or "")).isascii():
            # An encoder's error would have the secret in it.
            return AuthenticationError("needs AWS credentials, which have ASCII characters only")
        token = Secret(frozen.token) if frozen.token else None
        return AwsCredentials(frozen.access_key, Secret(frozen.secret_key), token)

    def _search(self) -> Any:
        """Return botocore's credentials, or None."""
        import botocore.session
        from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials

        self._session = botocore.session.Session(profile=self._profile)
        credentials = self._session.get_credentials()
        if credentials is None or self._role is None:
            return credentials
        fetcher = AssumeRoleCredentialFetcher(
            self._session.create_client,
            credentials,
            self._role,
            extra_args={"RoleSessionName": self._session_name},
        )
        return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")

    def _default_region(self) -> str:
        region = self._session.get_config_variable("region")
        if isinstance(region, str) and region:
            return region
        raise AuthenticationError(
            "needs an AWS region: its name has none, and the AWS configuration neither"
        )
