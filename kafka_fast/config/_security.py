"""Properties of TLS and SASL: recognised, and refused until the client can secure a connection."""

from __future__ import annotations

from kafka_fast.config._key import Alias, Key, Kind, confluent, kafka_python

_TLS = "TLS"
_SASL = "SASL"


def _key(
    pending: str,
    name: str,
    kind: Kind,
    default: object,
    doc: str,
    aliases: tuple[Alias, ...] = (),
    own: bool = False,
) -> Key:
    return Key(
        name=name, kind=kind, default=default, doc=doc, aliases=aliases, own=own, pending=pending
    )


SECURITY: tuple[Key, ...] = (
    _key(_TLS, "ssl.protocol", Kind.STRING, "TLSv1.3", "Protocol of the TLS context."),
    _key(
        _TLS,
        "ssl.enabled.protocols",
        Kind.LIST,
        ("TLSv1.2", "TLSv1.3"),
        "TLS versions that may be negotiated.",
    ),
    _key(
        _TLS,
        "ssl.cipher.suites",
        Kind.LIST,
        (),
        "Cipher suites that may be negotiated; empty: the library's.",
        aliases=kafka_python("ssl.ciphers"),
    ),
    _key(_TLS, "ssl.provider", Kind.STRING, None, "JVM security provider."),
    _key(
        _TLS,
        "ssl.engine.factory.class",
        Kind.STRING,
        None,
        "Maker of TLS engines.",
        aliases=kafka_python("ssl.context"),
    ),
    _key(
        _TLS, "ssl.secure.random.implementation", Kind.STRING, None, "JVM random number generator."
    ),
    _key(
        _TLS,
        "ssl.keystore.type",
        Kind.STRING,
        "JKS",
        "Format of the key store: PEM, PKCS12 or JKS.",
    ),
    _key(_TLS, "ssl.truststore.type", Kind.STRING, "JKS", "Format of the trust store."),
    _key(
        _TLS,
        "ssl.keystore.location",
        Kind.STRING,
        None,
        "File with the client's key and certificate.",
        aliases=(*confluent("ssl.certificate.location"), *kafka_python("ssl.certfile")),
    ),
    _key(_TLS, "ssl.keystore.password", Kind.PASSWORD, None, "Password of the key store."),
    _key(
        _TLS,
        "ssl.keystore.key",
        Kind.PASSWORD,
        None,
        "The client's private key, PEM.",
        aliases=(*confluent("ssl.key.pem", "ssl.key.location"), *kafka_python("ssl.keyfile")),
    ),
    _key(
        _TLS,
        "ssl.keystore.certificate.chain",
        Kind.PASSWORD,
        None,
        "The client's certificates, PEM.",
        aliases=confluent("ssl.certificate.pem"),
    ),
    _key(
        _TLS,
        "ssl.key.password",
        Kind.PASSWORD,
        None,
        "Password of the private key.",
        aliases=kafka_python("ssl.password"),
    ),
    _key(
        _TLS,
        "ssl.truststore.location",
        Kind.STRING,
        None,
        "File with the certificates that are trusted.",
        aliases=(*confluent("ssl.ca.location"), *kafka_python("ssl.cafile")),
    ),
    _key(_TLS, "ssl.truststore.password", Kind.PASSWORD, None, "Password of the trust store."),
    _key(
        _TLS,
        "ssl.truststore.certificates",
        Kind.PASSWORD,
        None,
        "The certificates that are trusted, PEM.",
        aliases=confluent("ssl.ca.pem"),
    ),
    _key(_TLS, "ssl.keymanager.algorithm", Kind.STRING, None, "JVM key manager."),
    _key(_TLS, "ssl.trustmanager.algorithm", Kind.STRING, None, "JVM trust manager."),
    _key(
        _TLS,
        "ssl.endpoint.identification.algorithm",
        Kind.STRING,
        "https",
        "Check of the broker's host name; empty: none.",
        aliases=kafka_python("ssl.check.hostname"),
    ),
    _key(
        _SASL,
        "sasl.mechanism",
        Kind.STRING,
        "GSSAPI",
        "SASL mechanism.",
        aliases=confluent("sasl.mechanisms"),
    ),
    _key(
        _SASL,
        "sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "Login module with its options.",
        aliases=(
            *confluent("sasl.username", "sasl.password"),
            *kafka_python("sasl.plain.username", "sasl.plain.password"),
        ),
    ),
    _key(
        _SASL,
        "sasl.client.callback.handler.class",
        Kind.STRING,
        None,
        "Handler of the client's SASL callbacks.",
    ),
    _key(
        _SASL,
        "sasl.login.callback.handler.class",
        Kind.STRING,
        None,
        "Handler of the login's callbacks.",
        aliases=(*confluent("oauth.cb"), *kafka_python("sasl.oauth.token.provider")),
    ),
    _key(_SASL, "sasl.login.class", Kind.STRING, None, "The login."),
    _key(
        _SASL, "sasl.login.connect.timeout.ms", Kind.INT, None, "Connecting to the token endpoint."
    ),
    _key(_SASL, "sasl.login.read.timeout.ms", Kind.INT, None, "Reading from the token endpoint."),
    _key(
        _SASL,
        "sasl.login.refresh.window.factor",
        Kind.FLOAT,
        0.8,
        "Share of a credential's life after which it is renewed.",
    ),
    _key(
        _SASL,
        "sasl.login.refresh.window.jitter",
        Kind.FLOAT,
        0.05,
        "Random part added to that share.",
    ),
    _key(
        _SASL,
        "sasl.login.refresh.min.period.seconds",
        Kind.INT,
        60,
        "Shortest time between renewals.",
    ),
    _key(
        _SASL,
        "sasl.login.refresh.buffer.seconds",
        Kind.INT,
        300,
        "Time to spare before a credential ends.",
    ),
    _key(
        _SASL,
        "sasl.login.retry.backoff.ms",
        Kind.INT,
        100,
        "Pause before a failed login is tried again.",
    ),
    _key(_SASL, "sasl.login.retry.backoff.max.ms", Kind.INT, 10_000, "Longest such pause."),
    _key(
        _SASL, "sasl.kerberos.service.name", Kind.STRING, None, "Kerberos principal of the brokers."
    ),
    _key(_SASL, "sasl.kerberos.kinit.cmd", Kind.STRING, "/usr/bin/kinit", "Path of kinit."),
    _key(
        _SASL,
        "sasl.kerberos.ticket.renew.window.factor",
        Kind.FLOAT,
        0.8,
        "Share of a ticket's life after which it is renewed.",
    ),
    _key(
        _SASL,
        "sasl.kerberos.ticket.renew.jitter",
        Kind.FLOAT,
        0.05,
        "Random part added to that share.",
    ),
    _key(
        _SASL,
        "sasl.kerberos.min.time.before.relogin",
        Kind.INT,
        60_000,
        "Shortest time between logins.",
    ),
    _key(
        _SASL, "sasl.oauthbearer.token.endpoint.url", Kind.STRING, None, "Where tokens come from."
    ),
    _key(_SASL, "sasl.oauthbearer.scope", Kind.STRING, None, "Scope asked for."),
    _key(
        _SASL,
        "sasl.oauthbearer.client.credentials.client.id",
        Kind.STRING,
        None,
        "OAuth client id.",
        aliases=confluent("sasl.oauthbearer.client.id"),
    ),
    _key(
        _SASL,
        "sasl.oauthbearer.client.credentials.client.secret",
        Kind.PASSWORD,
        None,
        "OAuth client secret.",
        aliases=confluent("sasl.oauthbearer.client.secret"),
    ),
    _key(
        _SASL, "sasl.oauthbearer.assertion.file", Kind.STRING, None, "File with a ready assertion."
    ),
    _key(
        _SASL,
        "sasl.oauthbearer.assertion.private.key.file",
        Kind.STRING,
        None,
        "Key that signs assertions.",
    ),
    _key(
        _SASL,
        "sasl.oauthbearer.assertion.private.key.passphrase",
        Kind.PASSWORD,
        None,
        "Passphrase of that key.",
    ),
    _key(
        _SASL,
        "sasl.oauthbearer.assertion.template.file",
        Kind.STRING,
        None,
        "Template of assertions.",
    ),
    _key(_SASL, "sasl.oauthbearer.assertion.claim.aud", Kind.STRING, None, "Claim `aud`."),
    _key(_SASL, "sasl.oauthbearer.assertion.claim.iss", Kind.STRING, None, "Claim `iss`."),
    _key(_SASL, "sasl.oauthbearer.assertion.claim.sub", Kind.STRING, None, "Claim `sub`."),
    _key(
        _SASL,
        "sasl.oauthbearer.assertion.algorithm",
        Kind.STRING,
        "RS256",
        "Signature of assertions.",
    ),
    _key(
        _SASL,
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        Kind.INT,
        300,
        "Life of an assertion.",
    ),
    _key(
        _SASL,
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        Kind.INT,
        60,
        "How far an assertion's start lies back.",
    ),
    _key(
        _SASL,
        "sasl.oauthbearer.assertion.claim.jti.include",
        Kind.BOOLEAN,
        False,
        "Give assertions an id.",
    ),
    _key(_SASL, "sasl.oauthbearer.jwt.retriever.class", Kind.STRING, None, "Fetches tokens."),
    _key(_SASL, "sasl.oauthbearer.jwt.validator.class", Kind.STRING, None, "Checks tokens."),
    _key(
        _SASL, "sasl.oauthbearer.scope.claim.name", Kind.STRING, "scope", "Name of the scope claim."
    ),
    _key(
        _SASL, "sasl.oauthbearer.sub.claim.name", Kind.STRING, "sub", "Name of the subject claim."
    ),
    _key(
        _SASL,
        "sasl.oauthbearer.header.urlencode",
        Kind.BOOLEAN,
        False,
        "URL-encode the client's id and secret.",
    ),
    _key(_SASL, "sasl.oauthbearer.clock.skew.seconds", Kind.INT, 30, "Clock difference allowed."),
    _key(_SASL, "sasl.oauthbearer.expected.audience", Kind.LIST, (), "Audiences accepted."),
    _key(
        _SASL,
        "sasl.oauthbearer.allow.unverified.audience",
        Kind.BOOLEAN,
        False,
        "Accept tokens without looking at their audience.",
    ),
    _key(
        _SASL,
        "sasl.oauthbearer.allow.unverified.issuer",
        Kind.BOOLEAN,
        False,
        "Accept tokens without looking at their issuer.",
    ),
    _key(_SASL, "sasl.oauthbearer.expected.issuer", Kind.STRING, None, "Issuer accepted."),
    _key(
        _SASL,
        "sasl.oauthbearer.jwks.endpoint.url",
        Kind.STRING,
        None,
        "Where the provider's keys are.",
    ),
    _key(
        _SASL,
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        Kind.INT,
        3_600_000,
        "How often they are fetched.",
    ),
    _key(
        _SASL,
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        Kind.INT,
        100,
        "Pause before that is tried again.",
    ),
    _key(
        _SASL,
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        Kind.INT,
        10_000,
        "Longest such pause.",
    ),
    _key(
        _SASL,
        "allow.insecure.sasl",
        Kind.BOOLEAN,
        False,
        "Send PLAIN and OAUTHBEARER credentials without TLS.",
        own=True,
    ),
    _key(_TLS, "security.providers", Kind.STRING, None, "JVM security providers."),
)
