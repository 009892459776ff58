"""Every example of the README and of the pages runs, against an embedded broker or in Spark.

docs/protocol.md and docs/testing.md have tests of their own, in tests/unit; docs/spark.md has
test_spark_page.py and test_spark_shipping.py.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_fast import Producer
from kafka_fast.config import consumer_settings, producer_settings
from kafka_fast.errors import ConfigError
from kafka_fast.testing import EmbeddedKafka
from tests.conftest import without_codec_warnings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(r"(localhost|broker1):9092(,broker2:9092)?")
ELSEWHERE = {"docs/protocol.md", "docs/spark.md", "docs/testing.md"}


def blocks(page: str, language: str = "python") -> list[str]:
    """Return the examples of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def is_spark(example: str) -> bool:
    return "spark" in example


CONSUMERS = [
    example for example in blocks("docs/migration.md") if re.search(r"\bConsumer\(", example)
]

PAGES = sorted(
    str(path.relative_to(ROOT)) for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
)
EXAMPLES = [
    pytest.param(page, example, id=f"{page}-{number}")
    for page in PAGES
    if page not in ELSEWHERE
    for number, example in enumerate(blocks(page))
    if not is_spark(example) and not (page == "docs/migration.md" and example in CONSUMERS)
]


# What an example leaves behind.
SENT = {
    "README.md-0": ("events", 1_000_001),
    "docs/migration.md-0": ("orders", 1),
    "docs/migration.md-1": ("orders", 1),
    "docs/migration.md-3": ("orders", 1),
    "docs/migration.md-5": ("orders", 101_001),
    "docs/producer.md-0": ("orders", 1),
    "docs/producer.md-1": ("orders", 6),
    "docs/producer.md-2": ("purchases", 1),
    "docs/producer.md-3": ("orders", 1_000),
}


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=2, partitions=6) as broker:
        yield broker


def run(page: str, example: str, kafka: EmbeddedKafka, **names: Any) -> dict[str, Any]:
    """Run an example with our broker in place of the reader's; return its names."""
    names["__name__"] = "example"
    exec(compile(ADDRESS.sub(kafka.bootstrap, example), str(ROOT / page), "exec"), names)
    return names


@pytest.mark.parametrize(("page", "example"), EXAMPLES)
def test_the_examples_run(
    page: str, example: str, kafka: EmbeddedKafka, request: pytest.FixtureRequest
) -> None:
    for topic in ("events", "orders"):  # to read from a topic makes none
        kafka.create_topic(topic)
    names = run(page, example, kafka)
    if "producer" in names:
        names["producer"].close()
    topic, count = SENT.get(request.node.callspec.id, ("", 0))
    assert sum(len(kafka.records(topic, number)) for number in range(6) if topic) == count


# ---- what docs/migration.md says of the other clients ----


