"""What kafka_fast calls the things that other clients have other names for.

confluent-kafka, kafka-python and aiokafka name the same things in three ways. A program that is
brought over meets an AttributeError, or a TypeError for an argument; these tables are the ends of
their messages. `_hints` attaches the tables to the classes, where they cost nothing until a name is
missing. Names of properties are in `config/spelling/_foreign`, those of errors in `peer_errors`.

Each table: the other client's name -> what to write instead.
"""

from __future__ import annotations

from collections.abc import Mapping

Names = Mapping[str, str]

_ADMIN = "the admin client is kafka_fast.Admin; its types are in kafka_fast.admin"
_NO_CREDENTIALS = "a client keeps the credentials of its properties: make a new client"
_ALWAYS_READY = "a client is ready when it is made: leave it out"

_EVERY_CLIENT: Names = {
    "DEFAULT_CONFIG": "`kafka-fast config` lists the properties and their defaults",
    "DEPRECATED_CONFIGS": "`kafka-fast config` lists the properties",
    "bootstrap_connected": "metrics() and debug_dump() say which nodes are connected",
    "client": "metrics() and debug_dump() tell of the connections",
    "cluster_id": "`kafka-fast check` prints it",
    "config": "keep the mapping that you passed; client_id has the client's name",
    "set_sasl_credentials": _NO_CREDENTIALS,
    "start": _ALWAYS_READY,
}

PRODUCER: Names = {
    **_EVERY_CLIENT,
    "create_batch": "kafka_fast has send_many(topic, values) for many records at a time",
    "list_topics": "kafka_fast calls it partitions_for(topic); a Consumer has topics()",
    "max_usable_produce_magic": "batches are always of version 2: leave it out",
    "poll": "callbacks run in a thread of the producer: leave it out",
    "produce": "kafka_fast calls it send(topic, value, key), or send_nowait",
    "produce_batch": "kafka_fast calls it send_many(topic, values, keys=...)",
    "purge": "close(0) gives up what is not delivered",
    "send_and_wait": "kafka_fast calls it send(...).result()",
    "send_batch": "kafka_fast calls it send_many(topic, values, partitions=...)",
    "stop": "kafka_fast calls it close()",
}

AIO_PRODUCER: Names = {
    **{name: hint for name, hint in PRODUCER.items() if name != "send_and_wait"},
    "list_topics": "kafka_fast calls it await partitions_for(topic); a Consumer has topics()",
    "poll": "callbacks run in the event loop: leave it out",
    "produce": "kafka_fast calls it await send(topic, value, key), or send_nowait",
    "produce_batch": "kafka_fast calls it await send_many(topic, values, keys=...)",
    "purge": "await close(0) gives up what is not delivered",
    "send_batch": "kafka_fast calls it await send_many(topic, values, partitions=...)",
    "stop": "kafka_fast calls it await close()",
}

CONSUMER: Names = {
    **_EVERY_CLIENT,
    "DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735": "session.timeout.ms has the same default everywhere",
    "bootstrap": _ALWAYS_READY,
    "commit_async": "kafka_fast calls it commit(offsets, sync=False, callback=...)",
    "consume": "kafka_fast calls it poll(timeout, max_records)",
    "consumer_group_metadata": "kafka_fast calls it group_metadata()",
    "get_watermark_offsets": "kafka_fast has beginning_offsets([...]) and end_offsets([...])",
    "getmany": "kafka_fast calls it poll(timeout, max_records); by_partition() divides the records",
    "getone": "kafka_fast has `for record in consumer`, or poll(timeout, 1)",
    "highwater": "kafka_fast has current_lag(partition), or end_offsets([partition])",
    "incremental_assign": "kafka_fast has assign(partitions): what was assigned before is read on",
    "incremental_unassign": "kafka_fast has assign(partitions): with those that are left",
    "last_poll_timestamp": "debug_dump() says when each partition was read last",
    "last_stable_offset": "with isolation.level=read_committed, end_offsets([...]) returns it",
    "list_topics": "kafka_fast has topics(), and partitions_for(topic)",
    "memberid": "kafka_fast calls it group_metadata().member_id",
    "partitions_for_topic": "kafka_fast calls it partitions_for(topic)",
    "seek_to_committed": "kafka_fast has seek(partition, committed([partition])[partition])",
    "stop": "kafka_fast calls it close()",
    "store_offsets": "kafka_fast has enable.auto.commit=false and commit(records)",
    "unassign": "kafka_fast calls it assign([])",
}

