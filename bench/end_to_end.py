"""One contender, one scenario, one process: prints one JSON line.

    python bench/end_to_end.py kafka_fast send --records 3000000
    python bench/end_to_end.py confluent lz4 --records 500000 --bootstrap h:p --broker-pid N

Without `--bootstrap` it starts a null broker of its own. A warm-up (a twentieth of the records,
with connections, metadata and producer id) precedes; the flush lies inside the measured span. The
records are made before. CPU is user and system time of this whole process (getrusage).

    --experiment throughput     the default
    --experiment latency        linger 0, one record in flight: send until acknowledged
    --experiment hog            send until bytes at the null broker, while a thread spins
    --experiment memory         kafka_fast at a stopped broker, max.block.ms=1
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.contenders import CONTENDERS, UnsupportedError, contender_class
from bench.experiments import hog, latency, memory
from bench.measure import instant
from bench.workload import NO_SECURITY, SCENARIOS, Scenario, Security
from tests.support.null_broker import NullBroker

ROOT = Path(__file__).resolve().parents[1]
WARM_UP_SHARE = 20


def throughput(
    name: str,
    scenario: Scenario,
    records: int,
    bootstrap: str,
    topic: str,
    broker_pid: int,
    security: Security,
) -> dict[str, Any]:
    """Return what sending so many records cost."""
    contender = contender_class(name)(bootstrap, topic, scenario, linger_0=False, security=security)
    contender.produce(contender.prepare(max(1, records // WARM_UP_SHARE)))
    contender.flush()
    prepared = contender.prepare(records)
    count = contender.count(prepared)
    start = instant(broker_pid)
    contender.produce(prepared)
    handed_over = instant(broker_pid)
    contender.flush()
    end = instant(broker_pid)
    contender.verify()
    if contender.acknowledged not in (None, count):
        raise RuntimeError(f"{contender.acknowledged} callbacks for {count} records")
    contender.close()
    span = end.since(start)
    return {
        "records": count,
        "seconds": span.wall,
        "records_per_s": count / span.wall,
        "cpu_per_million": span.process_cpu * 1e6 / count,
        "caller_ns": handed_over.since(start).thread_cpu * 1e9 / count,
        "caller_wall_ns": handed_over.since(start).wall * 1e9 / count,
        "broker_cpu_per_million": span.broker_cpu * 1e6 / count,
    }


def put_behind_proxy(stack: ExitStack, broker: NullBroker, delay: float) -> str:
    """Return the address of a slow proxy, in a process of its own, that the broker goes by now."""
    command = [sys.executable, "-m", "tests.support.proxy", broker.bootstrap]
    proxy = stack.enter_context(
        subprocess.Popen(
            [*command, f"--delay={delay}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
    )
    assert proxy.stdin is not None
    assert proxy.stdout is not None
    stack.callback(proxy.stdin.close)
    address = proxy.stdout.readline().strip()
    host, _, port = address.partition(":")
    broker.advertise(1, host, int(port))
    return address


def put_behind(stack: ExitStack, broker: NullBroker, protocol: str) -> tuple[str, Security]:
    """Return the address of a front that the broker goes by now, and how clients connect to it."""
    from bench.tls.front import make_papers, put_behind_front

    if protocol == "PLAINTEXT":
        return put_behind_front(stack, broker, [1], None), NO_SECURITY
    papers = make_papers(Path(stack.enter_context(tempfile.TemporaryDirectory())))
    return put_behind_front(stack, broker, [1], papers), papers.client_properties()


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run the experiment against the broker of the options, or a null broker."""
    scenario = SCENARIOS[options.scenario]
    if options.experiment == "memory":
        return memory(options.seconds)
    with ExitStack() as stack:
        bootstrap, pid, broker = options.bootstrap, options.broker_pid, None
        security = options.security
        if bootstrap is None:
            broker = stack.enter_context(NullBroker(partitions=scenario.partitions))
            bootstrap, pid = broker.bootstrap, broker.pid
            if options.proxy_delay:
                bootstrap = put_behind_proxy(stack, broker, options.proxy_delay)
            if options.front:
                bootstrap, security = put_behind(stack, broker, options.front)
        if options.experiment == "latency":
            return latency(options.contender, options.records, bootstrap, options.topic, security)
        if options.experiment == "hog":
            assert broker is not None, "only the null broker tells when bytes arrived"
            return hog(
                options.contender, options.records, broker, bootstrap, options.topic, security
            )
        result = throughput(
            options.contender, scenario, options.records, bootstrap, options.topic, pid, security
        )
        if broker is not None:
            stats = broker.stats()
            result["bytes_per_record"] = stats.bytes / stats.records
            result["records_per_batch"] = stats.records / stats.batches
            result["requests_per_million"] = stats.requests * 1e6 / stats.records
        return result


def main() -> int:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description="Measure one contender in one scenario.")
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--bootstrap", help="a broker's address; default: a null broker")
    parser.add_argument("--broker-pid", type=int, default=0)
    parser.add_argument("--topic", default="bench")
    parser.add_argument(
        "--security", type=json.loads, default=NO_SECURITY, help="properties, as a JSON object"
    )
    parser.add_argument("--proxy-delay", type=float, default=0.0, help="seconds, each way")
    parser.add_argument(
        "--front", choices=("PLAINTEXT", "SSL"), help="put front.py before the null broker"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="of the memory experiment")
    parser.add_argument(
        "--experiment", choices=("throughput", "latency", "hog", "memory"), default="throughput"
    )
    options = parser.parse_args()
    try:
        result = run(options)
    except UnsupportedError as missing:
        result = {"unsupported": str(missing)}
    print(json.dumps({"contender": options.contender, "scenario": options.scenario, **result}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
