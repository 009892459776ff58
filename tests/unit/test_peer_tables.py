"""The tables of other clients' names are whole, and name nothing that we have."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping

import aiokafka
import confluent_kafka
import pytest
from aiokafka.structs import RecordMetadata as TheirMetadata
from confluent_kafka.aio import AIOConsumer, AIOProducer

import kafka_fast
from kafka_fast import aio, peer_names
from kafka_fast.consumer.range import RangeConsumer
from tests.unit.test_peer_names import KINDS, public

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python warns when it is imported
    import kafka
    from kafka.consumer.fetcher import ConsumerRecord as TheirRecord
    from kafka.producer.future import FutureRecordMetadata
    from kafka.producer.future import RecordMetadata as OtherMetadata

PRODUCERS = (
    kafka.KafkaProducer,
    confluent_kafka.Producer,
    confluent_kafka.SerializingProducer,
    aiokafka.AIOKafkaProducer,
    AIOProducer,
)
CONSUMERS = (
    kafka.KafkaConsumer,
    confluent_kafka.Consumer,
    confluent_kafka.DeserializingConsumer,
    aiokafka.AIOKafkaConsumer,
    AIOConsumer,
)
#: Ours -> theirs.
THEIRS: dict[type, tuple[type, ...]] = {
    kafka_fast.Producer: PRODUCERS,
    aio.Producer: PRODUCERS,
    kafka_fast.Consumer: CONSUMERS,
    aio.Consumer: CONSUMERS,
    RangeConsumer: CONSUMERS,
    kafka_fast.DeliveryFuture: (FutureRecordMetadata,),
    kafka_fast.BatchFuture: (FutureRecordMetadata,),
    kafka_fast.ConsumerRecord: (TheirRecord, confluent_kafka.Message, aiokafka.ConsumerRecord),
    kafka_fast.ConsumerRecords: (confluent_kafka.Message,),
    kafka_fast.RecordMetadata: (OtherMetadata, TheirMetadata, confluent_kafka.Message),
    kafka_fast.TopicPartition: (kafka.TopicPartition, confluent_kafka.TopicPartition),
}


@pytest.mark.parametrize(("ours", "table"), KINDS)
def test_every_public_name_of_theirs_is_ours_or_is_answered(
    ours: type, table: Mapping[str, str]
) -> None:
    names = set().union(*map(public, THEIRS[ours])) - {"count", "index"}  # those of any tuple
    assert names - public(ours) <= table.keys()
    assert not table.keys() & public(ours), "what there is needs no hint"


def test_every_name_of_their_modules_is_ours_or_is_answered() -> None:
    names = {
        name
        for module in (kafka, confluent_kafka, aiokafka)
        for name in public(module)
        if not inspect.ismodule(getattr(module, name))
    }
    assert names - public(kafka_fast) <= peer_names.MODULE.keys()
    assert not peer_names.MODULE.keys() & public(kafka_fast)