AIO_CONSUMER: Names = {
    **CONSUMER,
    "commit_async": "kafka_fast calls it await commit(offsets, sync=False, callback=...)",
    "consume": "kafka_fast calls it await poll(timeout, max_records)",
    "get_watermark_offsets": "kafka_fast has await beginning_offsets([...]), and end_offsets",
    "getmany": "kafka_fast calls it await poll(timeout, max_records); by_partition() divides the "
    "records",
    "getone": "kafka_fast has `async for record in consumer`, or await poll(timeout, 1)",
    "list_topics": "kafka_fast has await topics(), and await partitions_for(topic)",
    "partitions_for_topic": "kafka_fast calls it await partitions_for(topic)",
    "stop": "kafka_fast calls it await close()",
}

_CALLBACK = "kafka_fast calls it add_done_callback(function), or send(..., on_delivery=function)"

FUTURE: Names = {
    "add_both": "kafka_fast calls it add_done_callback(function)",
    "add_callback": _CALLBACK,
    "add_errback": _CALLBACK,
    "args": "add_done_callback takes a function; functools.partial adds arguments to it",
    "chain": "kafka_fast has add_done_callback(function)",
    "error_on_callbacks": "errors of callbacks are logged",
    "failed": "kafka_fast calls it done() and exception() is not None",
    "failure": "kafka_fast has exception(), which returns the error",
    "get": "kafka_fast calls it result(timeout)",
    "is_done": "kafka_fast calls it done()",
    "rebind": "kafka_fast has add_done_callback(function)",
    "retriable": "the producer itself tries again; exception().outcome says what became of it",
    "succeeded": "kafka_fast calls it done() and exception() is None",
    "success": "the producer itself decides what became of a record",
    "value": "kafka_fast calls it result()",
}

BATCH_FUTURE: Names = {name: hint for name, hint in FUTURE.items() if name != "failed"}

_SIZES: Names = {
    "checksum": "a record has none: its batch's is checked when it is read (check.crcs)",
    "delivery_count": "share groups are not supported yet",
    "deserialized_key": "key is what the deserializer made of it",
    "deserialized_value": "value is what the deserializer made of it",
    "latency": "metrics() has the latencies of requests",
    "serialized_header_size": "kafka_fast has headers, and the sizes of key and value only",
    **dict.fromkeys(
        ("set_error", "set_headers", "set_key", "set_topic", "set_value"),
        "what a client hands out does not change",
    ),
}

RECORD: Names = {
    **_SIZES,
    "error": "the poll that meets an error raises it: no record is an error",
    "timestamp": "kafka_fast calls it timestamp_ms; timestamp_type says who gave it",
}

_ONE = "poll() returns several records, each of which has it: `for record in poll(): record.{}`"

RECORDS: Names = {
    **{
        name: _ONE.format(name)
        for name in ("key", "leader_epoch", "offset", "partition", "topic", "value")
    },
    **_SIZES,
    "copy": "records do not change: leave it out",
    "count": "kafka_fast has len(records)",
    "error": "the poll that meets an error raises it: no record is an error",
    "get": "kafka_fast calls it by_partition().get(partition)",
    "is_empty": "kafka_fast has `if not records`",
    "items": "kafka_fast calls it by_partition().items()",
    "pop": "kafka_fast calls it by_partition().pop(partition)",
    "popitem": "by_partition() returns a dict",
    "records": "kafka_fast calls it by_partition()[partition]",
    "setdefault": "by_partition() returns a dict",
    "timestamp": _ONE.format("timestamp_ms"),
    "update": "by_partition() returns a dict",
}

_OF_RECORD = "metadata of a delivery have no {}: a closure, or functools.partial, keeps the record"

METADATA: Names = {
    **{name: hint for name, hint in _SIZES.items() if not name.startswith("deserialized")},
    **{
        name: _OF_RECORD.format(name)
        for name in ("deserialized_key", "deserialized_value", "headers", "key", "value")
    },
    "error": "a delivery callback gets (error, metadata)",
    "leader_epoch": "brokers do not tell it to producers",
    "log_start_offset": "a Consumer has beginning_offsets([partition])",
    "serialized_key_size": "brokers do not tell it to producers",
    "serialized_value_size": "brokers do not tell it to producers",
    "timestamp": "kafka_fast calls it timestamp_ms",
    "timestamp_type": "timestamp_ms is the broker's if the topic has LogAppendTime",
    "topic_partition": "kafka_fast has topic and partition",
}

