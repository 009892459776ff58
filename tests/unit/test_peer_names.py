"""Other clients' names: told what they are called here, and absent in every other respect."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

import kafka_fast
from kafka_fast import (
    BatchFuture,
    Consumer,
    ConsumerRecord,
    ConsumerRecords,
    DeliveryFuture,
    KafkaError,
    OffsetAndMetadata,
    Producer,
    RecordMetadata,
    TopicPartition,
    aio,
    errors,
    peer_errors,
    peer_names,
)
from kafka_fast._hints import HintedMethod, hint_at_names
from kafka_fast.consumer.ranges.record_range import RangeConsumer
from kafka_fast.records._async_records import AsyncRecords, NextRecord
from kafka_fast.records._blocking_records import BlockingRecords

ERROR = peer_errors.error_names({kind.name: kind.__name__ for kind in errors.ERRORS.values()})
#: Ours, and its table.
KINDS: list[tuple[type, Mapping[str, str]]] = [
    (Producer, peer_names.PRODUCER),
    (aio.Producer, peer_names.AIO_PRODUCER),
    (Consumer, peer_names.CONSUMER),
    (aio.Consumer, peer_names.AIO_CONSUMER),
    (RangeConsumer, peer_names.CONSUMER),
    (DeliveryFuture, peer_names.FUTURE),
    (BatchFuture, peer_names.BATCH_FUTURE),
    (ConsumerRecord, peer_names.RECORD),
    (ConsumerRecords, peer_names.RECORDS),
    (RecordMetadata, peer_names.METADATA),
    (TopicPartition, peer_names.TOPIC_PARTITION),
    (KafkaError, ERROR),
]
#: Our packages and modules, and their tables.
MODULES: list[tuple[ModuleType, Mapping[str, str]]] = [
    (kafka_fast, peer_names.MODULE),
    (aio, peer_names.AIO_MODULE),
    (errors, peer_errors.errors_module(errors.BROKER_ERRORS, errors.__all__)),
]
CLIENTS = [
    (Producer, {**peer_names.PRODUCER_ARGUMENTS, **peer_names.BULK_ARGUMENTS}),
    (aio.Producer, peer_names.AIO_PRODUCER_ARGUMENTS),
    (Consumer, peer_names.CONSUMER_ARGUMENTS),
    (aio.Consumer, peer_names.CONSUMER_ARGUMENTS),
]
ANY_ENTRY = mock.ANY
"""The line of a traceback for the short way into a compiled method."""
ONE_BY_ONE = ("pause", "resume", "seek_to_beginning", "seek_to_end")
NO_BROKER = {"bootstrap.servers": "127.0.0.1:1"}


def public(kind: object) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.fixture
def clients() -> Iterator[dict[type, Any]]:
    """A client of each class."""
    loop = asyncio.new_event_loop()

    async def make() -> dict[type, Any]:
        return {kind: kind(NO_BROKER) for kind, _ in CLIENTS}

    made = loop.run_until_complete(make())
    yield made
    for kind, client in made.items():
        closing = client.close(0)
        if kind in (aio.Producer, aio.Consumer):
            loop.run_until_complete(closing)
    loop.close()


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, table in MODULES for name in sorted(table)]
)
def test_a_name_is_absent_from_the_module(module: ModuleType, name: str) -> None:
    with pytest.raises(
        AttributeError, match=rf"'{module.__name__}' has no attribute '{name}': ."
    ) as caught:
        getattr(module, name)
    assert not hasattr(module, name)
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("from kafka_fast import AdminClient", "the admin client is kafka_fast.Admin"),
        ("from kafka_fast import structs", "kafka_fast has TopicPartition, .* itself"),
        ("from kafka_fast.aio import AIOKafkaConsumer", "kafka_fast.aio calls it Consumer"),
        ("from kafka_fast.aio import AIOProducer", "kafka_fast.aio calls it Producer"),
        ("from kafka_fast.aio import TopicPartition", "from kafka_fast import TopicPartition"),
        ("from kafka_fast.errors import NoBrokersAvailable", "a client connects when it is used"),
        ("from kafka_fast.errors import UnknownTopicOrPartitionError", "UnknownTopicOrPartition"),
    ],
)
def test_an_import_from_a_module_of_ours_tells_it(line: str, hint: str) -> None:
    with pytest.raises(ImportError, match=rf"^cannot import name .* from 'kafka_fast.*': .*{hint}"):
        exec(line)


@pytest.mark.parametrize("module", [aio, errors])
def test_a_name_that_nobody_has_is_an_error_as_ever(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=r"^module 'kafka_fast.* has no attribute 'nobodys'$"):
        module.nobodys  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nobodys'"):
        exec(f"from {module.__name__} import nobodys")


def test_an_import_tells_it_too() -> None:
    with pytest.raises(
        ImportError, match=r"^cannot import name 'KafkaConsumer' .*calls it Consumer$"
    ):
        from kafka_fast import KafkaConsumer  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name 'Nobodys'"):
        from kafka_fast import Nobodys  # noqa: F401
    assert getattr(kafka_fast, "KafkaConsumer", None) is None


@pytest.mark.parametrize(("ours", "table"), KINDS)
def test_a_name_is_absent_from_the_class(ours: type, table: Mapping[str, str]) -> None:
    for name, hint in table.items():
        with pytest.raises(AttributeError) as caught:
            getattr(ours, name)
        assert str(caught.value) == f"type {ours.__name__!r} has no attribute {name!r}: {hint}"
        assert caught.value.name == name
        assert not hasattr(ours, name)
        assert name not in dir(ours)


INSTANCES = [
    ConsumerRecord("t", 0, 5, b"k", b"v"),
    ConsumerRecords(),
    RecordMetadata("t", 0, 5, 7),
    TopicPartition("t", 0),
]


def check_instance(instance: object, table: Mapping[str, str]) -> None:
    kind = type(instance).__name__
    for name, hint in table.items():
        with pytest.raises(AttributeError) as caught:
            getattr(instance, name)
        assert str(caught.value) == f"{kind!r} object has no attribute {name!r}: {hint}"
        assert getattr(instance, name, None) is None
    with pytest.raises(AttributeError, match=rf"{kind}' object has no attribute 'nobodys'$"):
        instance.nobodys  # type: ignore[attr-defined]  # noqa: B018
    assert not public(instance) & table.keys()


@pytest.mark.parametrize("instance", INSTANCES)
def test_a_name_is_absent_from_what_clients_hand_out(instance: object) -> None:
    check_instance(instance, dict(KINDS)[type(instance)])


def test_a_name_is_absent_from_clients(clients: dict[type, Any]) -> None:
    tables = dict(KINDS)
    for kind, client in clients.items():
        check_instance(client, tables[kind])


@pytest.mark.parametrize(
    "kind",
    [ConsumerRecord, ConsumerRecords, DeliveryFuture, BatchFuture, type(iter(ConsumerRecords())),
     AsyncRecords, NextRecord, BlockingRecords],
)  # fmt: skip
def test_names_of_types_are_whole(kind: type) -> None:
    """Regression: Python cuts them off after 50 letters, in the middle of the class's name."""
    assert len(f"{kind.__module__}.{kind.__qualname__}") <= 50
    assert "._" not in kind.__module__
    assert repr(kind) == f"<class '{kind.__module__}.{kind.__name__}'>"


