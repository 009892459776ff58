"""The tables of other clients' names are whole, and name nothing that we have."""

from __future__ import annotations

import inspect
import pkgutil
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import aiokafka
import aiokafka.errors
import confluent_kafka
import confluent_kafka.aio
import confluent_kafka.error
import pytest
from aiokafka.structs import RecordMetadata as TheirMetadata
from confluent_kafka.aio import AIOConsumer, AIOProducer

import kafka_fast
from kafka_fast import aio, errors, peer_names
from kafka_fast.consumer.ranges.record_range import RangeConsumer
from tests.unit.test_peer_names import CLIENTS, KINDS, MODULES, public

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python warns when it is imported
    import kafka
    import kafka.errors
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
    kafka_fast.KafkaError: (
        confluent_kafka.KafkaError,
        kafka.errors.BrokerResponseError,
        aiokafka.errors.BrokerResponseError,
    ),
}
NOT_THEIR_OWN = {"Iterable", "Message", "Optional", "kafka_errors"}
"""What their modules of errors import for themselves."""
PACKAGES = (kafka, confluent_kafka, aiokafka)


@pytest.mark.parametrize(("ours", "table"), KINDS)
def test_every_public_name_of_theirs_is_ours_or_is_answered(
    ours: type, table: Mapping[str, str]
) -> None:
    names = set().union(*map(public, THEIRS[ours])) - {"count", "index"}  # those of any tuple
    if ours is kafka_fast.KafkaError:
        names |= {name for name in dir(confluent_kafka.KafkaError) if re.match("_[A-Z]", name)}
    assert names - public(ours) <= table.keys()
    assert not table.keys() & public(ours), "what there is needs no hint"


def test_every_name_of_their_modules_is_ours_or_is_answered() -> None:
    names = {
        name
        for module in PACKAGES
        for name in public(module)
        if not inspect.ismodule(getattr(module, name))
    }
    assert names - public(kafka_fast) <= peer_names.MODULE.keys()
    assert not peer_names.MODULE.keys() & public(kafka_fast)


def test_every_module_of_theirs_is_ours_or_is_answered() -> None:
    """Regression: `from kafka_fast import admin` had no hint."""
    names = {
        module.name
        for package in PACKAGES
        for module in pkgutil.iter_modules(package.__path__)
        if not module.name.startswith("_")
    }
    ours = {module.name for module in pkgutil.iter_modules(kafka_fast.__path__)}
    assert names - ours <= peer_names.MODULE.keys()
    assert not peer_names.MODULE.keys() & ours


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (aio, (aiokafka, confluent_kafka.aio)),
        (errors, (kafka.errors, aiokafka.errors, confluent_kafka.error)),
    ],
)
def test_every_name_of_a_module_of_theirs_is_ours_or_is_answered(ours: Any, theirs: Any) -> None:
    names = {
        name
        for module in theirs
        for name in public(module)
        if not inspect.ismodule(getattr(module, name))
    }
    table = dict(MODULES)[ours]
    assert names - public(ours) - NOT_THEIR_OWN <= table.keys()
    assert not table.keys() & public(ours)


# ---- arguments ----

SHOWN = re.compile(r"py:function:: \w+\((.*)\)")
"""How compiled methods of confluent-kafka show their arguments: `commit([message=None], ...)`."""


def arguments_of(method: Any) -> Iterator[str]:
    """Yield what may be passed by name."""
    try:
        parameters = inspect.signature(method).parameters.values()
    except ValueError:  # a compiled method without a signature
        shown = SHOWN.search(method.__doc__ or "")
        yield from re.findall(r"(\w+)(?:=\w*)?\]?(?:,|$)", shown[1] if shown else "")
        return
    for parameter in parameters:
        is_named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if is_named and parameter.name != "self":
            yield parameter.name


def test_arguments_are_found_in_compiled_methods_too() -> None:
    assert [*arguments_of(confluent_kafka.Consumer.commit)] == [
        "message", "offsets", "asynchronous"
    ]  # fmt: skip
    assert [*arguments_of(confluent_kafka.Consumer.pause)] == ["partitions"]
    assert [*arguments_of(confluent_kafka.Consumer.unsubscribe)] == []
    assert [*arguments_of(kafka.KafkaConsumer.pause)] == []


@pytest.mark.parametrize(("ours", "tables"), CLIENTS)
def test_every_argument_of_a_method_that_both_have_is_ours_or_is_answered(
    ours: type, tables: Mapping[str, Mapping[str, str]]
) -> None:
    """Regression: `pause(partitions=[...])` and `metrics(raw=True)` had no hint."""
    unanswered = [
        (theirs.__name__, method, name)
        for theirs in THEIRS[ours]
        for method in sorted(public(theirs) & public(ours))
        if callable(getattr(theirs, method))
        for name in arguments_of(getattr(theirs, method))
        if name not in arguments_of(getattr(ours, method)) and name not in tables.get(method, {})
    ]
    assert unanswered == []


@pytest.mark.parametrize(("ours", "tables"), CLIENTS)
def test_hints_at_arguments_are_of_methods_and_not_of_what_there_is(
    ours: type, tables: Mapping[str, Mapping[str, str]]
) -> None:
    for method, hints in tables.items():
        assert not hints.keys() & {*arguments_of(getattr(ours, method))}, method
