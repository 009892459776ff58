"""format("kafka_fast") beside Spark's own connector, on real Kafka: batches and streams.

    python bench/spark/spark_connector.py [--records 3000000] [--rounds 3] [--seconds 120] [--json]

Spark runs as local[2] with the connector's jars; a record is an 8-byte key and a 100-byte value, in
16 partitions; both sides have their own defaults. After a warm-up the formats take turns within
every round, and the table has the medians. CPU is that of the JVM and of all processes below it;
the broker has its own, and shares the cores.

read, 7 columns      a batch, all columns, to Spark's noop sink
read, 2 columns      the same with key and value: ours by `schema`, the connector's by `select`
write                rows that the JVM makes, into a new topic
read, select, write  one query from topic to topic
one record           a micro-batch of one record, to noop: its triggerExecution, the median of many
stream               50,000 records a second for some time, default trigger, from topic to topic; a
                     record's latency is from `send` to its append to the second topic's log, whose
                     timestamps are the broker's. Records of the first fifth do not count.

`--json` prints one line for each run, as compare.py reads them.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.spark.spark_local import PARTITIONS, VALUE_SIZE, made_in_jvm, measured, session, show  # isort: skip
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.measure import percentile
from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.support.jars import spark_connector

# A benchmark's broker lives for minutes: the optimizing compiler, room, and no full disk.
JVM = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")
OVERRIDES = {"log.segment.delete.delay.ms": 100, "log.retention.check.interval.ms": 5_000}
SHORT = {"retention.bytes": "67108864", "segment.bytes": "33554432"}
"""Of a topic that is written again and again: nobody reads it."""
FORMATS = {"kafka_fast": "kafka_fast", "Spark's connector": "kafka"}
SOURCE = "source"
RATE = 50_000
SLICE = 0.01
"""Seconds between two bursts of records that are offered."""
MICRO_BATCHES = 30
Run = Callable[[str], object]


def main() -> int:
    """Measure everything and print it; or, as `--offer`, be the process that offers records."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=120.0, help="of the stream; 0: none")
    parser.add_argument("--only", action="append", help="a row of the table")
    parser.add_argument("--json", action="store_true", help="one line for each run")
    parser.add_argument("--offer", nargs=2, metavar=("ADDRESS", "TOPIC"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.offer:
        address, topic = options.offer
        offer(address, topic, options.seconds)
        return 0
    with (
        RealKafka(jvm_options=JVM, overrides=OVERRIDES) as kafka,
        session(spark_jars=spark_connector(), spark_driver_memory="2g") as spark,
        tempfile.TemporaryDirectory() as folder,
    ):
        show(Bench(spark, kafka, Path(folder), options).rows(), as_json=options.json)
    return 0


class Bench:
    """The rows of the table, against one broker and in one session."""

    def __init__(
        self, spark: SparkSession, kafka: RealKafka, folder: Path, wanted: argparse.Namespace
    ) -> None:
        self.spark = spark
        self.kafka = kafka
        self.folder = folder
        self.wanted = wanted
        self.base = {"kafka.bootstrap.servers": kafka.bootstrap}
        self.numbers = itertools.count()
        self.targets: dict[str, str] = {}
        """The topic that each format writes."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield what each run brought."""
        batches: dict[str, Run] = {
            "read, 7 columns": lambda name: noop(self.read(name)),
            "read, 2 columns": lambda name: noop(self.read(name, "key", "value")),
            "write": lambda name: self.write(name, made_in_jvm(self.spark, self.wanted.records)),
            "read, select, write": lambda name: self.write(
                name,
                self.read(name, "key", "value").selectExpr("key", "substring(value, 2) value"),
            ),
        }
        if self.wanted.only:
            batches = {name: run for name, run in batches.items() if name in self.wanted.only}
        if batches:
            self.fill()
        for run, name in itertools.product(batches.values(), FORMATS.values()):
            run(name)
        for _ in range(self.wanted.rounds):
            for (scenario, run), (who, name) in itertools.product(batches.items(), FORMATS.items()):
                results = measured(self.spark, partial(run, name), self.wanted.records)
                yield {"scenario": scenario, "contender": who, **results}
            yield from self.each("one record", self.one_record)
        if self.wanted.seconds:
            yield from self.each("stream", self.stream)

    def each(
        self, scenario: str, run: Callable[[str], dict[str, float]]
    ) -> Iterator[dict[str, Any]]:
        """Yield what a row that is no batch brings, for both formats."""
        if not self.wanted.only or scenario in self.wanted.only:
            for who, name in FORMATS.items():
                yield {"scenario": scenario, "contender": who, **run(name)}

    def topic(self, partitions: int = PARTITIONS, configs: dict[str, str] | None = None) -> str:
        """Make a topic.

        None is deleted: the connector keeps its producer for ten minutes, and one that had known
        a deleted topic was seen to deliver some records of another one never.
        """
        name = f"topic-{next(self.numbers)}"
        self.kafka.create_topic(name, partitions, configs=configs)
        return name

    def fill(self) -> None:
        """Write what is read."""
        self.kafka.create_topic(SOURCE, PARTITIONS)
        step = 500_000
        values = [b"v" * VALUE_SIZE] * step
        with Producer(bootstrap_servers=self.kafka.bootstrap) as producer:
            for start in range(0, self.wanted.records, step):
                count = min(step, self.wanted.records - start)
                keys = [b"%08d" % number for number in range(start, start + count)]
                producer.send_many(SOURCE, values[:count], keys=keys).result(120)

    def read(self, name: str, *columns: str) -> DataFrame:
        """Return the source as a DataFrame."""
        reader = self.spark.read.format(name).options(**self.base, subscribe=SOURCE)
        if not columns:
            return reader.load()
        if name == "kafka":
            return reader.load().select(*columns)
        return reader.schema(", ".join(f"{column} binary" for column in columns)).load()

    def write(self, name: str, rows: DataFrame) -> None:
        """Write rows into a topic."""
        if name not in self.targets:
            self.targets[name] = self.topic(configs=SHORT)
        options = {**self.base, "topic": self.targets[name]}
        rows.write.format(name).options(**options).mode("append").save()

    def query(self, name: str, topic: str, sink: str, options: dict[str, str]) -> StreamingQuery:
        """Start a stream that reads a topic from its beginning, into such a sink."""
        reader = self.spark.readStream.format(name).options(**self.base, subscribe=topic)
        rows = reader.option("startingOffsets", "earliest").load().select("value")
        checkpoint = str(self.folder / f"checkpoint-{next(self.numbers)}")
        writer = rows.writeStream.format(sink).options(**options, checkpointLocation=checkpoint)
        return writer.start()

    def one_record(self, name: str) -> dict[str, float]:
        """Return how long a micro-batch of one record takes."""
        topic = self.topic(1)
        with Producer(bootstrap_servers=self.kafka.bootstrap, linger_ms=0) as producer:
            query = self.query(name, topic, "noop", {})
            for _ in range(MICRO_BATCHES):
                producer.send(topic, b"v").result(30)
                query.processAllAvailable()
            progress = [update for update in query.recentProgress if update.numInputRows]
            query.stop()
        taken = [update.durationMs["triggerExecution"] for update in progress]
        return {"trigger_ms": statistics.median(taken[5:])}

    def stream(self, name: str) -> dict[str, float]:
        """Return the latency of records that pass a stream at RATE."""
        topic = self.topic()
        target = self.topic(configs={"message.timestamp.type": "LogAppendTime"})
        query = self.query(name, topic, name, {**self.base, "topic": target})
        seconds = self.wanted.seconds
        command = [sys.executable, __file__, f"--seconds={seconds}", "--offer"]
        subprocess.run([*command, self.kafka.bootstrap, topic], check=True)
        query.processAllAvailable()
        query.stop()
        return latencies(self.kafka.bootstrap, target, seconds)


def noop(rows: DataFrame) -> None:
    """Read rows, and do nothing with them."""
    rows.write.format("noop").mode("overwrite").save()


def offer(bootstrap: str, topic: str, seconds: float) -> None:
    """Send RATE records a second; each begins with the Unix time in ms at which it was sent."""
    rest = b"v" * (VALUE_SIZE - 13)
    started = time.monotonic()
    sent, total = 0, int(RATE * seconds)
    with Producer(bootstrap_servers=bootstrap) as producer:
        while sent < total:
            due = min(total, int((time.monotonic() - started) * RATE))
            if due > sent:
                value = b"%013d" % (time.time() * 1000) + rest
                producer.send_many(topic, [value] * (due - sent))
                sent = due
            time.sleep(SLICE)


def latencies(bootstrap: str, topic: str, seconds: float) -> dict[str, float]:
    """Return the latencies of the records in a topic, and whether they kept up.

    Raises:
        RuntimeError: Records are missing, or more than were sent.
    """
    pairs: list[tuple[int, int]] = []
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        count = sum(consumer.end_offsets(consumer.assignment()).values())
        while len(pairs) < count:
            table = consumer.poll(5.0, 100_000).to_arrow()
            values, times = table.column("value"), table.column("timestamp").cast("int64")
            pairs += zip(
                (int(value[:13]) for value in values.to_pylist()), times.to_pylist(), strict=True
            )
    if len(pairs) != int(RATE * seconds):
        raise RuntimeError(f"{len(pairs)} records instead of {int(RATE * seconds)}")
    first, last = min(pairs)[0], max(pairs)[0]
    counted = [float(end - sent) for sent, end in pairs if sent >= first + (last - first) / 5]
    tail = [float(end - sent) for sent, end in pairs if sent > last - 1000]
    return {
        "stream_p50_ms": percentile(counted, 0.5),
        "stream_p99_ms": percentile(counted, 0.99),
        "last_second_ms": percentile(tail, 0.5),
    }


if __name__ == "__main__":
    sys.exit(main())