TOPIC_PARTITION: Names = {
    "error": "the call that meets an error raises it",
    "leader_epoch": "kafka_fast has OffsetAndMetadata(offset, leader_epoch, metadata)",
    "metadata": "kafka_fast has OffsetAndMetadata(offset, leader_epoch, metadata)",
    "offset": "kafka_fast has seek(partition, offset) and commit({partition: offset})",
}

_TYPES = "kafka_fast has none: plain values are passed and returned"
_SERIALIZERS = "key.serializer, value.serializer and deserializers are plain functions, or objects"

_SCHEMAS = "a schema registry's (de)serializer is a plain function here"
_CLIENTS = "the clients are kafka_fast.Consumer and kafka_fast.Producer"

_PACKAGES: Names = {
    "abc": "kafka_fast has RebalanceListener",
    "avro": _SCHEMAS,
    "benchmarks": "bench/ in the repository has them",
    "cimpl": _CLIENTS,
    "client": _CLIENTS,
    "cluster": "partitions_for(topic) and topics() tell of the cluster",
    "codec": "compression.type names the codec of a producer",
    "conn": "`kafka-fast check` tries connections",
    "coordinator": "partition.assignment.strategy names the assignors",
    "deserializing_consumer": _CLIENTS,
    "deserializing_share_consumer": "share groups are not supported yet",
    "error": "kafka_fast calls it errors",
    "future": "kafka_fast has DeliveryFuture and BatchFuture",
    "helpers": "kafka_fast makes the context of TLS from ssl.* properties, or takes ssl_context=",
    "kafkatest": "kafka_fast.testing has a broker for tests",
    "metrics": "metrics() of a client returns a dictionary",
    "partitioner": "partitioner= takes a function (topic, key, value, partition_count)",
    "schema_registry": _SCHEMAS,
    "serializer": _SERIALIZERS,
    "serializing_producer": _CLIENTS,
    "structs": "kafka_fast has TopicPartition, OffsetAndMetadata and ConsumerRecord itself",
    "util": "it is another client's own",
    "vendor": "it is another client's own",
}

