"""Properties of other clients that this one does not have, and what to do instead.

The names that mean something here are aliases in the tables of properties. These here mean nothing:
a feature that is always on, one that is reached in another way, or one that there is not.

A name on whose effect its owner counts is refused with its advice. A harmless one is taken: nothing
that is sent, read or committed depends on it. The log says so, at DEBUG where its effect is there
anyway, at WARNING where something is set in another way.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from kafka_fast.config._key import CONSUMER, EVERY_CLIENT, PRODUCER


class Acceptance(enum.Enum):
    """How a property without meaning is taken."""

    NEVER = 0
    QUIETLY = 1
    ALOUD = 2
    """With a warning."""


class Advice(NamedTuple):
    """What to do instead of giving some properties."""

    names: tuple[str, ...]
    """Lower case, dotted: what the users' spellings become."""
    text: str
    clients: tuple[str, ...] = EVERY_CLIENT
    """Whose advice it is; to others these are names like any other."""
    taken: Acceptance = Acceptance.NEVER
    so_anyway: tuple[str, ...] = ()
    """Values, in lower case, that ask for what is done anyway: these are taken quietly."""

    def taken_with(self, value: object) -> Acceptance:
        """Return how the property is taken that was given this value."""
        is_so = value is None or str(value).strip().lower() in self.so_anyway
        return Acceptance.QUIETLY if is_so else self.taken

    @property
    def is_open(self) -> bool:
        """Whether the values are no secrets, whatever they are."""
        return self.taken is not Acceptance.NEVER or bool(self.so_anyway)


_NO_HOOKS = "there are no hooks into sockets and look-ups: leave it out"

