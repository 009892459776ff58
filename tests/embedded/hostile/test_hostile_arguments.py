"""Every public method of a client with wrong arguments: an error of that call, and nothing else.

Each parameter in turn gets each wrong value, and the others get what is right. What comes of it is
not told apart here: some values are right for some parameter. But no call may take long, raise what
is no error of a user's, or end the client.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest

from kafka_fast import Admin, Consumer, Producer, TopicPartition
from kafka_fast.errors import InternalError, KafkaError
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.waiting import eventually

Client: TypeAlias = Admin | Consumer[Any, Any] | Producer
Make: TypeAlias = Callable[[EmbeddedKafka], Client]

NO_UTF_8 = "\udcff"
LONG = "t" * 2**15
HERE, NOWHERE = TopicPartition("t", 0), TopicPartition(NO_UTF_8, 0)

TEXTS: tuple[object, ...] = ("", " ", NO_UTF_8, LONG, b"t")
NUMBERS: tuple[object, ...] = (-1, 2**31, 2**70, -(2**70), 0.5, float("nan"), True)
PARTITIONS: tuple[object, ...] = (
    NOWHERE,
    TopicPartition(LONG, 0),
    TopicPartition("t", -1),
    TopicPartition("t", 2**40),
    TopicPartition(None, None),  # type: ignore[arg-type]
    ("t",),
)
WRONG: tuple[object, ...] = (
    None,
    object(),
    *TEXTS,
    *NUMBERS,
    *PARTITIONS,
    HERE,
    *([one] for one in (None, [], {}, 7, *TEXTS, *PARTITIONS)),
    *({one: 0} for one in (None, 7, *TEXTS, *PARTITIONS)),
    *({"t": one} for one in (None, {}, [None], {NO_UTF_8: "1"}, {"a": NO_UTF_8}, *TEXTS)),
    *({HERE: one} for one in (None, [], [NO_UTF_8], [-1], [2**40], *TEXTS, *NUMBERS)),
    *({"t": [one]} for one in PARTITIONS),
    [],
    {},
    set(),
)

PATIENCE_MS = 30
"""For calls that get no answer, as those about a partition that is not there."""

RIGHT: dict[str, object] = {
    "topic": "t",
    "topics": ["t"],
    "group_id": "g",
    "groups": ["g"],
    "partition": HERE,
    "partitions": [HERE],
    "offsets": {HERE: 0},
    "offset": 0,
    "value": b"v",
    "values": [b"v"],
    "timeout": PATIENCE_MS / 1000,
}

LATER = {"enforce_rebalance", "subscribe"}
"""Methods whose work begins in the next poll."""

LASTING = {"close", "batches"}
"""Methods that end the client, or do nothing before their result is used."""


def calls(client: Client) -> Iterator[tuple[str, str, list[object], dict[str, object]]]:
    """Yield a method's name, the parameter that is wrong, and what the method is called with."""
    for name in sorted(set(dir(type(client))) - LASTING):
        method = getattr(client, name)
        if name.startswith("_") or not callable(method):
            continue
        parameters = list(inspect.signature(method).parameters.values())
        for wrong in parameters:
            if wrong.kind is wrong.VAR_KEYWORD:
                continue
            for value in WRONG:
                if wrong.name == "timeout" and value in (2**31, 2**70, 0.5):
                    continue  # it is right, and would be waited for
                yield name, wrong.name, *_arguments(parameters, wrong, value)


def _arguments(
    parameters: list[inspect.Parameter], wrong: inspect.Parameter, value: object
) -> tuple[list[object], dict[str, object]]:
    positional: list[object] = []
    named: dict[str, object] = {}
    for one in parameters:
        if one is wrong:
            given = value
        elif one.name in RIGHT:
            given = RIGHT[one.name]
        elif one.default is one.empty and one.kind in (
            one.POSITIONAL_ONLY,
            one.POSITIONAL_OR_KEYWORD,
        ):
            given = ["t"]
        else:
            continue
        if one.kind is one.KEYWORD_ONLY or (one.default is not one.empty and named):
            named[one.name] = given
        else:
            positional.append(given)
    return positional, named


def outcome(client: Client, name: str, positional: list[object], named: dict[str, object]) -> None:
    """Call a method; raise only what no user's mistake may raise."""
    try:
        result = getattr(client, name)(*positional, **named)
        if isinstance(client, Producer) and hasattr(result, "result"):
            result.result(1.0)
        if isinstance(client, Consumer) and name in LATER:
            client.poll(PATIENCE_MS / 1000)
    except InternalError:
        raise
    except (KafkaError, TypeError, ValueError):
        return
    errors = getattr(result, "errors", {})
    for error in errors.values() if isinstance(errors, dict) else ():
        assert not isinstance(error, InternalError)


def admin_on(kafka: EmbeddedKafka) -> Admin:
    return Admin(bootstrap_servers=kafka.bootstrap, default_api_timeout_ms=PATIENCE_MS)


def member_on(kafka: EmbeddedKafka) -> Consumer[Any, Any]:
    consumer = Consumer(
        bootstrap_servers=kafka.bootstrap, group_id="g", default_api_timeout_ms=PATIENCE_MS
    )
    consumer.subscribe(["t"])
    eventually(lambda: consumer.poll(0.1) is not None and consumer.assignment())
    return consumer


def reader_on(kafka: EmbeddedKafka) -> Consumer[Any, Any]:
    consumer = Consumer(bootstrap_servers=kafka.bootstrap, default_api_timeout_ms=PATIENCE_MS)
    consumer.assign([HERE])
    return consumer


def producer_on(kafka: EmbeddedKafka) -> Producer:
    return Producer(bootstrap_servers=kafka.bootstrap, max_block_ms=PATIENCE_MS, linger_ms=0)


def transactional_on(kafka: EmbeddedKafka) -> Producer:
    return Producer(
        bootstrap_servers=kafka.bootstrap,
        transactional_id="id",
        max_block_ms=PATIENCE_MS,
        linger_ms=0,
    )


@pytest.mark.repeats("no compiled code takes an argument unchecked")
@pytest.mark.parametrize("make", [admin_on, member_on, reader_on, producer_on, transactional_on])
def test_no_argument_ends_a_client(make: Make) -> None:
    """Regression: a name that is no UTF-8 ended a consumer, and a producer."""
    with EmbeddedKafka() as kafka, ExitStack() as ends:
        kafka.create_topic("t", partitions=2)
        client = ends.enter_context(make(kafka))
        count = 0
        for name, parameter, positional, named in calls(client):
            try:
                outcome(client, name, positional, named)
            except BaseException as error:
                error.args = (f"{name}, {parameter}: {positional} {named}: {error!r}",)
                raise
            count += 1
        assert count > 200
        assert client.metrics()["client_id"] == client.client_id