@pytest.mark.parametrize("instance", [*INSTANCES[:1], *INSTANCES[2:]])
def test_copies_and_pickles(instance: object) -> None:
    assert copy.copy(instance) == copy.deepcopy(instance) == instance
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(instance, protocol)) == instance
        assert pickle.loads(pickle.dumps(type(instance), protocol)) is type(instance)


@pytest.mark.parametrize("name", ["_ipython_display_", "_repr_html_", "__len_hint__", "__array__"])
def test_probes_of_tools_find_nothing(clients: dict[type, Any], name: str) -> None:
    for instance in [*INSTANCES[:1], *clients.values()]:
        assert not hasattr(instance, name)


# ---- errors ----

ERRORS = [
    KafkaError("x"),
    errors.KafkaTimeoutError("x"),
    errors.MalformedError("x", place="topics[3].name"),
    errors.DeliveryError("x", outcome=errors.Outcome.REJECTED),
    errors.broker_error(3, "topic t"),
    errors.UnknownBrokerError("x", code=999),
]


class TheirError(errors.ConfigError):
    """An error of a user's."""

    retriable = True


@pytest.mark.parametrize("error", [*ERRORS, TheirError("x")])
def test_errors_answer_to_other_names(error: KafkaError) -> None:
    """Regression: `.code()` and `KafkaError._PARTITION_EOF` were bare AttributeErrors."""
    kind = type(error)
    for name, hint in ERROR.items():
        if name in public(kind):
            assert hasattr(error, name)
            continue
        assert getattr(error, name, None) is None
        assert not hasattr(kind, name)
        with pytest.raises(AttributeError) as caught:
            getattr(error, name)
        assert str(caught.value).endswith(f" has no attribute {name!r}: {hint}")
    with pytest.raises(AttributeError, match=r"has no attribute 'nobodys'$"):
        error.nobodys  # type: ignore[attr-defined]  # noqa: B018
    assert kind.__mro__[-1] is object
    assert isinstance(error, Exception)


