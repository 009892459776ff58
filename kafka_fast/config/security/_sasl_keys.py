"""Properties of SASL, without those of OAUTHBEARER: all of them end in `SaslSettings`."""

from __future__ import annotations

from kafka_fast.config._key import INT_MAX, LONG_MAX, Key, ValueKind, confluent, kafka_python

FIELD = "sasl"

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM")

IAM_CLIENT_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
IAM_LOGIN_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
OAUTH_LOGIN_HANDLER = "OAuthBearerLoginCallbackHandler"

_TICKETS = "tickets are renewed by whoever made the cache, and with a keytab at each connection"

SASL: tuple[Key, ...] = (
    Key(
        name="sasl.mechanism",
        kind=ValueKind.STRING,
        default="GSSAPI",
        choices=MECHANISMS,
        field=FIELD,
        aliases=confluent("sasl.mechanisms"),
        doc="How the client says who it is. `GSSAPI` is Kerberos.",
    ),
    Key(
        name="sasl.username",
        kind=ValueKind.STRING,
        default=None,
        own=True,
        field=FIELD,
        aliases=kafka_python("sasl.plain.username"),
        doc="User of PLAIN and SCRAM; an API key of Confluent Cloud; the id of a delegation token.",
    ),
    Key(
        name="sasl.password",
        kind=ValueKind.PASSWORD,
        default=None,
        own=True,
        field=FIELD,
        aliases=kafka_python("sasl.plain.password"),
        doc="Password of PLAIN and SCRAM; the secret of an API key. A function that returns it is "
        "called for each connection.",
    ),
    Key(
        name="sasl.jaas.config",
        kind=ValueKind.PASSWORD,
        default=None,
        field=FIELD,
        doc="A login module with its options, as a Java client has it. Instead of "
        "`sasl.username`, `sasl.password` and the like.",
    ),
    Key(
        name="allow.insecure.sasl",
        kind=ValueKind.BOOLEAN,
        default=False,
        own=True,
        field=FIELD,
        doc="Lets PLAIN, OAUTHBEARER and AWS_MSK_IAM be used with `SASL_PLAINTEXT`, where whoever "
        "is between reads the credentials.",
    ),
    Key(
        name="sasl.kerberos.service.name",
        kind=ValueKind.STRING,
        default=None,
        field=FIELD,
        doc="First part of the brokers' Kerberos principal. None: `kafka`, unless "
        "`sasl.jaas.config` says otherwise.",
    ),
    Key(
        name="sasl.kerberos.principal",
        kind=ValueKind.STRING,
        default=None,
        own=True,
        field=FIELD,
        doc="Kerberos principal of this client; none: the ticket cache's.",
    ),
    Key(
        name="sasl.kerberos.keytab",
        kind=ValueKind.STRING,
        default=None,
        own=True,
        field=FIELD,
        doc="File with the key of `sasl.kerberos.principal`; none: the ticket cache is used.",
    ),
    Key(
        name="sasl.kerberos.domain.name",
        kind=ValueKind.STRING,
        default=None,
        own=True,
        field=FIELD,
        doc="Host in the brokers' Kerberos principal; none: the host of each broker.",
    ),
    Key(
        name="sasl.aws.region",
        kind=ValueKind.STRING,
        default=None,
        own=True,
        field=FIELD,
        doc="Region of an MSK cluster; none: its host names tell.",
    ),
    Key(
        name="sasl.aws.profile",
        kind=ValueKind.STRING,
        default=None,
        own=True,
        field=FIELD,
        doc="Profile of AWS credentials; none: as AWS's own tools choose.",
    ),
    Key(
        name="sasl.aws.role.arn",
        kind=ValueKind.STRING,
        default=None,
        own=True,
        field=FIELD,
        doc="AWS role to take on.",
    ),
    Key(
        name="sasl.aws.role.session.name",
        kind=ValueKind.STRING,
        default=None,
        own=True,
        field=FIELD,
        doc="Name of the session in which `sasl.aws.role.arn` is taken on.",
    ),
    Key(
        name="sasl.client.callback.handler.class",
        kind=ValueKind.STRING,
        default=None,
        choices=(IAM_CLIENT_HANDLER,),
        refused="other classes of the JVM have no counterpart here",
        field=FIELD,
        doc="Accepted as it stands in files for MSK; the mechanism says all.",
    ),
    Key(
        name="sasl.login.callback.handler.class",
        kind=ValueKind.STRING,
        default=None,
        choices=(OAUTH_LOGIN_HANDLER, IAM_LOGIN_HANDLER),
        refused="instead of a class of your own, sasl_oauth_token_provider= takes a callable",
        field=FIELD,
        doc="As it stands in Java's files. Amazon's class gets tokens as "
        "`sasl.oauthbearer.method=aws_msk_iam` does.",
    ),
    Key(
        name="sasl.login.class",
        kind=ValueKind.STRING,
        default=None,
        refused="classes of the JVM have no counterpart here",
        doc="Login of the JVM.",
    ),
    Key(
        name="sasl.login.connect.timeout.ms",
        kind=ValueKind.INT,
        default=None,
        low=0,
        high=INT_MAX,
        unit="ms",
        field=FIELD,
        doc="How long connecting to an identity provider may take; none: 10 s.",
    ),
    Key(
        name="sasl.login.read.timeout.ms",
        kind=ValueKind.INT,
        default=None,
        low=0,
        high=INT_MAX,
        unit="ms",
        field=FIELD,
        doc="How long an identity provider's answer may take; none: 10 s.",
    ),
    Key(
        name="sasl.login.refresh.window.factor",
        kind=ValueKind.FLOAT,
        default=0.8,
        low=0.5,
        high=1.0,
        field=FIELD,
        doc="Share of a token's lifetime after which it is renewed.",
    ),
    Key(
        name="sasl.login.refresh.window.jitter",
        kind=ValueKind.FLOAT,
        default=0.05,
        low=0.0,
        high=0.25,
        field=FIELD,
        doc="Largest random part that is added to `sasl.login.refresh.window.factor`.",
    ),
    Key(
        name="sasl.login.refresh.min.period.seconds",
        kind=ValueKind.INT,
        default=60,
        low=0,
        high=900,
        unit="seconds",
        field=FIELD,
        doc="Shortest time between two renewals of a token.",
    ),
    Key(
        name="sasl.login.refresh.buffer.seconds",
        kind=ValueKind.INT,
        default=300,
        low=0,
        high=3600,
        unit="seconds",
        field=FIELD,
        doc="How long before its end a token is renewed at the latest.",
    ),
    Key(
        name="sasl.login.retry.backoff.ms",
        kind=ValueKind.INT,
        default=100,
        low=0,
        high=LONG_MAX,
        unit="ms",
        field=FIELD,
        doc="Pause before an identity provider is asked again after a failure. The pause doubles "
        "with each failure, up to `sasl.login.retry.backoff.max.ms`.",
    ),
    Key(
        name="sasl.login.retry.backoff.max.ms",
        kind=ValueKind.INT,
        default=10_000,
        low=0,
        high=LONG_MAX,
        unit="ms",
        field=FIELD,
        doc="Longest such pause.",
    ),
    Key(
        name="sasl.kerberos.kinit.cmd",
        kind=ValueKind.STRING,
        default="/usr/bin/kinit",
        ignored=_TICKETS,
        doc="Path of kinit.",
    ),
    Key(
        name="sasl.kerberos.ticket.renew.window.factor",
        kind=ValueKind.FLOAT,
        default=0.8,
        ignored=_TICKETS,
        doc="Share of a ticket's lifetime after which it is renewed.",
    ),
    Key(
        name="sasl.kerberos.ticket.renew.jitter",
        kind=ValueKind.FLOAT,
        default=0.05,
        ignored=_TICKETS,
        doc="Random part added to that share.",
    ),
    Key(
        name="sasl.kerberos.min.time.before.relogin",
        kind=ValueKind.INT,
        default=60_000,
        ignored=_TICKETS,
        doc="Shortest time between two logins.",
    ),
)
