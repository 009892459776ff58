"""How a client secures its connections: the settings of TLS and SASL, without contradictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_fast.secret import Secret
from kafka_fast.values import Value

if TYPE_CHECKING:
    import ssl  # half of the clients need none of it

__all__ = ["OidcSettings", "SaslSettings", "Store", "TlsSettings"]


class Store(Value, kw_only=True):
    """Certificates, or a private key with its certificates: a file, or texts in PEM.

    Either `location` is given, or the texts are.
    """

    location: str | None = None
    """A file, whose content tells its type. Of PEM, a key store may hold the key, too."""
    key_location: str | None = None
    """A file with the PEM private key, if it is not in `location`."""
    password: Secret | None = None
    """Of a PKCS12 or JKS file."""
    key_password: Secret | None = None
    """Of an encrypted private key."""
    key: Secret | None = None
    """The private key, in PEM."""
    certificates: str | None = None
    """Certificates, in PEM."""


class TlsSettings(Value, kw_only=True):
    """How TLS is spoken."""

    truststore: Store | None = None
    """The certificates that are trusted; None: those of the system."""
    keystore: Store | None = None
    """What this client shows if a broker asks for a certificate; None: nothing."""
    minimum_version: str = "TLSv1.2"
    maximum_version: str = "TLSv1.3"
    cipher_suites: tuple[str, ...] = ()
    """OpenSSL's names for TLS 1.2, which may be a cipher string; empty: the library's choice."""
    tls13_cipher_suites: tuple[str, ...] = ()
    """Names of TLS 1.3 (TLS_AES_128_GCM_SHA256 …); empty: the library's choice."""
    checks_host: bool = True
    """Whether the broker's certificate must name its host."""
    verifies: bool = True
    """Whether the broker's certificate must be trusted (librdkafka can switch that off)."""
    crl_location: str | None = None
    """A PEM file with revocation lists; None: nothing is checked for revocation."""
    key_log_location: str | None = None
    """A file to which the session keys are written, for a packet analyser; None: none is."""
    context: ssl.SSLContext | None = None
    """The user's own context, used to the letter; the other fields are not used then."""


class OidcSettings(Value, kw_only=True):
    """How tokens are asked of an identity provider (KIP-768, KIP-1139, KIP-1258)."""

    grant: str = "client_credentials"
    """`client_credentials`, or `urn:ietf:params:oauth:grant-type:jwt-bearer`."""
    token_endpoint_url: str
    allowed_urls: tuple[str, ...] = ()
    """If not empty, `token_endpoint_url` must be one of these."""
    scope: str | None = None
    client_id: str | None = None
    client_secret: Secret | None = None
    urlencodes_credentials: bool = False
    ca_location: str | None = None
    """A PEM file with the certificates trusted for https; None: the system's."""
    ca_certificates: str | None = None
    """The same, as a text in PEM."""
    connect_timeout: float = 10.0
    read_timeout: float = 10.0
    assertion_file: str | None = None
    assertion_key_file: str | None = None
    assertion_key: Secret | None = None
    assertion_key_password: Secret | None = None
    assertion_template_file: str | None = None
    assertion_algorithm: str = "RS256"
    assertion_audience: str | None = None
    assertion_issuer: str | None = None
    assertion_subject: str | None = None
    assertion_lifetime_s: int = 300
    assertion_not_before_s: int = 60
    assertion_has_id: bool = False


class SaslSettings(Value, kw_only=True):
    """How this client says who it is."""

    mechanism: str
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI or AWS_MSK_IAM."""
    username: str | None = None
    password: Secret | None = None
    is_token: bool = False
    """SCRAM: the user and password are the id and HMAC of a delegation token."""
    extensions: tuple[tuple[str, str], ...] = ()
    """SCRAM's or OAUTHBEARER's."""
    scram_max_iterations: int = 1_000_000
    token_provider: Callable[..., object] | None = None
    """OAUTHBEARER: the user's callable or object with `token()`, or librdkafka's `oauth_cb`."""
    token_provider_config: str | None = None
    """`sasl.oauthbearer.config`: if set, `token_provider` is called with it (librdkafka)."""
    uses_aws_token: bool = False
    """OAUTHBEARER: tokens are made of AWS credentials, for MSK; the fields `aws_*` say which."""
    token_file: str | None = None
    """OAUTHBEARER: a file that holds the token, read anew for each one."""
    oidc: OidcSettings | None = None
    refresh_window_factor: float = 0.8
    refresh_window_jitter: float = 0.05
    refresh_min_period_s: int = 60
    refresh_buffer_s: int = 300
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    kerberos_service_name: str | None = None
    kerberos_principal: str | None = None
    kerberos_keytab: str | None = None
    """A file with the client's key; None: the ticket cache is used."""
    kerberos_domain_name: str | None = None
    """The host in the service's principal; None: the broker's."""
    aws_region: str | None = None
    aws_profile: str | None = None
    aws_role_arn: str | None = None
    aws_role_session_name: str | None = None