def test_what_errors_have_is_theirs() -> None:
    error = errors.broker_error(3, "topic t")
    assert (error.code, error.name) == (3, "UNKNOWN_TOPIC_OR_PARTITION")
    assert (error.retriable, error.fatal, error.refresh_metadata) == (True, False, True)
    assert TheirError("x").retriable
    assert errors.UnknownBrokerError("x", code=999).name == "UNKNOWN_999"


@pytest.mark.parametrize("error", ERRORS)
def test_errors_are_copied_and_pickled(error: KafkaError) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(error, protocol))
        assert (type(back), back.args, vars(back)) == (type(error), error.args, vars(error))
        assert pickle.loads(pickle.dumps(type(error), protocol)) is type(error)
    for copied in (copy.copy(error), errors.fresh_copy(error)):
        assert (type(copied), copied.args, vars(copied)) == (type(error), error.args, vars(error))
    assert str(mock.create_autospec(type(error), instance=True).args)
    with pytest.raises(AttributeError):
        mock.create_autospec(KafkaError, instance=True).code  # noqa: B018


# ---- constructors ----


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: TopicPartition("t", 0, 5), "takes 2 arguments, but 3 were given: {offset}"),
        (lambda: TopicPartition(*"t0", 5, "m", 1), "takes 2 arguments, but 5 were given: {offset}"),
        (lambda: TopicPartition("t", 0, offset=5), "keyword argument 'offset': {offset}"),
        (lambda: TopicPartition("t", 0, metadata=""), "keyword argument 'metadata': {metadata}"),
        (lambda: TopicPartition("t", leader_epoch=1), "argument 'leader_epoch': {leader_epoch}"),
        (lambda: TopicPartition("t"), "missing 1 required positional argument: 'partition'"),
        (lambda: TopicPartition("t", 0, nobodys=1), "unexpected keyword argument 'nobodys'"),
    ],
)
def test_constructors_answer_to_other_arguments(make: Callable[[], object], said: str) -> None:
    """Regression: only Python's own text was told, "takes 3 positional arguments"."""
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value).endswith(said.format(**peer_names.TOPIC_PARTITION))
    assert str(caught.value).startswith("TopicPartition")
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 2, "no frame is added"


@pytest.mark.parametrize("fields", [(5, "meta", 1), (5, ""), (5, "meta"), (5, None, 1)])
def test_another_order_of_an_offset_and_its_metadata_is_refused(fields: Any) -> None:
    """Regression: an OffsetAndMetadata was made, and its commit failed without a word of this."""
    with pytest.raises(
        TypeError,
        match=r"^the order is OffsetAndMetadata\(offset, leader_epoch, metadata\), unlike",
    ):
        OffsetAndMetadata(*fields)


def test_constructors_look_as_before() -> None:
    assert str(inspect.signature(OffsetAndMetadata)) == (
        "(offset: 'int', leader_epoch: 'int' = -1, metadata: 'str' = '') -> 'OffsetAndMetadata'"
    )
    assert [*inspect.signature(TopicPartition).parameters] == ["topic", "partition"]
    assert OffsetAndMetadata(5) == (5, -1, "")
    for made in (OffsetAndMetadata(metadata="m", offset=5), TopicPartition(partition=1, topic="t")):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(made, protocol)) == made
        assert copy.copy(made) == copy.deepcopy(made) == made._replace() == made
        assert type(copy.copy(made)) is type(made)


