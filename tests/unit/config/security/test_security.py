"""TLS and SASL: what users write becomes one object of settings, or an error that names the key."""

from __future__ import annotations

import logging
import ssl
from typing import Any

import pytest

from kafka_fast import Producer
from kafka_fast.config import (
    CommonSettings,
    SaslSettings,
    Store,
    TlsSettings,
    consumer_settings,
    producer_settings,
)
from kafka_fast.errors import ConfigError

SERVERS = {"bootstrap.servers": "localhost:9092"}


def pem(label: str) -> str:
    body = "A" * 64 + "\n" + "B" * 10
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"


def settings_of(**properties: Any) -> CommonSettings:
    return producer_settings(SERVERS, properties)


def test_plaintext_has_neither() -> None:
    settings = settings_of()
    assert (settings.security_protocol, settings.tls, settings.sasl) == ("PLAINTEXT", None, None)


def test_protocol_says_which() -> None:
    user = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "u", "sasl_password": "p"}
    for settings in (producer_settings, consumer_settings):
        security = settings(SERVERS, {"security_protocol": "ssl"})
        assert security.tls is not None
        assert security.sasl is None
        security = settings(SERVERS, {"security_protocol": "sasl_plaintext", **user})
        assert security.tls is None
        assert security.sasl is not None
        security = settings(SERVERS, {"security_protocol": "SASL_SSL", **user})
        assert security.tls is not None
        assert security.sasl is not None


def test_user_and_password() -> None:
    sasl = settings_of(
        security_protocol="SASL_SSL",
        sasl_mechanism="plain",
        sasl_plain_username="alice",
        sasl_plain_password=" with spaces ",
    ).sasl
    assert sasl is not None
    assert (sasl.mechanism, sasl.username) == ("PLAIN", "alice")
    assert sasl.password is not None
    assert sasl.password.reveal() == " with spaces "
    assert "spaces" not in repr(sasl)


def test_context_is_used_to_the_letter() -> None:
    context = ssl.create_default_context()
    tls = settings_of(security_protocol="SSL", ssl_context=context).tls
    assert tls is not None
    assert tls.context is context
    with pytest.raises(ConfigError, match=r"ssl\.context.* set ssl\.truststore\.location in that"):
        settings_of(security_protocol="SSL", ssl_context=context, ssl_cafile="ca.pem")


# ---- TLS ----


def tls_of(**properties: Any) -> TlsSettings:
    tls = settings_of(security_protocol="SSL", **properties).tls
    assert tls is not None
    return tls


def test_defaults_of_tls() -> None:
    assert tls_of() == TlsSettings()
    assert tls_of().checks_host
    assert tls_of().verifies


@pytest.mark.parametrize(
    "name", ["ssl.truststore.location", "ssl.ca.location", "ssl_cafile", "SSL_CA_LOCATION"]
)
def test_names_of_the_truststore(name: str) -> None:
    assert tls_of(**{name: "/ca"}).truststore == Store(location="/ca")
    # Files of Java's users say JKS and are PKCS12: the content tells.
    assert tls_of(**{name: "/ca", "ssl.truststore.type": "JKS"}).truststore == Store(location="/ca")


def test_the_systems_certificates() -> None:
    assert tls_of(ssl_ca_location="probe").truststore is None


@pytest.mark.parametrize(
    "names",
    [
        ("ssl.keystore.location", "ssl.key.location", "ssl.key.password"),
        ("ssl.certificate.location", "ssl.key.location", "ssl.key.password"),
        ("ssl_certfile", "ssl_keyfile", "ssl_password"),
    ],
)
def test_names_of_the_keystore(names: tuple[str, str, str]) -> None:
    store = tls_of(**dict(zip(names, ("/cert", "/key", "geheim"), strict=True))).keystore
    assert store is not None
    assert (store.location, store.key_location) == ("/cert", "/key")
    assert store.key_password is not None
    assert store.key_password.reveal() == "geheim"


@pytest.mark.parametrize("separator", ["\n", " ", "\\n", "\r\n"])
def test_texts_in_pem_may_be_on_one_line(separator: str) -> None:
    certificate = pem("CERTIFICATE")
    key = pem("ENCRYPTED PRIVATE KEY")
    tls = tls_of(
        ssl_ca_pem=(certificate + certificate).replace("\n", separator),
        ssl_key_pem=key.replace("\n", separator),
        ssl_certificate_pem=certificate.replace("\n", separator),
    )
    assert tls.truststore == Store(certificates=certificate * 2)
    assert tls.keystore is not None
    assert tls.keystore.certificates == certificate
    assert tls.keystore.key is not None
    assert tls.keystore.key.reveal() == key