MODULE: Names = {
    **_PACKAGES,
    "AIOConsumer": "kafka_fast calls it kafka_fast.aio.Consumer",
    "AIOKafkaClient": "kafka_fast has kafka_fast.aio.Consumer and kafka_fast.aio.Producer",
    "AIOKafkaConsumer": "kafka_fast calls it kafka_fast.aio.Consumer",
    "AIOKafkaProducer": "kafka_fast calls it kafka_fast.aio.Producer",
    "AIOProducer": "kafka_fast calls it kafka_fast.aio.Producer",
    "AcknowledgeType": "share groups are not supported yet",
    "AdminClient": _ADMIN,
    "AsyncConsumerRebalanceListener": "kafka_fast calls it kafka_fast.aio.RebalanceListener",
    "BrokerConnection": "`kafka-fast check` tries connections",
    "ConcurrentModificationException": "kafka_fast calls it UsageError",
    "ConsumerGroupMetadata": "consumer.group_metadata() returns it",
    "ConsumerGroupState": _ADMIN,
    "ConsumerGroupTopicPartitions": _ADMIN,
    "ConsumerGroupType": _ADMIN,
    "ConsumerRebalanceListener": "kafka_fast calls it RebalanceListener",
    "ConsumerStoppedError": "kafka_fast calls it WakeupError",
    "DefaultSerializer": _SERIALIZERS,
    "Deserializer": _SERIALIZERS,
    "DeserializingConsumer": "kafka_fast calls it Consumer, with key.deserializer and "
    "value.deserializer",
    "DeserializingShareConsumer": "share groups are not supported yet",
    "ElectionType": _ADMIN,
    "IllegalOperation": "kafka_fast calls it UsageError",
    "IllegalStateException": "kafka_fast calls it UsageError",
    "IsolationLevel": "isolation.level is 'read_committed' or 'read_uncommitted'",
    "KafkaAdminClient": _ADMIN,
    "KafkaClient": "kafka_fast has Consumer and Producer",
    "KafkaConsumer": "kafka_fast calls it Consumer",
    "KafkaException": "kafka_fast calls it KafkaError",
    "KafkaProducer": "kafka_fast calls it Producer",
    "Message": "kafka_fast calls it ConsumerRecord",
    "Messages": "kafka_fast calls it ConsumerRecords",
    "NewTopic": _ADMIN,
    "Node": _ADMIN,
    "OFFSET_BEGINNING": "kafka_fast has seek_to_beginning(partition)",
    "OFFSET_END": "kafka_fast has seek_to_end(partition)",
    "OFFSET_INVALID": "an offset that is not known is None",
    "OFFSET_STORED": "assign(partitions) begins at the committed offsets of the group",
    "OffsetAndTimestamp": "consumer.offsets_for_times returns it; it is in kafka_fast.types",
    "OffsetSpec": _ADMIN,
    "SchemaRegistryClient": "a schema registry's (de)serializer is a plain function here",
    "Serializer": _SERIALIZERS,
    "SerializingProducer": "kafka_fast calls it Producer, with key.serializer and value.serializer",
    "ShareConsumer": "share groups are not supported yet",
    "TIMESTAMP_CREATE_TIME": "record.timestamp_type tells by name",
    "TIMESTAMP_LOG_APPEND_TIME": "record.timestamp_type tells by name",
    "TIMESTAMP_NOT_AVAILABLE": "record.timestamp_ms is -1 then",
    "ThrottleEvent": "metrics() has the throttle times",
    "TopicCollection": _TYPES,
    "TopicPartitionInfo": "kafka_fast calls it PartitionInfo",
    "TopicPartitionReplica": _ADMIN,
    "Uuid": "kafka_fast has uuid.UUID of the standard library",
    "consistent": "partitioner= takes a function (topic, key, value, partition_count)",
    "fnv1a": "partitioner= takes a function (topic, key, value, partition_count)",
    "libversion": "kafka_fast has __version__; there is no other library",
    "murmur2": "kafka_fast calls it key_partitions(keys, partition_count)",
    "version": "kafka_fast calls it __version__",
}

_SAME = "kafka_fast.aio calls it {}"
_ABOVE = "kafka_fast has it: from kafka_fast import {}"

AIO_MODULE: Names = {
    **MODULE,
    "AIOConsumer": _SAME.format("Consumer"),
    "AIOKafkaClient": "kafka_fast.aio has Consumer and Producer",
    "AIOKafkaConsumer": _SAME.format("Consumer"),
    "AIOKafkaProducer": _SAME.format("Producer"),
    "AIOProducer": _SAME.format("Producer"),
    "AsyncConsumerRebalanceListener": _SAME.format("RebalanceListener"),
    "AsyncDeserializingConsumer": "kafka_fast.aio calls it Consumer, with key.deserializer and "
    "value.deserializer",
    "AsyncSerializingProducer": "kafka_fast.aio calls it Producer, with key.serializer and "
    "value.serializer",
    "ConsumerRebalanceListener": _SAME.format("RebalanceListener"),
    "KafkaConsumer": _SAME.format("Consumer"),
    "KafkaProducer": _SAME.format("Producer"),
    **{
        name: _ABOVE.format(name)
        for name in (
            "BatchFuture",
            "BatchResult",
            "ConsumerConfig",
            "ConsumerRecord",
            "ConsumerRecords",
            "DeliveryFuture",
            "JsonDeserializer",
            "JsonSerializer",
            "KafkaError",
            "OffsetAndMetadata",
            "PartitionInfo",
            "ProducerConfig",
            "RecordMetadata",
            "TopicPartition",
            "errors",
        )
    },
}

_SECONDS = "kafka_fast calls it timeout, in seconds"
_TIMEOUT: Names = {"timeout_ms": _SECONDS}
_POLL: Names = {
    "num_messages": "kafka_fast calls it max_records",
    "timeout_ms": _SECONDS,
    "update_offsets": "positions always follow what is returned: leave it out",
}
_LISTENER = "kafka_fast has listener=, a RebalanceListener with {}"
_UPTO = "kafka_fast calls it upto, the first argument: commit({})"

_BULK_CALLBACK = "the BatchFuture that is returned has add_done_callback(function)"
_COLUMN = "kafka_fast calls it {}, the name of a column"
_RAW = "the values are always plain: leave it out"
_EACH = "partitions are arguments of their own: {}(*partitions)"