def test_classes_that_are_derived_already_answer_too() -> None:
    class Base:
        pass

    class One(Base):
        pass

    class Other(Base):
        gone = "its own"

    class Both(One, Other):
        pass

    hint_at_names(Base, {"gone": "write there", "too": "and there"})
    assert Both().gone == Both.gone == "its own"
    for kind in (Base, One, Other, Both):
        with pytest.raises(AttributeError, match=rf"^'{kind.__name__}' .* 'too': and there$"):
            kind().too  # type: ignore[attr-defined]  # noqa: B018
        assert kind.__mro__[-1] is object
        assert not hasattr(kind, "too")


# ---- arguments ----


def calls() -> Iterator[tuple[type, str, str, str]]:
    for kind, methods in CLIENTS:
        for method, table in methods.items():
            for name, hint in table.items():
                yield kind, method, name, hint


@pytest.mark.parametrize(("kind", "method", "name", "hint"), [*calls()])
def test_a_wrong_argument_is_answered(
    clients: dict[type, Any], kind: type, method: str, name: str, hint: str
) -> None:
    known = inspect.signature(getattr(kind, method)).parameters
    assert name not in known or known[name].kind is inspect.Parameter.VAR_POSITIONAL
    client = clients[kind]
    with pytest.raises(TypeError) as caught:
        getattr(client, method)(**{name: 1})
    expected = rf"unexpected keyword argument {name!r}: {hint}"
    assert str(caught.value).endswith(expected)
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[1:] in ([], [ANY_ENTRY]), "no frame is added"


def test_the_hint_at_autocommit_tells_the_rule_of_close(clients: dict[type, Any]) -> None:
    """Regression: it told a rule about `with` blocks only, which is not the whole one."""
    with pytest.raises(TypeError, match="only once the next one was asked for; commit"):
        clients[Consumer].close(autocommit=False)
    assert "only if the next one was asked for" in " ".join((Consumer.close.__doc__ or "").split())


def test_however_it_is_called(clients: dict[type, Any]) -> None:
    consumer = clients[Consumer]
    poll, wrong = consumer.poll, {"timeout_ms": 1}
    for call in (
        lambda: consumer.poll(timeout_ms=1),
        lambda: poll(timeout_ms=1),
        lambda: consumer.poll(**wrong),
        lambda: consumer.poll(0.0, *(), timeout_ms=1),
    ):
        with pytest.raises(
            TypeError, match="'timeout_ms': kafka_fast calls it timeout, in seconds"
        ):
            call()
    for other in (lambda: consumer.poll(nobodys=1), lambda: consumer.poll(1, 2, 3)):
        with pytest.raises(TypeError, match=r"nobodys'$|but 4 were given$"):
            other()


CALLS_WITH_A_LIST: list[tuple[str, tuple[object, ...], str]] = [
    *((name, (), f"{name}(*partitions)") for name in ONE_BY_ONE),
    ("seek_to_timestamp", (0,), "seek_to_timestamp(timestamp_ms, *partitions)"),
    ("position", (), "position(partition)"),
    ("current_lag", (), "current_lag(partition)"),
]


@pytest.mark.parametrize(("method", "before", "call"), CALLS_WITH_A_LIST)
@pytest.mark.parametrize("kind", [Consumer, aio.Consumer])
def test_a_list_of_partitions_is_answered_with_the_call(
    clients: dict[type, Any], kind: type, method: str, before: tuple[object, ...], call: str
) -> None:
    """Regression: it was "a partition is a TopicPartition(topic, number)", in any method."""
    partitions = [TopicPartition("t", 0), TopicPartition("t", 1)]
    clients[kind].assign(partitions)

    async def make_call(argument: object) -> None:
        result = getattr(clients[kind], method)(*before, argument)
        if inspect.isawaitable(result):
            await result

    for argument in (
        partitions,
        partitions[:1],
        set(partitions),
        tuple(partitions),
        iter(partitions),
    ):
        with pytest.raises(TypeError, match=rf": {method} is called as {re.escape(call)}$"):
            asyncio.run(make_call(argument))
    with pytest.raises(TypeError, match=r"a partition is a TopicPartition.*, not 't'$"):
        asyncio.run(make_call("t"))


def test_an_error_of_the_call_itself_is_left_alone() -> None:
    def fails(self: object, given: int) -> None:
        raise TypeError("its own")

    method = HintedMethod(fails, {"other": "it is called given"})
    with pytest.raises(TypeError, match=r"^its own$"):
        method(None, given=1)


