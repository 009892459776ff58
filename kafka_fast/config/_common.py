"""Properties that every client has: names, addresses, connections, back-off, metadata, metrics."""

from __future__ import annotations

from kafka_fast.config._address import PROTOCOLS
from kafka_fast.config._key import INT_MAX, LONG_MAX, Key, ValueKind, confluent

COMMON: tuple[Key, ...] = (
    Key(
        name="bootstrap.servers",
        kind=ValueKind.ADDRESSES,
        default=(),
        doc="Brokers to ask first for the cluster's metadata. Required. A list of `host:port`, or "
        "one string with commas. IPv6: `[::1]:9092`. The port is 9092 if it is left out.",
        aliases=confluent("metadata.broker.list"),
    ),
    Key(
        name="client.id",
        kind=ValueKind.STRING,
        default="",
        doc="Name that every request carries, for the broker's logs, metrics and quotas. "
        "Empty: the client makes a name that is unique in its process.",
    ),
    Key(
        name="client.dns.lookup",
        kind=ValueKind.STRING,
        default="use_all_dns_ips",
        choices=("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        doc="`use_all_dns_ips` tries each address of a name in turn; "
        "`resolve_canonical_bootstrap_servers_only` also expands each bootstrap address to the "
        "canonical names behind it.",
    ),
    Key(
        name="bootstrap.resolve.timeout.ms",
        kind=ValueKind.INT,
        default=0,
        low=0,
        high=LONG_MAX,
        unit="ms",
        pending="waiting for names that do not resolve yet",
        doc="How long to wait for a name in `bootstrap.servers` to resolve.",
    ),
    Key(
        name="request.timeout.ms",
        kind=ValueKind.INT,
        default=30_000,
        low=0,
        high=INT_MAX,
        unit="ms",
        doc="How long to wait for the answer to one request. After that the client closes the "
        "connection, and repeats the request if a repetition is safe.",
    ),
    Key(
        name="retry.backoff.ms",
        kind=ValueKind.INT,
        default=100,
        low=0,
        high=LONG_MAX,
        unit="ms",
        doc="Pause before the first retry of a failed request. The pause doubles with each retry, "
        "with jitter, up to `retry.backoff.max.ms`.",
    ),
    Key(
        name="retry.backoff.max.ms",
        kind=ValueKind.INT,
        default=1_000,
        low=0,
        high=LONG_MAX,
        unit="ms",
        doc="Longest pause between two tries of a request. If this is less than "
        "`retry.backoff.ms`, every pause is `retry.backoff.ms` long.",
    ),
    Key(
        name="reconnect.backoff.ms",
        kind=ValueKind.INT,
        default=50,
        low=0,
        high=LONG_MAX,
        unit="ms",
        doc="Pause before a lost connection to a node is tried again. The pause doubles with each "
        "failure, with jitter, up to `reconnect.backoff.max.ms`.",
    ),
    Key(
        name="reconnect.backoff.max.ms",
        kind=ValueKind.INT,
        default=1_000,
        low=0,
        high=LONG_MAX,
        unit="ms",
        doc="Longest pause between two connection attempts to one node. If you set only "
        "`reconnect.backoff.ms`, every pause is that long.",
    ),
    Key(
        name="socket.connection.setup.timeout.ms",
        kind=ValueKind.INT,
        default=10_000,
        low=0,
        high=LONG_MAX,
        unit="ms",
        doc="How long the first attempt to open a connection may take. The time doubles with each "
        "failure, up to `socket.connection.setup.timeout.max.ms`.",
    ),
    Key(
        name="socket.connection.setup.timeout.max.ms",
        kind=ValueKind.INT,
        default=30_000,
        low=0,
        high=LONG_MAX,
        unit="ms",
        doc="Longest time that an attempt to open a connection may take.",
    ),
    Key(
        name="connections.max.idle.ms",
        kind=ValueKind.INT,
        default=540_000,
        low=-1,
        high=LONG_MAX,
        unit="ms",
        default_for={"admin": 300_000},
        doc="Close a connection that has not been used for this long. -1: never.",
    ),
    Key(
        name="send.buffer.bytes",
        kind=ValueKind.INT,
        default=-1,
        low=-1,
        high=INT_MAX,
        unit="bytes",
        words={"none": -1, "0": -1},
        doc="SO_SNDBUF of the sockets. -1: the operating system chooses.",
        differs="Java's default is 131072. No more bytes than that are on their way to a broker, "
        "however far away the broker is.",
        aliases=confluent("socket.send.buffer.bytes"),
    ),
    Key(
        name="receive.buffer.bytes",
        kind=ValueKind.INT,
        default=-1,
        low=-1,
        high=INT_MAX,
        unit="bytes",
        words={"none": -1, "0": -1},
        doc="SO_RCVBUF of the sockets. -1: the operating system chooses.",
        differs="Java's default is 65536 (producer: 32768). A consumer then wakes up for each "
        "piece of that size, and a far broker waits for each.",
        aliases=confluent("socket.receive.buffer.bytes"),
    ),
    Key(
        name="receive.message.max.bytes",
        kind=ValueKind.INT,
        default=100_000_000,
        low=1_000,
        high=INT_MAX,
        unit="bytes",
        own=True,
        doc="Largest answer accepted from a broker. A longer one closes the connection before "
        "anything is allocated for it.",
    ),
    Key(
        name="metadata.max.age.ms",
        kind=ValueKind.INT,
        default=300_000,
        low=0,
        high=LONG_MAX,
        unit="ms",
        doc="Ask for the metadata again after this time, even if nothing seems to have changed.",
    ),
    Key(
        name="metadata.recovery.strategy",
        kind=ValueKind.STRING,
        default="rebootstrap",
        choices=("rebootstrap", "none"),
        doc="What to do when no known broker can be reached. `rebootstrap`: start again from "
        "`bootstrap.servers` (KIP-899). `none`: keep trying the known brokers.",
    ),
    Key(
        name="metadata.recovery.rebootstrap.trigger.ms",
        kind=ValueKind.INT,
        default=300_000,
        low=0,
        high=LONG_MAX,
        unit="ms",
        doc="With `metadata.recovery.strategy=rebootstrap`: start again from `bootstrap.servers` "
        "when no broker has given metadata for this long.",
    ),
    Key(
        name="metadata.cluster.check.enable",
        kind=ValueKind.BOOLEAN,
        default=False,
        pending="check of cluster and node at connection",
        differs="Java's default is true.",
        doc="Let brokers refuse a connection that was meant for another cluster or node.",
    ),
    Key(
        name="security.protocol",
        kind=ValueKind.STRING,
        default="PLAINTEXT",
        choices=PROTOCOLS,
        doc="How connections are secured: with TLS (`SSL`, `SASL_SSL`), and whether the client "
        "says who it is by SASL (`SASL_PLAINTEXT`, `SASL_SSL`). A client certificate says so, too.",
    ),
    Key(
        name="serializer.encoding",
        kind=ValueKind.STRING,
        default="utf-8",
        own=True,
        doc="Encoding of the `StringSerializer` and `StringDeserializer` that are given by name.",
    ),
    Key(
        name="enable.metrics.push",
        kind=ValueKind.BOOLEAN,
        default=False,
        pending="client telemetry (KIP-714)",
        differs="Java's default is true (admin: false); false until there is something to push.",
        doc="Push the client's metrics to the brokers that ask for them.",
    ),
    Key(
        name="metric.reporters",
        kind=ValueKind.LIST,
        default=(),
        pending="metric reporters",
        differs="Java's default is its JmxReporter, which only a JVM has.",
        doc="Reporters that get every metric. `metrics()` needs none.",
    ),
    Key(
        name="metrics.num.samples",
        kind=ValueKind.INT,
        default=2,
        low=1,
        high=INT_MAX,
        pending="sampled metrics",
        doc="Number of samples from which a rate is computed.",
    ),
    Key(
        name="metrics.sample.window.ms",
        kind=ValueKind.INT,
        default=30_000,
        low=0,
        high=LONG_MAX,
        unit="ms",
        pending="sampled metrics",
        doc="Length of one sample.",
    ),
    Key(
        name="metrics.recording.level",
        kind=ValueKind.STRING,
        default="INFO",
        choices=("INFO", "DEBUG", "TRACE"),
        pending="sampled metrics",
        doc="Highest level of the metrics that are recorded.",
    ),
    Key(
        name="config.providers",
        kind=ValueKind.LIST,
        default=(),
        pending="configuration providers",
        doc="Providers that replace `${provider:path:key}` in other values.",
    ),
)
