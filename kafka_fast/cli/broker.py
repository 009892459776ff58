"""`kafka-fast broker`: the embedded broker as a process, for demos and for other languages' tests.

All data is in memory, and lost when the process ends.
"""

from __future__ import annotations

import argparse
import errno


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "broker",
        help="run an embedded broker for tests",
        description="Run a Kafka cluster in memory until Ctrl-C. It is for demos and tests: no "
        "security, and nothing is kept.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument(
        "--port",
        type=_port,
        default=9092,
        help="of the first broker, the others follow; 0 for free ones (%(default)s)",
    )
    parser.add_argument(
        "--brokers", type=_count, default=1, help="how many brokers it has (%(default)s)"
    )
    parser.add_argument(
        "--partitions",
        type=_count,
        default=1,
        help="of a topic that is created without saying how many (%(default)s)",
    )
    parser.add_argument(
        "--no-auto-create",
        dest="auto_create",
        action="store_false",
        help="do not create the topics that clients ask for",
    )
    parser.add_argument(
        "--insecure-bind", action="store_true", help="allow an address that is not loopback"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the cluster until SIGINT or SIGTERM."""
    from kafka_fast.testing.broker.serving import server

    try:
        server.run(
            args.host,
            args.port,
            brokers=args.brokers,
            partitions=args.partitions,
            auto_create=args.auto_create,
            insecure_bind=args.insecure_bind,
        )
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        why = f"{error.strerror}: choose another one with --port, or 0 for a free one"
        raise OSError(error.errno, why) from error
    return 0


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port < 65536:
        raise argparse.ArgumentTypeError(f"{port} is not in 0..65535")
    return port


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return count
