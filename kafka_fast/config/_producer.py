"""Properties of the producer."""

from __future__ import annotations

from kafka_fast.config._key import INT_MAX, LONG_MAX, PRODUCER, Key, ValueKind, aiokafka, confluent

_ONLY = (PRODUCER,)

PRODUCER_ONLY: tuple[Key, ...] = (
    Key(
        name="key.serializer",
        kind=ValueKind.SERIALIZER,
        default=None,
        clients=_ONLY,
        doc="Turns keys into bytes. A callable `f(key)`, an object with "
        "`serialize(topic, key, headers)`, or the name of a built-in serializer: "
        "`StringSerializer`, `BytesSerializer`, `IntegerSerializer`, `LongSerializer`, "
        "`DoubleSerializer` or `JsonSerializer`. `kafka_fast.serialization` has these classes, "
        "with their options. Without a serializer, keys are bytes-like or str.",
    ),
    Key(
        name="value.serializer",
        kind=ValueKind.SERIALIZER,
        default=None,
        clients=_ONLY,
        doc="Turns values into bytes, as `key.serializer` does for keys.",
    ),
    Key(
        name="acks",
        kind=ValueKind.INT,
        default=-1,
        choices=(-1, 0, 1),
        words={"all": -1},
        clients=_ONLY,
        doc="Which replicas must have a batch before it counts as delivered. `all` (also -1): all "
        "in-sync replicas. `1`: the leader. `0`: none. `0` and `1` switch idempotence off.",
        aliases=confluent("request.required.acks"),
    ),
    Key(
        name="enable.idempotence",
        kind=ValueKind.BOOLEAN,
        default=True,
        clients=_ONLY,
        doc="Let brokers recognise a batch that is sent twice, so that retries neither duplicate "
        "nor reorder. Needs `acks=all`, `retries` > 0 and at most 5 requests in flight. With other "
        "values of these, the default becomes `false`, and a `true` that you set is an error.",
    ),
    Key(
        name="retries",
        kind=ValueKind.INT,
        default=INT_MAX,
        low=0,
        high=INT_MAX,
        clients=_ONLY,
        doc="How often a batch is sent again. `delivery.timeout.ms` is the better limit. "
        "0 switches idempotence off.",
        aliases=confluent("message.send.max.retries"),
    ),
    Key(
        name="max.in.flight.requests.per.connection",
        kind=ValueKind.INT,
        default=5,
        low=1,
        high=INT_MAX,
        clients=_ONLY,
        doc="Produce requests that may wait for their answer on one connection. More than 5 "
        "switches idempotence off.",
        aliases=confluent("max.in.flight"),
    ),
    Key(
        name="delivery.timeout.ms",
        kind=ValueKind.INT,
        default=120_000,
        low=0,
        high=INT_MAX,
        unit="ms",
        clients=_ONLY,
        doc="Time from `send` to success or failure, retries included. At least `linger.ms` + "
        "`request.timeout.ms`: a smaller value is an error, and a smaller default is raised.",
        aliases=confluent("message.timeout.ms"),
    ),
    Key(
        name="linger.ms",
        kind=ValueKind.INT,
        default=5,
        low=0,
        high=LONG_MAX,
        unit="ms",
        clients=_ONLY,
        doc="How long a batch waits for more records before it is sent. `flush()`, `result()` "
        "and `await` do not wait for it.",
        aliases=confluent("queue.buffering.max.ms"),
    ),
    Key(
        name="batch.size",
        kind=ValueKind.INT,
        default=16_384,
        low=0,
        high=INT_MAX,
        unit="bytes",
        clients=_ONLY,
        doc="A batch of this size is sent without waiting for `linger.ms`. A batch grows beyond "
        "this size only while it cannot be sent. 0: no record waits for another record. Records "
        "still share a batch while it cannot be sent.",
        aliases=aiokafka("max.batch.size"),
    ),
    Key(
        name="buffer.memory",
        kind=ValueKind.INT,
        default=33_554_432,
        low=0,
        high=LONG_MAX,
        unit="bytes",
        clients=_ONLY,
        doc="Memory for records that are not delivered yet. When it is full, `send` waits up to "
        "`max.block.ms`.",
        aliases=confluent("queue.buffering.max.kbytes", scale=1024),
    ),
    Key(
        name="buffer.memory.allocation.strategy",
        kind=ValueKind.STRING,
        default="full",
        choices=("full", "incremental"),
        clients=_ONLY,
        pending="choice of allocation strategies",
        doc="Whether a batch takes its memory at once or as it grows. Here it always grows.",
    ),
    Key(
        name="max.block.ms",
        kind=ValueKind.INT,
        default=60_000,
        low=0,
        high=LONG_MAX,
        unit="ms",
        clients=_ONLY,
        doc="How long `send` and `partitions_for` may wait for metadata and for buffer memory.",
    ),
    Key(
        name="max.request.size",
        kind=ValueKind.INT,
        default=1_048_576,
        low=0,
        high=INT_MAX,
        unit="bytes",
        clients=_ONLY,
        doc="Largest record, before compression, and largest batch.",
        aliases=confluent("message.max.bytes"),
    ),
    Key(
        name="request.coalesce.bytes",
        kind=ValueKind.INT,
        default=2_097_152,
        low=0,
        high=INT_MAX,
        unit="bytes",
        clients=_ONLY,
        own=True,
        doc="Upper size of one Produce request, which carries the batches of many partitions. "
        "A single batch always fits.",
    ),
    Key(
        name="compression.type",
        kind=ValueKind.STRING,
        default="none",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        words={"none": "none"},
        clients=_ONLY,
        doc="Codec of the batches.",
        aliases=confluent("compression.codec"),
    ),
    Key(
        name="compression.gzip.level",
        kind=ValueKind.INT,
        default=1,
        choices=(-1, *range(1, 10)),
        clients=_ONLY,
        differs="Java's default is -1: level 1 costs far less CPU for little more network.",
        doc="Level of gzip: 1 (fast) to 9 (small). -1 is zlib's default, 6.",
        aliases=confluent("compression.level"),
    ),
    Key(
        name="compression.lz4.level",
        kind=ValueKind.INT,
        default=0,
        low=0,
        high=17,
        clients=_ONLY,
        differs="Java's default is 9: the fast mode costs far less CPU for little more network.",
        doc="Level of lz4. 0 is its fast mode. Higher levels are its slower high-compression mode; "
        "levels from 12 on are the same.",
        aliases=confluent("compression.level"),
    ),
    Key(
        name="compression.zstd.level",
        kind=ValueKind.INT,
        default=1,
        low=-131_072,
        high=22,
        clients=_ONLY,
        differs="Java's default is 3: level 1 costs up to a third less CPU for little more "
        "network.",
        doc="Level of zstd. Negative levels are fast, and all levels below -7 are the same. 22 "
        "makes the smallest batches.",
        aliases=confluent("compression.level"),
    ),
    Key(
        name="partitioner.class",
        kind=ValueKind.PARTITIONER,
        default="default",
        choices=("default", "round_robin"),
        later=("random", "consistent", "consistent_random", "fnv1a", "fnv1a_random"),
        words={
            "none": "default",
            "murmur2": "default",
            "murmur2_random": "default",
            "defaultpartitioner": "default",
            "roundrobinpartitioner": "round_robin",
        },
        clients=_ONLY,
        doc="Chooses the partition of a record that names none. `default` (also `murmur2`): by "
        "the murmur2 hash of the key, as in every Java producer. Records without a key then stay "
        "with one partition for a batch (KIP-794). `round_robin`: in turn. Or a callable "
        "`f(topic, key, value, partition_count)` that returns the partition's number. Key and "
        "value are what the serializers returned.",
        aliases=confluent("partitioner"),
    ),
    Key(
        name="partitioner.adaptive.partitioning.enable",
        kind=ValueKind.BOOLEAN,
        default=True,
        clients=_ONLY,
        doc="Send fewer of the records without a key to partitions whose broker is slow.",
    ),
    Key(
        name="partitioner.availability.timeout.ms",
        kind=ValueKind.INT,
        default=0,
        low=0,
        high=LONG_MAX,
        unit="ms",
        clients=_ONLY,
        doc="A partition whose batches could not be sent for this long gets no records without "
        "a key. 0: off.",
    ),
    Key(
        name="partitioner.ignore.keys",
        kind=ValueKind.BOOLEAN,
        default=False,
        clients=_ONLY,
        doc="Partition records with a key as if they had none.",
    ),
    Key(
        name="partitioner.rack.aware",
        kind=ValueKind.BOOLEAN,
        default=False,
        clients=_ONLY,
        pending="rack-aware partitioning",
        doc="Prefer partitions whose leader is in `client.rack` for records without a key.",
    ),
    Key(
        name="metadata.max.idle.ms",
        kind=ValueKind.INT,
        default=300_000,
        low=5_000,
        high=LONG_MAX,
        unit="ms",
        clients=_ONLY,
        doc="Forget the metadata of a topic that no record was sent to for this long.",
    ),
    Key(
        name="exit.flush.timeout.ms",
        kind=ValueKind.INT,
        default=10_000,
        low=0,
        high=INT_MAX,
        unit="ms",
        clients=_ONLY,
        own=True,
        doc="How long the end of the Python process may wait for records that are still pending.",
    ),
    Key(
        name="exit.status.on.loss",
        kind=ValueKind.INT,
        default=0,
        low=0,
        high=255,
        clients=_ONLY,
        own=True,
        doc="The exit status of a Python process that would end with 0 although records were lost "
        "of which only the log tells.",
    ),
    Key(
        name="on.delivery",
        kind=ValueKind.CALLABLE,
        default=None,
        clients=_ONLY,
        own=True,
        doc="Called as `f(error, metadata)` for every record that was delivered or has failed.",
    ),
    Key(
        name="transactional.id",
        kind=ValueKind.STRING,
        default=None,
        clients=_ONLY,
        doc="Name of the producer for its transactions. A producer that begins under a name ends "
        "the open transaction of its predecessor, and fences it. So no two producers that run at "
        "the same time may share one. Needs idempotence.",
    ),
    Key(
        name="transaction.timeout.ms",
        kind=ValueKind.INT,
        default=60_000,
        low=1,
        high=INT_MAX,
        unit="ms",
        clients=_ONLY,
        doc="How long a transaction may stay open before the coordinator aborts it. At most the "
        "broker's `transaction.max.timeout.ms`, 15 minutes unless it was changed.",
    ),
    Key(
        name="transaction.two.phase.commit.enable",
        kind=ValueKind.BOOLEAN,
        default=False,
        clients=_ONLY,
        pending="two-phase commit",
        doc="Leave transactions open until they are ended explicitly (KIP-939).",
    ),
)