_SEND: Names = {
    "callback": "kafka_fast calls it on_delivery, called with (error, metadata)",
    "opaque": "on_delivery may be a closure: leave it out",
    "timestamp": "kafka_fast calls it timestamp_ms",
}
_OF_ALL = "kafka_fast calls it {}: one for all records, or one for each"

BULK_ARGUMENTS: Mapping[str, Names] = {
    "send_many": {
        "callback": _BULK_CALLBACK,
        "key": _OF_ALL.format("keys"),
        "on_delivery": _BULK_CALLBACK,
        "partition": _OF_ALL.format("partitions"),
        "timestamp": _OF_ALL.format("timestamps_ms"),
        "timestamp_ms": _OF_ALL.format("timestamps_ms"),
        "value": "kafka_fast calls it values, a list or an array",
    },
    "send_table": {
        "callback": _BULK_CALLBACK,
        "keys": _COLUMN.format("key"),
        "on_delivery": _BULK_CALLBACK,
        "partitions": _COLUMN.format("partition"),
        "timestamp_ms": _COLUMN.format("timestamp"),
        "timestamps_ms": _COLUMN.format("timestamp"),
        "values": _COLUMN.format("value"),
    },
}
"""Of compiled methods that have no way of their own to their hints."""

_GROUP = "kafka_fast calls it group: consumer.group_metadata(), or the group's name"

PRODUCER_ARGUMENTS: Mapping[str, Names] = {
    "send": _SEND,
    "send_nowait": _SEND,
    "flush": _TIMEOUT,
    "metrics": {"raw": _RAW},
    "partitions_for": {
        **dict.fromkeys(("timeout", "timeout_ms"), "max.block.ms limits the wait: leave it out"),
        "topics": "kafka_fast calls it topic, a single one",
    },
    "close": {
        "null_logger": "the logger of kafka_fast can be silenced: leave it out",
        "timeout_ms": _SECONDS,
    },
    "send_offsets_to_transaction": {
        "consumer_group_id": _GROUP,
        "group_id": _GROUP,
        "group_metadata": _GROUP,
        "positions": "kafka_fast calls it offsets",
    },
}

AIO_PRODUCER_ARGUMENTS: Mapping[str, Names] = {
    **PRODUCER_ARGUMENTS,
    **BULK_ARGUMENTS,
    "send_and_wait": _SEND,
}

CONSUMER_ARGUMENTS: Mapping[str, Names] = {
    "poll": _POLL,
    "batches": _POLL,
    "subscribe": {
        "on_assign": _LISTENER.format("on_partitions_assigned(consumer, partitions)"),
        "on_lost": _LISTENER.format("on_partitions_lost(consumer, partitions)"),
        "on_revoke": _LISTENER.format("on_partitions_revoked(consumer, partitions)"),
    },
    "commit": {
        "asynchronous": "kafka_fast calls it sync: sync=False does not wait",
        "message": _UPTO.format("record"),
        "offsets": _UPTO.format("{partition: offset}"),
        "timeout_ms": _SECONDS,
    },
    "committed": {
        "metadata": "the values are always OffsetAndMetadata: leave it out",
        "partition": "kafka_fast calls it partitions, several of them: committed([partition])",
        "timeout_ms": _SECONDS,
    },
    "assign": {"topic_partitions": "kafka_fast calls it partitions"},
    **{
        method: {"partitions": _EACH.format(method)}
        for method in ("pause", "resume", "seek_to_beginning", "seek_to_end")
    },
    "metrics": {"raw": _RAW},
    "position": {"partitions": "kafka_fast calls it partition, a single one", **_TIMEOUT},
    "beginning_offsets": _TIMEOUT,
    "end_offsets": _TIMEOUT,
    "offsets_for_times": {
        "partitions": "kafka_fast calls it timestamps, a mapping: {partition: time}",
        **_TIMEOUT,
    },
    "topics": _TIMEOUT,
    "partitions_for": {"topic": "kafka_fast calls it topics", "timeout_ms": _SECONDS},
    "close": {
        "autocommit": "with enable.auto.commit, close commits a record only once the next one was "
        "asked for; commit() commits all",
        "timeout_ms": _SECONDS,
    },
}
