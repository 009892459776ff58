"""What docs/migration.md claims of the other clients, held against those clients."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_fast import ConsumerRecord, Producer
from kafka_fast.config import consumer_settings, own_key, producer_settings
from kafka_fast.errors import ConfigError
from kafka_fast.testing import EmbeddedKafka
from tests.documentation.pages import ROOT, blocks

PAGE = "docs/migration.md"
EXAMPLES = [block.text for block in blocks(PAGE) if block.language == "python"]


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=2, partitions=6) as broker:
        yield broker


def run(example: str, kafka: EmbeddedKafka) -> dict[str, Any]:
    """Run an example with our broker in place of the reader's; return its names."""
    names: dict[str, Any] = {"__name__": "example"}
    code = example.replace("localhost:9092", kafka.bootstrap)
    exec(compile(code, str(ROOT / PAGE), "exec"), names)
    return names


def test_the_first_lines_say_that_a_value_is_an_attribute() -> None:
    with pytest.raises(TypeError) as caught:
        ConsumerRecord("t", 0, 5, b"k", b"v").value()  # type: ignore[operator]
    first_lines, _, _ = (ROOT / PAGE).read_text(encoding="utf-8").partition("\n## ")
    assert f"`record.value()` is a `TypeError`, `{caught.value}`" in first_lines


@pytest.mark.parametrize(
    ("topic", "group", "count"),
    [("invoices", "invoicing", 2), ("parcels", "parcels", 1), ("clicks", "clicks", 101_001)],
)
def test_the_consumers_commit_what_they_have_read(
    kafka: EmbeddedKafka, topic: str, group: str, count: int
) -> None:
    kafka.create_topic(topic, partitions=1)
    for example in EXAMPLES:
        if f'"{topic}"' in example:
            run(example, kafka)
    assert kafka.committed(group) == {(topic, 0): count}


def partitions_of_keys(kafka: EmbeddedKafka, topic: str) -> dict[bytes | None, int]:
    return {record.key: number for number in range(6) for record in kafka.records(topic, number)}


@pytest.mark.filterwarnings("ignore")  # the peers' own
@pytest.mark.parametrize("peer", ["confluent-kafka", "kafka-python", "aiokafka"])
def test_keys_go_where_the_page_says(kafka: EmbeddedKafka, peer: str) -> None:
    keys = [b"key-%d" % number for number in range(200)]
    config: dict[str, object] = {"bootstrap.servers": kafka.bootstrap}
    if peer == "confluent-kafka":
        import confluent_kafka

        (example,) = [text for text in EXAMPLES if "consistent_random" in text]
        config["partitioner"] = run(example, kafka)["consistent_random"]
        theirs = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap})
        for key in keys:
            theirs.produce(f"theirs-{peer}", b"v", key)
        assert theirs.flush(30) == 0
    elif peer == "kafka-python":
        from kafka import KafkaProducer

        their_client = KafkaProducer(bootstrap_servers=kafka.bootstrap)
        for key in keys:
            their_client.send(f"theirs-{peer}", b"v", key)
        their_client.close()
    else:
        send_with_aiokafka(kafka.bootstrap, f"theirs-{peer}", keys)
    with Producer(config) as producer:
        for key in keys:
            producer.send_nowait(f"ours-{peer}", b"v", key)
    their_partitions = partitions_of_keys(kafka, f"theirs-{peer}")
    assert len(their_partitions) == len(keys)
    assert partitions_of_keys(kafka, f"ours-{peer}") == their_partitions


def send_with_aiokafka(bootstrap: str, topic: str, keys: list[bytes]) -> None:
    from aiokafka import AIOKafkaProducer

    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        try:
            for key in keys:
                await producer.send_and_wait(topic, b"v", key)
        finally:
            await producer.stop()

    asyncio.run(send())


def defaults_of_their_keywords() -> dict[str, object]:
    from aiokafka import AIOKafkaProducer
    from kafka import KafkaProducer

    signature = inspect.signature(AIOKafkaProducer)
    theirs = {name: parameter.default for name, parameter in signature.parameters.items()}
    return {**theirs, **KafkaProducer.DEFAULT_CONFIG}


@pytest.mark.filterwarnings("ignore")
def test_which_keywords_of_the_peers_must_go() -> None:
    refused = {
        name: refusal
        for name, default in defaults_of_their_keywords().items()
        if (refusal := refusal_of(name, default))
    }
    assert all(name in refusal.replace(".", "_") for name, refusal in refused.items())
    meaningless = {name for name in refused if not name.startswith(("sasl_", "ssl_"))}
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    told = set(re.findall(r"`([a-z0-9_]+)`", must_go(page)))
    newer = "metrics_collector"  # of aiokafka 0.15, which this Python may not have
    assert meaningless - {"partitioner", newer} == told
    assert f"`Producer(...)`, same keywords, without `{newer}`" in page


def defaults_of_their_consumers() -> list[dict[str, object]]:
    """What the constructors of kafka-python and aiokafka take, in the order of the page."""
    from aiokafka import AIOKafkaConsumer
    from kafka import KafkaConsumer

    signature = inspect.signature(AIOKafkaConsumer)
    theirs = {name: parameter.default for name, parameter in signature.parameters.items()}
    return [dict(KafkaConsumer.DEFAULT_CONFIG), theirs]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", [0, 1], ids=["kafka-python", "aiokafka"])
def test_which_keywords_of_the_peers_consumers_stay_behind(number: int) -> None:
    defaults = defaults_of_their_consumers()[number]
    defaults["group_id"] = "g"
    defaults["partition_assignment_strategy"] = ["range"]
    if defaults["max_poll_records"] is None:
        del defaults["max_poll_records"]
    refused = {
        name
        for name, default in defaults.items()
        if not name.startswith(("sasl_", "ssl_"))
        and refusal_of(name, default, make_settings=consumer_settings)
    }
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    stay_behind = re.findall(r"keywords that stay behind:.*?(?:\n\n|\. )", page, re.DOTALL)[number]
    told = set(re.findall(r"`([a-z0-9_]+)`", stay_behind))
    assert refused == told - {"max_poll_interval_ms"}


def refusal_of(
    name: str, value: object, *, make_settings: Callable[..., object] = producer_settings
) -> str:
    group = {"group_id": "g"} if make_settings is consumer_settings and name != "group_id" else {}
    if value is None and own_key(name) is None:
        value = "given"  # None says that it is not given, which is harmless always
    try:
        make_settings({"bootstrap.servers": "localhost", **group}, {name: value})
    except ConfigError as error:
        return str(error)
    return ""


def must_go(page: str) -> str:
    """Return the parts of the page that list the keywords."""
    return "".join(re.findall(r"keywords that must go:.*?\. ", page, re.DOTALL))
