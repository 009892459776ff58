"""Real Apache Kafka, started by hand: one node or three, with or without TLS, SASL and ACLs.

    python -m kafka_fast.testing.real_kafka start --nodes 3      # until Ctrl-C
    python -m kafka_fast.testing.real_kafka start --secure       # with TLS, SASL and ACLs
    python -m kafka_fast.testing.real_kafka fetch                # fill the cache only

The command needs Java 17 and, the first time, Maven. What it runs is in `_kafka`.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafka_fast.testing._kafka.broker_jars import (
    DEFAULT_VERSION,
    RELEASES,
    RealKafkaError,
    class_path,
    find_tool,
)
from kafka_fast.testing._kafka.real_kafka import RealKafka

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m kafka_fast.testing.real_kafka")
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start", help="start a cluster and keep it until Ctrl-C")
    start.add_argument("--nodes", type=int, choices=(1, 3), default=1)
    start.add_argument("--stock", action="store_true", help="one node with Kafka's own settings")
    start.add_argument(
        "--secure", action="store_true", help="TLS, SASL and ACLs; writes properties for clients"
    )
    start.add_argument("--override", action="append", default=[], metavar="KEY=VALUE")
    fetch = commands.add_parser("fetch", help="only fill the cache")
    for command in (start, fetch):
        command.add_argument("--version", choices=tuple(RELEASES), default=DEFAULT_VERSION)
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "fetch":
            find_tool("java")
            print(class_path(chosen.version))
            return 0
        overrides = dict(pair.partition("=")[::2] for pair in chosen.override)
        # SIGTERM ends the cluster as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if chosen.secure:
            _serve_securely(chosen.nodes, chosen.version, overrides)
            return 0
        kafka = RealKafka(chosen.nodes, chosen.version, overrides=overrides, stock=chosen.stock)
        with kafka:
            print(kafka.bootstrap, flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass
    except RealKafkaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _serve_securely(nodes: int, version: str, overrides: Mapping[str, str]) -> None:
    """Run a cluster with TLS, SASL and ACLs, and name the properties that clients take."""
    from kafka_fast.testing._kafka.secure_kafka import USERS, SecureKafka  # needs trustme

    with (
        tempfile.TemporaryDirectory(prefix="kafka-fast-secure-") as folder,
        SecureKafka(Path(folder), nodes, version, overrides=overrides) as kafka,
    ):
        print(kafka.bootstrap)
        print(*kafka.write_properties(Path(folder)), sep="\n")
        print("users:", ", ".join(map("/".join, USERS.items())), flush=True)
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