@pytest.mark.parametrize("example", CONSUMERS, ids=["confluent-kafka", "kafka-python", "aiokafka"])
def test_the_consumers_read_and_commit(
    example: str, kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        for number in range(10):
            producer.send("orders", f'{{"id": {number}}}', key=b"%d" % number, partition=number % 2)
    run("docs/migration.md", example, kafka)
    shown = capsys.readouterr().out
    numbers = re.findall(r'"id": (\d)', shown) or re.findall(r" (\d)\n", shown)
    assert sorted(map(int, numbers)) == list(range(10))
    committed = kafka.on_cluster(lambda cluster: cluster.committed("billing"))
    places = [("orders", number) for number in range(2)]
    assert 5 in [committed.get(place) for place in places]
    if "consumer.commit(record)" not in example:
        assert [committed.get(place) for place in places] == [5, 5]


def partitions_of_keys(kafka: EmbeddedKafka, topic: str) -> dict[bytes | None, int]:
    return {it.key: number for number in range(6) for it in kafka.records(topic, number)}


@pytest.mark.filterwarnings("ignore")  # the peers' own
@pytest.mark.parametrize("peer", ["confluent-kafka", "kafka-python", "aiokafka"])
def test_keys_go_where_the_page_says(kafka: EmbeddedKafka, peer: str) -> None:
    keys = [b"key-%d" % number for number in range(200)]
    config: dict[str, object] = {"bootstrap.servers": kafka.bootstrap}
    if peer == "confluent-kafka":
        import confluent_kafka

        (example,) = [it for it in blocks("docs/migration.md") if "consistent_random" in it]
        config["partitioner"] = run("docs/migration.md", example, kafka)["consistent_random"]
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
    found = partitions_of_keys(kafka, f"theirs-{peer}")
    assert len(found) == len(keys)
    assert partitions_of_keys(kafka, f"ours-{peer}") == found


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
    page = (ROOT / "docs/migration.md").read_text(encoding="utf-8")
    assert meaningless - {"partitioner"} == set(re.findall(r"`([a-z0-9_]+)`", must_go(page)))


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
    page = (ROOT / "docs/migration.md").read_text(encoding="utf-8")
    stay_behind = re.findall(r"keywords that stay behind:.*?(?:\n\n|\. )", page, re.DOTALL)[number]
    told = set(re.findall(r"`([a-z0-9_]+)`", stay_behind))
    assert refused == told - {"max_poll_interval_ms"}


def refusal_of(
    name: str, value: object, *, make_settings: Callable[..., object] = producer_settings
) -> str:
    group = {"group_id": "g"} if make_settings is consumer_settings and name != "group_id" else {}
    try:
        make_settings({"bootstrap.servers": "localhost", **group}, {name: value})
    except ConfigError as error:
        return str(error)
    return ""


def must_go(page: str) -> str:
    """Return the parts of the page that list the keywords."""
    return "".join(
        re.findall(r"keywords that must go,.*?\n\n|, without `[^\n]*loop`", page, re.DOTALL)
    )


# ---- the command line ----


def test_the_shell_examples_run(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    (example,) = blocks("docs/command-line.md", "")[:1] or [""]
    assert example.count("kafka-fast produce") == 2
    script = f"""
set -euo pipefail
kafka-fast() {{ {shlex.quote(sys.executable)} -m kafka_fast "$@" --bootstrap {kafka.bootstrap}; }}
printf 'one\\ntwo' | gzip > events.json.gz
printf '7\\tseven\\n' > users.tsv
{example.replace("broker1:9092,broker2:9092", kafka.bootstrap).replace("events -b", "lines -b")}
"""
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, without_codec_warnings(done.stderr)) == (0, "")
    lines = [it for number in range(6) for it in kafka.records("lines", number)]
    users = [it for number in range(6) for it in kafka.records("users", number)]
    assert sorted(it.value or b"" for it in lines) == [b"one", b"two"]
    assert [(it.key, it.value, it.headers) for it in users] == [
        (b"7", b"seven", (("source", b"import"),))
    ]


# ---- pytest ----


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    examples = [it for it in blocks("docs/testing.md") if "def test_" in it]
    for number, example in enumerate(examples):
        (tmp_path / f"test_{number}.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "kafka_fast.testing.plugin", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    count = sum(example.count("def test_") for example in examples)
    assert f"{count} passed" in done.stdout


# ---- Spark ----


@pytest.fixture
def rows(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Ten rows, in a Parquet file named events as well."""
    made = spark.sql("select cast(id as string) key, id from range(10)")
    made.write.parquet(str(tmp_path / "events"))
    return made


@pytest.mark.spark
@pytest.mark.timeout(450)
@pytest.mark.filterwarnings("ignore")  # PySpark's own
def test_the_spark_example_runs(rows: DataFrame, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    (readme,) = filter(is_spark, blocks("README.md"))
    readme = readme.replace('parquet("events")', f'parquet("{tmp_path}/events")')
    assert run("README.md", readme, kafka)["summary"].records == 10
    assert sum(len(kafka.records("events", number)) for number in range(6)) == 10
