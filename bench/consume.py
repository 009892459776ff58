"""One contender, one way of reading, one process: prints one JSON line.

    python bench/consume.py kafka_fast "poll(500)" --records 3000000
    python bench/consume.py --fill "poll(500)" --records 3000000 --bootstrap h:p
    python bench/consume.py confluent "poll(500)" --records 3000000 --bootstrap h:p --broker-pid N

Without `--bootstrap` it starts a null broker of its own, whose partitions hold copies of one batch.
A warm-up reads a twentieth of the records, with everything that comes first: connections, metadata,
code. Then the consumer goes back to the beginning, and reads the whole topic: what it fetches ahead
is inside the measured span. CPU is user and system time of this whole process (getrusage).

    --experiment throughput     the default
    --experiment prefetch       kafka_fast fills its fetch buffer beside a spinning thread
    --experiment memory         kafka_fast with ten million records waiting
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from bench.contenders import CONTENDERS, UnsupportedError
from bench.experiments import prefetch, waiting_memory
from bench.measure import instant
from bench.readers import reader_class
from bench.workload import (
    NO_SECURITY,
    READ_PARTITIONS,
    READINGS,
    Reading,
    Security,
    cycled,
    read_topic,
    values_of,
)
from kafka_fast import Producer
from kafka_fast.record._writer import RecordBatchBuilder
from kafka_fast.record.types import Codec
from tests.support.null_broker import NullBroker

WARM_UP_SHARE = 20
BATCH_BYTES = 50_000
FLUSH_SECONDS = 300


def canned_broker(reading: Reading, records: int) -> tuple[NullBroker, int]:
    """Return a null broker that serves about so many records, and how many they are."""
    count = BATCH_BYTES // reading.value_size
    builder = RecordBatchBuilder(codec=Codec[reading.codec.upper()])
    for value in cycled(values_of(reading), count):
        builder.append(None, value, 1_700_000_000_000)
    copies = max(1, records // (count * READ_PARTITIONS))
    broker = NullBroker(partitions=READ_PARTITIONS, batch=builder.build(), copies=copies)
    return broker, copies * count * READ_PARTITIONS


def fill(bootstrap: str, reading: Reading, records: int, topic: str) -> int:
    """Write the records of a topic to a broker; return how many they are."""
    per_partition = records // READ_PARTITIONS
    values = cycled(values_of(reading), per_partition)
    config = {"bootstrap.servers": bootstrap, "compression.type": reading.codec}
    with Producer(config) as producer:
        for number in range(READ_PARTITIONS):
            numbers = [number] * per_partition
            producer.send_many(topic, values, partitions=numbers).result(FLUSH_SECONDS)
    return per_partition * READ_PARTITIONS


def throughput(
    name: str,
    reading: Reading,
    records: int,
    bootstrap: str,
    topic: str,
    broker_pid: int,
    security: Security,
) -> dict[str, Any]:
    """Return what reading all of so many records cost."""
    reader = reader_class(name)(bootstrap, topic, reading, security)
    reader.begin()
    reader.read(max(1, records // WARM_UP_SHARE))
    start = instant(broker_pid)
    reader.begin()
    count = reader.read(records)
    span = instant(broker_pid).since(start)
    reader.close()
    return {
        "records": count,
        "seconds": span.wall,
        "records_per_s": count / span.wall,
        "gb_per_s": count * reading.value_size / span.wall / 1e9,
        "cpu_per_million": span.process_cpu * 1e6 / count,
        "broker_cpu_per_million": span.broker_cpu * 1e6 / count,
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run the experiment against the broker of the options, or a null broker."""
    reading, name = READINGS[options.reading], options.contender
    topic = read_topic(reading, options.records)
    if options.fill:
        return {"records": fill(options.bootstrap, reading, options.records, topic)}
    if options.bootstrap is not None:
        records = options.records // READ_PARTITIONS * READ_PARTITIONS
        pid, security = options.broker_pid, options.security
        return throughput(name, reading, records, options.bootstrap, topic, pid, security)
    null_broker, records = canned_broker(reading, options.records)
    with null_broker as broker:
        if options.experiment == "prefetch":
            return prefetch(broker.bootstrap, topic)
        if options.experiment == "memory":
            return waiting_memory(broker.bootstrap, topic)
        pid = broker.pid
        return throughput(name, reading, records, broker.bootstrap, topic, pid, NO_SECURITY)


def main() -> int:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description="Measure one consumer in one scenario.")
    parser.add_argument("contender", choices=CONTENDERS, nargs="?", default="kafka_fast")
    parser.add_argument("reading", choices=READINGS)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--bootstrap", help="a broker's address; default: a null broker")
    parser.add_argument("--broker-pid", type=int, default=0)
    parser.add_argument(
        "--security", type=json.loads, default=NO_SECURITY, help="properties, as a JSON object"
    )
    parser.add_argument("--fill", action="store_true", help="write the topic, read nothing")
    parser.add_argument(
        "--experiment", choices=("throughput", "prefetch", "memory"), default="throughput"
    )
    options = parser.parse_args()
    try:
        result = run(options)
    except UnsupportedError as missing:
        result = {"unsupported": str(missing)}
    print(json.dumps({"contender": options.contender, "scenario": options.reading, **result}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