ADVICE: tuple[Advice, ...] = (
    # Connections
    Advice(
        ("socket.keepalive.enable",),
        "connections are always kept alive (SO_KEEPALIVE): leave it out",
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        ("socket.nagle.disable",),
        "TCP_NODELAY is always set: leave it out",
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        ("socket.timeout.ms", "metadata.request.timeout.ms"),
        "request.timeout.ms is how long an answer may take",
        taken=Acceptance.ALOUD,
    ),
    Advice(
        ("socket.max.fails", "socket.blocking.max.ms"),
        "a connection whose answer is late is given up at once (request.timeout.ms): leave it out",
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        ("sock.chunk.bytes", "sock.chunk.buffer.count"),
        "send.buffer.bytes and receive.buffer.bytes set the sockets' buffers",
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        ("socket.options", "selector"),
        "send.buffer.bytes and receive.buffer.bytes set the sockets' buffers; there is no other "
        "choice of sockets",
    ),
    Advice(
        (
            "socket.cb",
            "connect.cb",
            "closesocket.cb",
            "open.cb",
            "resolve.cb",
            "kafka.client",
            "state.change.callback",
        ),
        _NO_HOOKS,
    ),
    Advice(
        ("socks5.proxy", "proxy.url"),
        "proxies are not supported: the client connects directly to bootstrap.servers and to the "
        "addresses that brokers advertise",
    ),
    Advice(
        ("broker.address.family", "broker.address.ttl"),
        "names are looked up for each connection, and all their addresses are tried, IPv4 and "
        "IPv6: leave it out, or give addresses in bootstrap.servers",
        taken=Acceptance.ALOUD,
    ),
    Advice(
        ("enable.sparse.connections",),
        "connections are opened when they are needed: leave it out",
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        ("reconnect.backoff.jitter.ms",),
        "reconnect.backoff.ms has jitter: leave it out",
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        (
            "api.version",
            "api.version.request",
            "api.version.request.timeout.ms",
            "api.version.fallback.ms",
            "api.version.auto.timeout.ms",
            "broker.version.fallback",
        ),
        "the client asks each broker for its versions (Kafka 2.1 and later): leave it out",
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        ("bootstrap.timeout.ms",),
        "a constructor does not wait for brokers; the first send waits up to max.block.ms",
        (PRODUCER,),
        taken=Acceptance.ALOUD,
    ),
    Advice(
        ("bootstrap.timeout.ms",),
        "a constructor does not wait for brokers; the calls that ask brokers wait up to "
        "default.api.timeout.ms",
        taken=Acceptance.ALOUD,
    ),
    Advice(
        ("client.software.name", "client.software.version"),
        "the client gives brokers the name kafka_fast and its version; set client.id instead",
        taken=Acceptance.QUIETLY,
    ),
    # Metadata
    Advice(
        ("topic.metadata.refresh.interval.ms", "topic.metadata.refresh.sparse"),
        "metadata.max.age.ms is how old metadata may get; the client asks only for topics in use",
        taken=Acceptance.ALOUD,
    ),
    Advice(
        (
            "topic.metadata.refresh.fast.interval.ms",
            "topic.metadata.refresh.fast.cnt",
            "topic.metadata.propagation.max.ms",
        ),
        "retry.backoff.ms and retry.backoff.max.ms are the pauses between requests for metadata",
        taken=Acceptance.ALOUD,
    ),
    Advice(
        ("topic.blacklist",),
        "a pattern says which topics are read: consumer.subscribe(pattern=...)",
    ),
    Advice(
        ("allow.auto.create.topics",),
        "a send creates a missing topic if auto.create.topics.enable is set at the brokers: leave "
        "it out",
        (PRODUCER,),
        taken=Acceptance.QUIETLY,
    ),
    # Looking inside
    Advice(
        ("statistics.interval.ms",),
        "call metrics() when you want to know, as often as you like",
        taken=Acceptance.ALOUD,
        so_anyway=("0",),
    ),
    Advice(
        ("stats.cb", "throttle.cb", "metrics.collector"),
        "call metrics() when you want to know, as often as you like",
    ),
    Advice(
        ("metrics.enabled", "metric.group.prefix"),
        "metrics() is always there, and costs nothing before it is called: leave it out",
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        ("debug",),
        "logging.getLogger('kafka_fast').setLevel(logging.DEBUG), or debug_dump() for what the "
        "connections did last",
        taken=Acceptance.ALOUD,
    ),
    Advice(
        ("log.level", "log.queue", "log.thread.name", "log.connection.close"),
        "the levels of the loggers `kafka_fast.*` of the module logging say what is logged",
        taken=Acceptance.ALOUD,
    ),
    Advice(
        ("log.cb", "logger"),
        "the client logs to the loggers `kafka_fast.*` of the module logging: set their levels and "
        "handlers",
    ),
    Advice(
        ("error.cb",),
        "the call that meets an error raises it; other problems are logged to `kafka_fast.*`",
    ),
    Advice(
        ("enabled.events", "enable.sasl.queue", "internal.termination.signal"),
        "the client's threads need no events or signals from you: leave it out",
        taken=Acceptance.QUIETLY,
    ),
    Advice(("background.event.cb",), "the client's threads send you no events: leave it out"),
    Advice(
        ("builtin.features",),
        "`kafka-fast info` lists what this build can do",
        taken=Acceptance.QUIETLY,
    ),
    Advice(("plugin.library.paths", "interceptors"), "there are no plugins: leave it out"),
    Advice(("opaque",), "a callback may be a closure, or a bound method: leave it out"),
    Advice(
        ("default.topic.config", "default.topic.conf", "topic.config"),
        "set these properties for the whole client: there are no properties of one topic",
    ),
    Advice(
        ("test.mock.num.brokers", "test.mock.broker.rtt"),
        "kafka_fast.testing.EmbeddedKafka is a broker for tests",
    ),
    Advice(("loop",), "no event loop is needed: leave it out", taken=Acceptance.QUIETLY),
    # Producing
    Advice(
        ("dr.cb", "dr.msg.cb"),
        "on_delivery= is called with (error, metadata) for every record",
        (PRODUCER,),
    ),
    Advice(
        ("delivery.report.only.error",),
        "on_delivery is called for every record: return from it when its error is None",
        (PRODUCER,),
        so_anyway=("false",),
    ),
    Advice(
        ("compression.level",),
        "each codec has its own: compression.gzip.level, compression.lz4.level and "
        "compression.zstd.level",
        (PRODUCER,),
    ),
    Advice(
        ("batch.num.messages",),
        "batches are limited in bytes: batch.size",
        (PRODUCER,),
        taken=Acceptance.ALOUD,
    ),
    Advice(
        ("queue.buffering.max.messages",),
        "pending records are limited in bytes: buffer.memory",
        (PRODUCER,),
        taken=Acceptance.ALOUD,
    ),
    Advice(
        ("queue.buffering.backpressure.threshold", "message.copy.max.bytes"),
        "send copies records into batches, and batches grow while a broker is busy: leave it out",
        (PRODUCER,),
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        ("enable.gapless.guarantee",),
        "enable.idempotence (the default) keeps the order; after a record that fails, later "
        "records are still sent: leave it out",
        (PRODUCER,),
        so_anyway=("false",),
    ),
    Advice(
        ("sticky.partitioning.linger.ms",),
        "records without a key stay with a partition for batch.size bytes (KIP-794): leave it out",
        (PRODUCER,),
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        ("partitioner.cb",),
        "partitioner.class takes a callable (topic, key, value, partition_count)",
        (PRODUCER,),
    ),
    Advice(
        ("msg.order.cmp", "queuing.strategy", "produce.offset.report"),
        "records keep the order in which they were sent, and their offsets are always reported: "
        "leave it out",
        so_anyway=("fifo", "true"),
    ),
    Advice(
        ("enable.random.seed",),
        "the client has its own random source: leave it out",
        taken=Acceptance.QUIETLY,
    ),
    # Consuming
    Advice(
        ("topics", "topic"),
        "a constructor takes no topics: call consumer.subscribe([...]) or consumer.assign([...])",
        (CONSUMER,),
    ),
    Advice(("topic",), "a producer is for all topics: send('topic', value)", (PRODUCER,)),
    Advice(
        ("enable.auto.offset.store",),
        "if it was true, leave it out; if it was false: enable.auto.commit=false, and "
        "commit(records), commit(record) or commit({partition: offset}) once they are done",
        (CONSUMER,),
        so_anyway=("true",),
    ),
    Advice(("auto.commit.enable",), "it is called enable.auto.commit", (CONSUMER,)),
    Advice(
        ("offset.store.method", "offset.store.path", "offset.store.sync.interval.ms"),
        "the group's coordinator keeps committed offsets; to keep them elsewhere, call seek()",
        (CONSUMER,),
        so_anyway=("broker",),
    ),
    Advice(
        ("on.commit", "offset.commit.cb", "default.offset.commit.callback"),
        "commit(sync=False, callback=...) reports that commit; failures of automatic commits are "
        "logged",
        (CONSUMER,),
    ),
    Advice(
        ("rebalance.cb",),
        "subscribe(topics, listener=...) takes a RebalanceListener",
        (CONSUMER,),
    ),
    Advice(
        ("rebalance.timeout.ms",),
        "max.poll.interval.ms is also how long a rebalance waits for a member",
        (CONSUMER,),
    ),
    Advice(
        ("enable.partition.eof",),
        "read_range(...) ends at the end of the log; current_lag(partition) says how far it is",
        (CONSUMER,),
        so_anyway=("false",),
    ),
    Advice(
        ("consumer.timeout.ms",),
        "poll(timeout) returns no records after that many seconds: leave your loop then",
        (CONSUMER,),
    ),
    Advice(
        ("consume.cb", "consume.callback.max.messages"),
        "poll(timeout, max_records) returns records",
        (CONSUMER,),
    ),
    Advice(
        ("queued.min.messages", "fetch.queue.backoff.ms"),
        "fetch.buffer.bytes is how much is fetched ahead",
        (CONSUMER,),
        taken=Acceptance.ALOUD,
    ),
    Advice(
        ("fetch.error.backoff.ms", "coordinator.query.interval.ms"),
        "retry.backoff.ms and retry.backoff.max.ms are the pauses before a request is tried again",
        taken=Acceptance.ALOUD,
    ),
    Advice(
        ("group.protocol.type",),
        "it is always `consumer`: leave it out",
        (CONSUMER,),
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        ("enable.incremental.fetch.sessions", "legacy.iterator"),
        "fetch sessions are always incremental, and there is one iterator: leave it out",
        (CONSUMER,),
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        ("max.in.flight.requests.per.connection", "max.in.flight"),
        "a consumer has one Fetch in flight to each broker: leave it out",
        (CONSUMER,),
        taken=Acceptance.QUIETLY,
    ),
    Advice(
        ("leave.group.on.close",),
        "group.instance.id is for members that do not leave",
        (CONSUMER,),
        so_anyway=("true",),
    ),
    # Security
    Advice(
        ("ssl.ca", "ssl.certificate", "ssl.key"),
        "ssl.ca.pem, ssl.certificate.pem and ssl.key.pem take texts in PEM",
    ),
    Advice(
        ("ssl.ca.certificate.stores",),
        "the system's certificates are trusted unless ssl.ca.location names others: leave it out",
        taken=Acceptance.ALOUD,
    ),
    Advice(
        (
            "ssl.certificate.verify.cb",
            "ssl.curves.list",
            "ssl.engine.callback.data",
            "ssl.engine.id",
            "ssl.engine.location",
            "ssl.providers",
            "ssl.sigalgs.list",
        ),
        "an ssl.SSLContext of yours, ssl_context=, can do what Python's ssl can",
    ),
    Advice(
        ("enable.sasl.oauthbearer.unsecure.jwt",),
        "tokens that are not signed are for nothing but experiments: make one in "
        "sasl_oauth_token_provider=",
        so_anyway=("false",),
    ),
    Advice(
        ("oauthbearer.token.refresh.cb",),
        "sasl_oauth_token_provider= takes a callable that returns a token",
    ),
    Advice(
        ("sasl.kerberos.name",),
        "sasl.kerberos.service.name and sasl.kerberos.domain.name are the name's parts",
    ),
    Advice(
        ("sasl.oauthbearer.metadata.authentication.type",),
        "get the token from your cloud's own library, in sasl_oauth_token_provider=",
    ),
)


def _by_name() -> Mapping[tuple[str, str], Advice]:
    """Return (client, name) -> what to do instead; an earlier advice wins."""
    by_name: dict[tuple[str, str], Advice] = {}
    for advice in ADVICE:
        for client in advice.clients:
            for name in advice.names:
                by_name.setdefault((client, name), advice)
    return MappingProxyType(by_name)


_BY_NAME = _by_name()


def advice_for(name: str, client: str) -> Advice | None:
    """Return what to do instead of giving a client this property; None if nobody has it.

    A property of another kind of client is that one's, as `consumer.timeout.ms` in a producer.

    Args:
        name: lower case, dotted.
        client: `producer`, `consumer` or `admin`.
    """
    own = _BY_NAME.get((client, name))
    if own is not None:
        return own
    others = [other for other in EVERY_CLIENT if (other, name) in _BY_NAME]
    if not others:
        return None
    text = f"it is for a {' or '.join(others)}: leave it out"
    return Advice((name,), text, (client,), Acceptance.QUIETLY)


def refusal(name: str, advice: Advice) -> str:
    """Return what is said of a property under the name that the user gave."""
    return f"{name} is not a property here: {advice.text}"
