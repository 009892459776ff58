"""Properties of SASL's OAUTHBEARER: where tokens come from. They end in `SaslSettings`.

A token comes from one source: the user's callable, a file, or an identity provider.
"""

from __future__ import annotations

from kafka_fast.config._key import Key, ValueKind, confluent

FIELD = "sasl"

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLIENT_CREDENTIALS = "client_credentials"

_BROKERS = "brokers check tokens"


def _text(name: str, doc: str, *aliases: str, own: bool = False) -> Key:
    return Key(
        name=f"sasl.oauthbearer.{name}",
        kind=ValueKind.STRING,
        default=None,
        own=own,
        field=FIELD,
        aliases=confluent(*aliases),
        doc=doc,
    )


def _secret(name: str, doc: str, *aliases: str, own: bool = False) -> Key:
    return Key(
        name=f"sasl.oauthbearer.{name}",
        kind=ValueKind.PASSWORD,
        default=None,
        own=own,
        field=FIELD,
        aliases=confluent(*aliases),
        doc=doc,
    )


def _of_brokers(name: str, kind: ValueKind, default: object, doc: str) -> Key:
    return Key(
        name=f"sasl.oauthbearer.{name}", kind=kind, default=default, ignored=_BROKERS, doc=doc
    )


OAUTHBEARER: tuple[Key, ...] = (
    Key(
        name="sasl.oauth.token.provider",
        kind=ValueKind.TOKEN_PROVIDER,
        default=None,
        own=True,
        field=FIELD,
        doc="A callable (or an object with `token()`) that returns a token, or a pair of a token "
        "and the Unix time at which it expires. It may be a coroutine function.",
    ),
    Key(
        name="oauth.cb",
        kind=ValueKind.CALLABLE,
        default=None,
        own=True,
        field=FIELD,
        doc="A callable as confluent-kafka takes it: it is called with "
        "`sasl.oauthbearer.config`, and returns `(token, expiry)`, or also a principal and a "
        "dictionary of extensions.",
    ),
    _text("config", "What `oauth_cb` is called with.", own=True),
    Key(
        name="sasl.oauthbearer.method",
        kind=ValueKind.STRING,
        default=None,
        choices=("default", "oidc", "aws_msk_iam"),
        own=True,
        field=FIELD,
        doc="`oidc` asks the identity provider at `sasl.oauthbearer.token.endpoint.url`; "
        "`aws_msk_iam` makes a token of AWS credentials, for MSK. `default` and none: what "
        "else is given tells.",
    ),
    _text(
        "token.endpoint.url",
        "Where tokens come from: an `https://` URL of an identity provider, or a `file:` URL.",
    ),
    Key(
        name="sasl.oauthbearer.allowed.urls",
        kind=ValueKind.LIST,
        default=(),
        own=True,
        field=FIELD,
        doc="If it is not empty, `sasl.oauthbearer.token.endpoint.url` must be one of these.",
    ),
    Key(
        name="sasl.oauthbearer.grant.type",
        kind=ValueKind.STRING,
        default=None,
        choices=(CLIENT_CREDENTIALS, JWT_BEARER),
        own=True,
        field=FIELD,
        doc="What the identity provider is asked with. None: client credentials, unless "
        "`sasl.oauthbearer.jwt.retriever.class` says otherwise.",
    ),
    _text("scope", "Scope that is asked for."),
    _text(
        "client.credentials.client.id",
        "Id of this client at the identity provider.",
        "sasl.oauthbearer.client.id",
    ),
    _secret(
        "client.credentials.client.secret",
        "Secret of this client at the identity provider.",
        "sasl.oauthbearer.client.secret",
    ),
    Key(
        name="sasl.oauthbearer.header.urlencode",
        kind=ValueKind.BOOLEAN,
        default=False,
        field=FIELD,
        doc="URL-encode the client's id and secret, as RFC 6749 has it.",
    ),
    _text("extensions", "SASL extensions, such as `a=1,b=2`.", own=True),
    Key(
        name="https.ca.location",
        kind=ValueKind.STRING,
        default=None,
        own=True,
        words={"probe": None},
        field=FIELD,
        doc="PEM file with the CA certificates that are trusted for the identity provider; none: "
        "the system's.",
    ),
    Key(
        name="https.ca.pem",
        kind=ValueKind.PASSWORD,
        default=None,
        own=True,
        field=FIELD,
        doc="The same, as a text in PEM.",
    ),
    _text("assertion.file", "File with an assertion (a JWT) that somebody else makes and renews."),
    _text("assertion.private.key.file", "PEM file with the key that signs assertions."),
    _secret(
        "assertion.private.key.pem", "The key that signs assertions, as a text in PEM.", own=True
    ),
    _secret("assertion.private.key.passphrase", "Passphrase of that key."),
    _text(
        "assertion.template.file",
        "JSON file with headers and claims of assertions.",
        "sasl.oauthbearer.assertion.jwt.template.file",
    ),
    Key(
        name="sasl.oauthbearer.assertion.algorithm",
        kind=ValueKind.STRING,
        default="RS256",
        choices=("RS256", "ES256"),
        field=FIELD,
        doc="Signature of assertions.",
    ),
    _text("assertion.claim.aud", "Claim `aud` of assertions."),
    _text("assertion.claim.iss", "Claim `iss` of assertions."),
    _text("assertion.claim.sub", "Claim `sub` of assertions."),
    Key(
        name="sasl.oauthbearer.assertion.claim.exp.seconds",
        kind=ValueKind.INT,
        default=300,
        low=0,
        high=86400,
        unit="seconds",
        field=FIELD,
        doc="Lifetime of an assertion.",
    ),
    Key(
        name="sasl.oauthbearer.assertion.claim.nbf.seconds",
        kind=ValueKind.INT,
        default=60,
        low=0,
        high=3600,
        unit="seconds",
        field=FIELD,
        doc="How far in the past an assertion's lifetime begins.",
    ),
    Key(
        name="sasl.oauthbearer.assertion.claim.jti.include",
        kind=ValueKind.BOOLEAN,
        default=False,
        field=FIELD,
        doc="Give each assertion a random id (`jti`).",
    ),
    Key(
        name="sasl.oauthbearer.jwt.retriever.class",
        kind=ValueKind.STRING,
        default=None,
        choices=(
            "DefaultJwtRetriever",
            "ClientCredentialsJwtRetriever",
            "JwtBearerJwtRetriever",
            "FileJwtRetriever",
        ),
        refused="instead of a class of your own, sasl_oauth_token_provider= takes a callable",
        field=FIELD,
        doc="Java's way to choose where tokens come from. None: what else is given tells.",
    ),
    _of_brokers("jwt.validator.class", ValueKind.STRING, None, "Checks tokens."),
    _of_brokers("scope.claim.name", ValueKind.STRING, "scope", "Name of the scope claim."),
    _of_brokers("sub.claim.name", ValueKind.STRING, "sub", "Name of the subject claim."),
    _of_brokers("clock.skew.seconds", ValueKind.INT, 30, "Clock difference that is allowed."),
    _of_brokers("expected.audience", ValueKind.LIST, (), "Audiences that are accepted."),
    _of_brokers("expected.issuer", ValueKind.STRING, None, "Issuer that is accepted."),
    _of_brokers(
        "allow.unverified.audience",
        ValueKind.BOOLEAN,
        False,
        "Accept tokens without a look at their audience.",
    ),
    _of_brokers(
        "allow.unverified.issuer",
        ValueKind.BOOLEAN,
        False,
        "Accept tokens without a look at their issuer.",
    ),
    _of_brokers("jwks.endpoint.url", ValueKind.STRING, None, "Where the provider's keys are."),
    _of_brokers(
        "jwks.endpoint.refresh.ms", ValueKind.INT, 3_600_000, "How often they are fetched."
    ),
    _of_brokers(
        "jwks.endpoint.retry.backoff.ms", ValueKind.INT, 100, "Pause before that is tried again."
    ),
    _of_brokers("jwks.endpoint.retry.backoff.max.ms", ValueKind.INT, 10_000, "Longest such pause."),
)