@pytest.mark.parametrize(("kind", "methods"), CLIENTS)
def test_methods_look_as_before(kind: type, methods: Mapping[str, Any]) -> None:
    for name in methods:
        method = getattr(kind, name)
        assert inspect.isroutine(method)
        assert method.__doc__
        assert method.__name__ == name
        assert "self" in inspect.signature(method).parameters


def test_coroutines_are_known_as_such(clients: dict[type, Any]) -> None:
    for kind in (aio.Consumer, aio.Producer):
        for method in (kind.close, clients[kind].close):
            assert inspect.iscoroutinefunction(method)
            if sys.version_info < (3, 14):  # deprecated since
                assert asyncio.iscoroutinefunction(method)
    assert not inspect.iscoroutinefunction(clients[Consumer].close)


# ---- mocks, subclasses ----


@pytest.mark.parametrize(("kind", "methods"), CLIENTS)
def test_mocks_know_our_names_only(kind: type, methods: Mapping[str, Any]) -> None:
    for double in (
        mock.create_autospec(kind, instance=True),
        mock.create_autospec(kind),
        mock.Mock(spec=kind),
    ):
        for name in ("produce", "consume", "list_topics"):
            with pytest.raises(AttributeError):
                getattr(double, name)
    double = mock.create_autospec(kind, instance=True)
    is_coroutine = kind in (aio.Consumer, aio.Producer)
    assert isinstance(double.close, mock.AsyncMock) == is_coroutine
    for closing in (double.close(), double.close(timeout=1.0)):
        if is_coroutine:
            asyncio.run(closing)
    with pytest.raises(TypeError, match="timeout_ms"):
        double.close(timeout_ms=1).send(None)  # a coroutine's mock looks when it is awaited


def test_a_mock_of_a_client_and_a_patch_of_a_method(clients: dict[type, Any]) -> None:
    double = mock.create_autospec(clients[Consumer])
    double.poll(0.1)
    double.poll.assert_called_once_with(0.1)
    with pytest.raises(TypeError):
        double.poll(timeout_ms=1)
    with mock.patch.object(Consumer, "poll", autospec=True, return_value=[]) as patched:
        assert clients[Consumer].poll(0.5) == []
    patched.assert_called_once_with(clients[Consumer], 0.5)
    assert isinstance(vars(Consumer)["poll"], HintedMethod)


class Theirs:
    """What a user mixes in behind one of our classes."""

    consume = "an attribute"

    def list_topics(self) -> str:
        return "a method"

    @property
    def memberid(self) -> str:
        return "a property"


class Mixed(Consumer, Theirs):
    """A consumer with more names."""

    def stop(self) -> str:
        return "its own"


class Answering(Consumer):
    """A consumer that answers to all names."""

    def __getattr__(self, name: str) -> str:
        return name


def test_names_of_subclasses_win() -> None:
    with Mixed(NO_BROKER) as consumer:
        assert consumer.consume == Mixed.consume == "an attribute"
        assert consumer.list_topics() == "a method"
        assert consumer.memberid == "a property"
        assert consumer.stop() == "its own"
        with pytest.raises(
            AttributeError, match="'Mixed' object has no attribute 'getone': kafka_"
        ):
            consumer.getone  # noqa: B018
        consumer.getone = "set"
        assert consumer.getone == "set"
    with Answering(NO_BROKER) as consumer:
        assert consumer.consume == "consume"


def test_a_subclass_overrides_a_method_and_calls_ours() -> None:
    class Counting(Consumer):
        count = 0

        def poll(self, timeout: float = 1.0, max_records: int | None = None) -> ConsumerRecords:
            self.count += 1
            return super().poll(timeout, max_records)

    with Counting(NO_BROKER) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        assert not consumer.poll(0.0)
        assert consumer.count == 1


def test_what_exists_is_looked_up_as_in_any_class() -> None:
    """A `__getattr__` costs each call of a method some 25 ns."""
    for kind, _ in KINDS:
        assert not any("__getattr__" in vars(base) for base in kind.__mro__)
        assert kind.__getattribute__ in (
            object.__getattribute__,
            tuple.__getattribute__,
            Exception.__getattribute__,
        )


def test_hints_of_a_class_stand_behind_its_bases() -> None:
    class Base:
        there = 1

    class Own(Base):
        pass

    hint_at_names(Own, {"there": "never told", "gone": "write there"})
    assert Own().there == 1
    with pytest.raises(AttributeError, match=r"^'Own' object has .* 'gone': write there$"):
        Own().gone  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(Base(), "gone")