def test_a_key_may_come_from_a_function() -> None:
    calls = []

    def key() -> str:
        calls.append(1)
        return pem("PRIVATE KEY").replace("\n", " ")

    store = tls_of(ssl_keystore_key=key, ssl_certificate_pem=pem("CERTIFICATE")).keystore
    assert store is not None
    assert store.key is not None
    assert not calls
    assert store.key.reveal() == pem("PRIVATE KEY")


def test_old_encrypted_keys_keep_their_headers() -> None:
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n"
        "AAAA\n-----END RSA PRIVATE KEY-----\n"
    )
    store = tls_of(ssl_key_pem=key, ssl_certificate_pem=pem("CERTIFICATE")).keystore
    assert store is not None
    assert store.key is not None
    assert store.key.reveal() == key


@pytest.mark.parametrize(
    ("value", "checks"),
    [("https", True), ("HTTPS", True), ("", False), ("none", False), (True, True), (False, False)],
)
def test_check_of_the_host(value: object, checks: bool) -> None:
    assert tls_of(ssl_endpoint_identification_algorithm=value).checks_host is checks
    assert tls_of(ssl_check_hostname=value).checks_host is checks


@pytest.mark.parametrize(
    ("properties", "versions"),
    [
        ({}, ("TLSv1.2", "TLSv1.3")),
        ({"ssl.enabled.protocols": "TLSv1.3"}, ("TLSv1.3", "TLSv1.3")),
        ({"ssl.enabled.protocols": ["TLSv1.3", "TLSv1.2"]}, ("TLSv1.2", "TLSv1.3")),
        ({"ssl.protocol": "TLSv1.2"}, ("TLSv1.2", "TLSv1.2")),
        ({"ssl.protocol": "TLS"}, ("TLSv1.2", "TLSv1.3")),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, ("TLSv1.3", "TLSv1.3")),
        ({"ssl.cipher.suites": "TLS_RSA_WITH_AES_128_CBC_SHA"}, ("TLSv1.2", "TLSv1.2")),
        ({"ssl.ciphers": "HIGH:!MD5"}, ("TLSv1.2", "TLSv1.3")),
    ],
)
def test_versions(properties: dict[str, Any], versions: tuple[str, str]) -> None:
    tls = tls_of(**properties)
    assert (tls.minimum_version, tls.maximum_version) == versions


