"""The properties as types, for editors and type checkers: names as keywords, and their values.

`Producer(**properties)` is `Unpack[ProducerProperties]`, and a function of yours may say the same.
The table that properties are read from is wider: it also takes numbers as strings, other clients'
names, and dotted names in a mapping. Keys whose feature this version lacks are left out. A test
holds this page and the table together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypedDict

from kafka_fast.config._settings import Partitioner
from kafka_fast.serialization import DeserializerLike, SerializerLike

if TYPE_CHECKING:
    import ssl

Password: TypeAlias = str | Callable[[], str]
"""A secret, or a function that returns it; the function may block."""


class HasToken(Protocol):
    """An object with a method for tokens, as kafka-python and aiokafka have it."""

    def token(self) -> object:
        """Return a token, or a pair of a token and the Unix time at which it expires."""
        ...


TokenProvider: TypeAlias = Callable[[], object] | HasToken


class SecurityProperties(TypedDict, total=False):
    """What every client takes to secure its connections."""

    ssl_truststore_location: str | None
    ssl_truststore_certificates: Password | None
    ssl_truststore_password: Password | None
    ssl_truststore_type: Literal["PEM", "PKCS12", "JKS"]
    ssl_keystore_location: str | None
    ssl_key_location: str | None
    ssl_keystore_password: Password | None
    ssl_keystore_type: Literal["PEM", "PKCS12", "JKS"]
    ssl_keystore_key: Password | None
    ssl_keystore_certificate_chain: Password | None
    ssl_key_password: Password | None
    ssl_crl_location: str | None
    ssl_enabled_protocols: str | Sequence[object]
    ssl_protocol: Literal["TLSv1.2", "TLSv1.3"]
    ssl_cipher_suites: str | Sequence[object]
    ssl_endpoint_identification_algorithm: Literal["https", ""] | None
    enable_ssl_certificate_verification: bool
    ssl_context: ssl.SSLContext | None
    ssl_keylog_location: str | None
    sasl_mechanism: Literal[
        "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"
    ]
    sasl_username: str | None
    sasl_password: Password | None
    sasl_jaas_config: Password | None
    allow_insecure_sasl: bool
    sasl_kerberos_service_name: str | None
    sasl_kerberos_principal: str | None
    sasl_kerberos_keytab: str | None
    sasl_kerberos_domain_name: str | None
    sasl_aws_region: str | None
    sasl_aws_profile: str | None
    sasl_aws_role_arn: str | None
    sasl_aws_role_session_name: str | None
    sasl_client_callback_handler_class: (
        Literal["software.amazon.msk.auth.iam.IAMClientCallbackHandler"] | None
    )
    sasl_login_callback_handler_class: (
        Literal[
            "OAuthBearerLoginCallbackHandler",
            "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
        ]
        | None
    )
    sasl_login_connect_timeout_ms: int | None
    sasl_login_read_timeout_ms: int | None
    sasl_login_refresh_window_factor: float
    sasl_login_refresh_window_jitter: float
    sasl_login_refresh_min_period_seconds: int
    sasl_login_refresh_buffer_seconds: int
    sasl_login_retry_backoff_ms: int
    sasl_login_retry_backoff_max_ms: int
    sasl_oauth_token_provider: TokenProvider | None
    oauth_cb: Callable[..., object] | None
    sasl_oauthbearer_config: str | None
    sasl_oauthbearer_method: Literal["default", "oidc", "aws_msk_iam"] | None
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_allowed_urls: str | Sequence[object]
    sasl_oauthbearer_grant_type: (
        Literal["client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"] | None
    )
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: Password | None
    sasl_oauthbearer_header_urlencode: bool
    sasl_oauthbearer_extensions: str | None
    https_ca_location: str | None
    https_ca_pem: Password | None
    sasl_oauthbearer_assertion_file: str | None
    sasl_oauthbearer_assertion_private_key_file: str | None
    sasl_oauthbearer_assertion_private_key_pem: Password | None
    sasl_oauthbearer_assertion_private_key_passphrase: Password | None
    sasl_oauthbearer_assertion_template_file: str | None
    sasl_oauthbearer_assertion_algorithm: Literal["RS256", "ES256"]
    sasl_oauthbearer_assertion_claim_aud: str | None
    sasl_oauthbearer_assertion_claim_iss: str | None
    sasl_oauthbearer_assertion_claim_sub: str | None
    sasl_oauthbearer_assertion_claim_exp_seconds: int
    sasl_oauthbearer_assertion_claim_nbf_seconds: int
    sasl_oauthbearer_assertion_claim_jti_include: bool
    sasl_oauthbearer_jwt_retriever_class: (
        Literal[
            "DefaultJwtRetriever",
            "ClientCredentialsJwtRetriever",
            "JwtBearerJwtRetriever",
            "FileJwtRetriever",
        ]
        | None
    )


class CommonProperties(SecurityProperties, total=False):
    """What every client takes."""

    bootstrap_servers: str | Sequence[str]
    client_id: str
    client_dns_lookup: Literal["use_all_dns_ips"]
    request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    connections_max_idle_ms: int
    send_buffer_bytes: int | None
    receive_buffer_bytes: int | None
    receive_message_max_bytes: int
    metadata_max_age_ms: int
    metadata_recovery_strategy: Literal["rebootstrap", "none"]
    metadata_recovery_rebootstrap_trigger_ms: int
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    serializer_encoding: str


class ProducerProperties(CommonProperties, total=False):
    """What `Producer` takes."""

    key_serializer: SerializerLike | None
    value_serializer: SerializerLike | None
    acks: Literal[-1, 0, 1, "all"]
    enable_idempotence: bool
    retries: int
    max_in_flight_requests_per_connection: int
    delivery_timeout_ms: int
    linger_ms: int
    batch_size: int
    buffer_memory: int
    max_block_ms: int
    max_request_size: int
    request_coalesce_bytes: int
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    partitioner_class: Literal["default", "round_robin"] | Partitioner | None
    partitioner_adaptive_partitioning_enable: bool
    partitioner_availability_timeout_ms: int
    partitioner_ignore_keys: bool
    metadata_max_idle_ms: int
    exit_flush_timeout_ms: int
    exit_status_on_loss: int
    client_rack: str
    transactional_id: str | None
    transaction_timeout_ms: int


class ConsumerProperties(CommonProperties, total=False):
    """What `Consumer` and `read_range` take."""

    key_deserializer: DeserializerLike | None
    value_deserializer: DeserializerLike | None
    group_id: str | None
    group_instance_id: str | None
    group_protocol: Literal["classic", "consumer"]
    group_remote_assignor: str | None
    partition_assignment_strategy: str | Sequence[object]
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    auto_offset_reset: str
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    isolation_level: Literal["read_uncommitted", "read_committed"]
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    fetch_buffer_bytes: int
    max_decompressed_batch_bytes: int
    check_crcs: bool
    client_rack: str
    allow_auto_create_topics: bool
    exclude_internal_topics: bool
    default_api_timeout_ms: int


class AdminProperties(CommonProperties, total=False):
    """What `Admin` takes."""

    bootstrap_controllers: str | Sequence[object]
    default_api_timeout_ms: int