@pytest.mark.parametrize(
    ("properties", "what"),
    [
        ({"ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "'TLSv1.1' is not one of TLSv1.2, TLSv1.3"),
        ({"ssl.protocol": "SSLv3"}, "ssl.protocol: 'SSLv3' is not one of"),
        (
            {"ssl.protocol": "TLSv1.2", "ssl.enabled.protocols": "TLSv1.3"},
            "ssl.enabled.protocols and ssl.protocol leave no version",
        ),
        (
            {"ssl.protocol": "TLSv1.2", "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"},
            "a cipher suite is either of TLSv1.2 or of TLSv1.3",
        ),
        ({"ssl.key.location": "/k"}, "ssl.key.location needs ssl.certificate.location"),
        ({"ssl.key.pem": "canary"}, "ssl.keystore.certificate.chain is missing"),
        ({"ssl.certificate.pem": "canary"}, "ssl.keystore.key is missing"),
        ({"ssl.key.pem": "canary", "ssl.certificate.pem": "c"}, "ssl.keystore.key: no private key"),
        ({"ssl.ca.pem": "canary"}, "ssl.truststore.certificates: no certificate in PEM"),
        ({"ssl.ca.pem": "canary", "ssl.ca.location": "/ca"}, "are both given"),
        ({"ssl.key.pem": "canary", "ssl.certificate.location": "/ca"}, "are both given"),
        ({"ssl.truststore.type": "BCFKS"}, "'BCFKS' is not one of PEM, PKCS12, JKS"),
        ({"ssl.ca.pem": "c", "ssl.truststore.type": "JKS"}, "ssl.truststore.type=JKS contradicts"),
        ({"ssl.engine.factory.class": "com.example.X"}, "ssl_context= takes an ssl.SSLContext"),
        ({"ssl.context": "canary"}, "ssl.context: expected an ssl.SSLContext"),
    ],
)
def test_errors_of_tls_name_the_property(properties: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tls_of(**properties)
    assert what in str(caught.value)
    assert "canary" not in str(caught.value)


def test_a_private_key_is_no_certificate() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.truststore\.certificates is for certificates"):
        tls_of(ssl_ca_pem=pem("CERTIFICATE") + pem("PRIVATE KEY"))


def context(verify_mode: ssl.VerifyMode) -> ssl.SSLContext:
    made = ssl.create_default_context()
    made.check_hostname = False
    made.verify_mode = verify_mode
    return made


@pytest.mark.parametrize(
    ("properties", "what"),
    [
        ({"ssl_check_hostname": False}, "ssl.endpoint.identification.algorithm is empty"),
        ({"enable_ssl_certificate_verification": False}, "certificate.verification is false"),
        ({"ssl_context": context(ssl.CERT_REQUIRED)}, "check_hostname of ssl_context is false"),
        ({"ssl_context": context(ssl.CERT_NONE)}, "verify_mode of ssl_context is CERT_NONE"),
    ],
)
def test_a_client_that_checks_less_says_so_once(
    properties: dict[str, Any], what: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Producer(SERVERS, security_protocol="SSL", **properties):
        pass
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    (warning,) = [
        record for record in warnings if record.name != "kafka_fast.producer"
    ]  # no broker is there
    assert what in warning.getMessage()


# ---- SASL ----


def sasl_of(mechanism: str | None, protocol: str = "SASL_SSL", **properties: Any) -> SaslSettings:
    named = {} if mechanism is None else {"sasl.mechanism": mechanism}
    sasl = producer_settings({**SERVERS, "security.protocol": protocol, **named, **properties}).sasl
    assert sasl is not None
    return sasl


PACKAGE = "org.apache.kafka.common.security"
PLAIN_LOGIN = f"{PACKAGE}.plain.PlainLoginModule required username=u password=canary;"
SCRAM_LOGIN = f"{PACKAGE}.scram.ScramLoginModule required username=u password=canary"
OAUTH_LOGIN = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required"
KERBEROS_LOGIN = "com.sun.security.auth.module.Krb5LoginModule required"
AWS_LOGIN = "software.amazon.msk.auth.iam.IAMLoginModule required"
IAM_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
URL = "sasl.oauthbearer.token.endpoint.url"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "scram-sha-512"])
def test_scram(mechanism: str) -> None:
    sasl = sasl_of(mechanism, sasl_username="u", sasl_password="canary")
    assert (sasl.mechanism, sasl.username) == (mechanism.upper(), "u")
    assert not sasl.is_token
    sasl = sasl_of(mechanism, "SASL_PLAINTEXT", sasl_jaas_config=f"{SCRAM_LOGIN};")
    assert sasl.password is not None
    assert sasl.password.reveal() == "canary"
    assert sasl_of(mechanism, sasl_jaas_config=f"{SCRAM_LOGIN} tokenauth=true;").is_token


def test_kerberos() -> None:
    assert sasl_of(None).kerberos_service_name == "kafka"
    sasl = sasl_of(
        "GSSAPI",
        sasl_jaas_config=f'{KERBEROS_LOGIN} useKeyTab=true storeKey=true keyTab="/etc/k.keytab" '
        'principal="me@EXAMPLE.COM" serviceName="brokers";',
    )
    assert sasl.kerberos_keytab == "/etc/k.keytab"
    assert sasl.kerberos_principal == "me@EXAMPLE.COM"
    assert sasl.kerberos_service_name == "brokers"
    sasl = sasl_of("GSSAPI", sasl_jaas_config=f"{KERBEROS_LOGIN} useTicketCache=true;")
    assert sasl.kerberos_keytab is None
    sasl = sasl_of("GSSAPI", sasl_kerberos_keytab="/k", sasl_kerberos_domain_name="broker")
    assert (sasl.kerberos_keytab, sasl.kerberos_domain_name) == ("/k", "broker")


def test_aws() -> None:
    sasl = sasl_of(
        "AWS_MSK_IAM",
        **{"sasl.client.callback.handler.class": IAM_HANDLER},
        sasl_jaas_config=f'{AWS_LOGIN} awsProfileName="p" awsRoleArn="arn:1" '
        'awsRoleSessionName="s" awsStsRegion="eu-west-1";',
    )
    assert (sasl.aws_profile, sasl.aws_role_arn) == ("p", "arn:1")
    assert (sasl.aws_role_session_name, sasl.aws_region) == ("s", "eu-west-1")
    assert sasl_of("AWS_MSK_IAM", sasl_aws_region="us-east-1").aws_region == "us-east-1"


def test_tokens_of_a_callable_or_an_object() -> None:
    class Provider:
        def token(self) -> str:
            return "t"

    def give() -> str:
        return "t"

    assert sasl_of("OAUTHBEARER", sasl_oauth_token_provider=give).token_provider is give
    provider = sasl_of("OAUTHBEARER", sasl_oauth_token_provider=Provider()).token_provider
    assert provider is not None
    assert provider() == "t"
    sasl = sasl_of("OAUTHBEARER", oauth_cb=give)
    assert (sasl.token_provider, sasl.token_provider_config) == (give, "")
    sasl = sasl_of("OAUTHBEARER", oauth_cb=give, **{"sasl.oauthbearer.config": "scope=x"})
    assert sasl.token_provider_config == "scope=x"


def test_tokens_of_a_file() -> None:
    sasl = sasl_of("OAUTHBEARER", **{URL: "file:///var/run/a%20token"})
    assert sasl.token_file == "/var/run/a token"


@pytest.mark.parametrize("prefix", ["", "client.credentials."])
def test_tokens_of_an_identity_provider(prefix: str) -> None:
    sasl = sasl_of(
        "OAUTHBEARER",
        **{
            URL: "https://idp/token",
            "sasl.oauthbearer.method": "OIDC",
            f"sasl.oauthbearer.{prefix}client.id": "me",
            f"sasl.oauthbearer.{prefix}client.secret": "canary",
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.extensions": "logicalCluster=lkc-1, identityPoolId=pool-1",
            "sasl.login.connect.timeout.ms": "1500",
            "https.ca.location": "/ca.pem",
        },
    )
    assert sasl.extensions == (("logicalCluster", "lkc-1"), ("identityPoolId", "pool-1"))
    oidc = sasl.oidc
    assert oidc is not None
    assert (oidc.grant, oidc.token_endpoint_url) == ("client_credentials", "https://idp/token")
    assert (oidc.client_id, oidc.scope, oidc.ca_location) == ("me", "kafka", "/ca.pem")
    assert (oidc.connect_timeout, oidc.read_timeout) == (1.5, 10.0)
    assert oidc.client_secret is not None
    assert oidc.client_secret.reveal() == "canary"


def test_an_identity_provider_in_jaas() -> None:
    sasl = sasl_of(
        "OAUTHBEARER",
        **{
            URL: "https://idp/token",
            "sasl.login.callback.handler.class": f"{PACKAGE}.oauthbearer.secured."
            "OAuthBearerLoginCallbackHandler",
        },
        sasl_jaas_config=f'{OAUTH_LOGIN} clientId="me" clientSecret="canary" scope="kafka" '
        'extension_logicalCluster="lkc-1";',
    )
    assert sasl.extensions == (("logicalCluster", "lkc-1"),)
    assert sasl.oidc is not None
    assert (sasl.oidc.client_id, sasl.oidc.scope) == ("me", "kafka")


def test_assertions() -> None:
    jwt = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    key = "sasl.oauthbearer.assertion.private.key.file"
    for how in (
        {"sasl.oauthbearer.grant.type": jwt},
        {"sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.oauthbearer.JwtBearerJwtRetriever"},
    ):
        oidc = sasl_of("OAUTHBEARER", **{URL: "https://idp/token", key: "/key.pem"}, **how).oidc
        assert oidc is not None
        assert (oidc.grant, oidc.assertion_key_file) == (jwt, "/key.pem")
    oidc = sasl_of("OAUTHBEARER", **{URL: "https://idp/token", key: "/key.pem"}).oidc
    assert oidc is not None
    assert (oidc.grant, oidc.client_secret) == ("client_credentials", None)


def test_tokens_of_aws() -> None:
    handler = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
    sasl = sasl_of(
        "OAUTHBEARER",
        **{"sasl.login.callback.handler.class": handler},
        sasl_jaas_config=f'{OAUTH_LOGIN} awsRoleArn="arn:1";',
    )
    assert (sasl.uses_aws_token, sasl.aws_role_arn) == (True, "arn:1")
    assert sasl_of("OAUTHBEARER", sasl_oauthbearer_method="aws_msk_iam").uses_aws_token


USER = {"sasl.username": "u", "sasl.password": "canary"}


@pytest.mark.parametrize(
    ("mechanism", "properties", "what"),
    [
        (None, USER, "set sasl.mechanism=PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
        (None, {"sasl.jaas.config": PLAIN_LOGIN}, "set sasl.mechanism=PLAIN"),
        (None, {"oauth_cb": print}, "set sasl.mechanism=OAUTHBEARER"),
        ("PLAIN", {"sasl.jaas.config": f"{SCRAM_LOGIN};"}, "sasl.mechanism is PLAIN, and"),
        ("DIGEST-MD5", USER, "sasl.mechanism: 'DIGEST-MD5' is not one of PLAIN, SCRAM"),
        ("PLAIN", {}, "sasl.mechanism=PLAIN needs a username: sasl.username"),
        ("PLAIN", {"sasl.username": "u"}, "sasl.mechanism=PLAIN needs a password: sasl.password"),
        (
            "PLAIN",
            {"sasl.jaas.config": f"{PACKAGE}.plain.PlainLoginModule required username=u;"},
            "option password in sasl.jaas.config",
        ),
        ("PLAIN", {"sasl.jaas.config": PLAIN_LOGIN, **USER}, "are both given"),
        ("OAUTHBEARER", {}, "needs a source of tokens: sasl_oauth_token_provider="),
        ("OAUTHBEARER", {URL: "http://idp"}, f"{URL} must begin with https://"),
        ("OAUTHBEARER", {URL: "https://u:canary@idp"}, f"{URL} must hold no user"),
        ("OAUTHBEARER", {URL: "https://idp"}, "client.credentials.client.id is missing"),
        (
            "OAUTHBEARER",
            {URL: "https://idp", "sasl.oauthbearer.client.id": "me"},
            "client.credentials.client.secret is missing",
        ),
        (
            "OAUTHBEARER",
            {URL: "https://idp", "sasl.oauthbearer.allowed.urls": "https://other"},
            "is none of sasl.oauthbearer.allowed.urls",
        ),
        ("OAUTHBEARER", {URL: "https://idp", "oauth_cb": print}, "a token has one source"),
        ("OAUTHBEARER", {"sasl.oauthbearer.method": "oidc"}, "needs a source of tokens"),
        (
            "OAUTHBEARER",
            {"sasl.login.callback.handler.class": "com.example.X"},
            "sasl_oauth_token_provider= takes a callable",
        ),
        ("GSSAPI", {"sasl.jaas.config": f"{KERBEROS_LOGIN} useKeyTab=true;"}, "the option keyTab"),
        ("GSSAPI", {"sasl.jaas.config": f"{KERBEROS_LOGIN} ticketCache=/c;"}, "KRB5CCNAME"),
        (
            "GSSAPI",
            {
                "sasl.jaas.config": f"{KERBEROS_LOGIN} serviceName=a;",
                "sasl.kerberos.service.name": "b",
            },
            "sasl.kerberos.service.name contradicts",
        ),
        ("PLAIN", {**USER, "sasl.client.callback.handler.class": IAM_HANDLER}, "AWS_MSK_IAM"),
        ("PLAIN", {"sasl.username": {"password": "canary"}}, "sasl.username: expected a string"),
    ],
)
def test_errors_of_sasl_name_the_property(
    mechanism: str | None, properties: dict[str, Any], what: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        sasl_of(mechanism, **properties)
    assert what in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("mechanism", "properties"),
    [("PLAIN", USER), ("OAUTHBEARER", {"oauth_cb": print}), ("AWS_MSK_IAM", {})],
)
def test_what_opens_the_door_is_not_sent_in_clear(
    mechanism: str, properties: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=r"security\.protocol=SASL_SSL, or allow\.insecure\.sasl"):
        sasl_of(mechanism, "SASL_PLAINTEXT", **properties)
    allowed = sasl_of(mechanism, "SASL_PLAINTEXT", allow_insecure_sasl=True, **properties)
    assert allowed.mechanism == mechanism


def test_what_is_given_without_a_protocol_is_an_error() -> None:
    for properties, protocol in (({"ssl_cafile": "/ca"}, "SSL"), (USER, "SASL_SSL")):
        with pytest.raises(ConfigError, match=f"no effect, .*security.protocol={protocol}$"):
            settings_of(**properties)
    # Defaults, and an explicit protocol: as in Java's files, where much may lie about.
    settings_of(ssl_context=None, sasl_mechanism="GSSAPI")
    assert settings_of(security_protocol="PLAINTEXT", **USER).sasl is None
