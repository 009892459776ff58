"""`kafka-fast produce`: each line of a file or of standard input becomes a record.

Lines are read and sent a block at a time. The futures of records are dropped; the producer counts
failures, and its `flush` reports them. The exit status is 0 only if every line is in the log. If a
user types the lines, each failure is reported at once.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from typing import Any, Protocol

from kafka_fast.cli.connection import add_connection, configuration, key_value
from kafka_fast.cli.records.escapes import unescape
from kafka_fast.cli.records.json_lines import LONGEST_BYTE, MOST_AROUND, read_records
from kafka_fast.cli.records.lines import read_lines, split_keys
from kafka_fast.cli.showing.progress import Progress, showing_progress
from kafka_fast.cli.showing.standard_error import say
from kafka_fast.config import ProducerSettings, producer_settings
from kafka_fast.errors import ConfigError, DeliveryError, KafkaError, Outcome, UsageError
from kafka_fast.types import Header

INTERRUPT_FLUSH = 5.0
"""Seconds to deliver records that were read before a Ctrl-C."""

EXAMPLES = r"""examples:
  kafka-fast produce events                     type records, Ctrl-D ends
  kafka-fast produce events -f events.json -X compression.type=zstd
  kafka-fast produce users -f users.tsv -K '\t' --null NULL
  kafka-fast consume users --until end -F json | kafka-fast produce copy -F json
"""

_UNDELIVERED = 1
_INTERRUPTED = 130


class LineProducer(Protocol):
    """The part of `kafka_fast.Producer` that this command uses."""

    def send_many(
        self,
        topic: str,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None = None,
        partitions: int | Sequence[int | None] | None = None,
        timestamps_ms: Sequence[int | None] | None = None,
        headers: Sequence[Any] | None = None,
    ) -> object:
        """Send records; if the result is dropped, the next flush raises their failures."""
        ...

    def flush(self, timeout: float | None = None) -> int:
        """Wait for all records; return how many are pending, or raise the failures."""
        ...

    def close(self, timeout: float | None = None) -> None:
        """Give up pending records, and close the connections."""
        ...


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "produce",
        help="send lines as records",
        description="Send each line of a file, or of standard input, as a record. The exit status "
        "is 0 only if all were delivered. What consume --format json has written is sent as it "
        "was: keys, values, headers and timestamps.",
        epilog=EXAMPLES,
    )
    parser.add_argument("topic", help="to send to; most clusters create one that is not there")
    parser.add_argument(
        "-f", "--file", default="-", help="file to read (default: -, which is standard input)"
    )
    parser.add_argument(
        "-F",
        "--format",
        choices=("value", "json"),
        default="value",
        help="value: a line is the value, or key and value (default); json: an object, as consume "
        "--format json writes it",
    )
    parser.add_argument(
        "-K",
        "--key-separator",
        metavar="TEXT",
        type=_separator,
        help=r"what divides a line into key and value; \t is a tab",
    )
    parser.add_argument(
        "--null",
        metavar="TEXT",
        type=_bytes,
        help="a key or value that is exactly TEXT is null, such as the value of a tombstone",
    )
    parser.add_argument(
        "-H",
        "--header",
        metavar="KEY=VALUE",
        type=_header,
        action="append",
        default=[],
        help="header of every record; may be repeated",
    )
    add_connection(parser, "producer")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("-p", "--partition", type=int, help="send all to this partition")
    place.add_argument(
        "--keep-partitions",
        action="store_true",
        help="with --format json: send each to the partition that its line names",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on a terminal")
    parser.set_defaults(run=run)


def run(
    args: argparse.Namespace, connect: Callable[[dict[str, object]], LineProducer] | None = None
) -> int:
    """Send the lines and return the exit status.

    Args:
        args: the parsed arguments.
        connect: makes the producer from its configuration; None makes a `kafka_fast.Producer`.
    """
    _check_format(args)
    config = configuration(args, "producer")
    settings = producer_settings(config)  # raises before anything is opened
    if settings.transactional_id is not None:
        raise ConfigError("transactional.id: this command sends without transactions")
    with _open(args.file) as source:
        is_typed = os.isatty(source.fileno())
        quiet = args.quiet or is_typed  # a progress bar would disturb a user who types
        with showing_progress(quiet=quiet, total=_size_of(source)) as progress:
            producer = (connect or _connect)(config)
            if is_typed and not args.quiet:
                say("one record a line, Ctrl-D ends")
            sending = _Sending(producer, args, settings, progress, is_typed=is_typed)
            sending.send_lines(source)
    return sending.report()


def _check_format(args: argparse.Namespace) -> None:
    """Refuse options that the format has no use for.

    Raises:
        UsageError: it names them.
    """
    if args.format != "json":
        if args.keep_partitions:
            raise UsageError("--keep-partitions is for --format json")
    elif args.key_separator is not None or args.null is not None:
        raise UsageError("JSON says what is key and what is null: leave --key-separator and --null")


class _Sending:
    """One run of the command: reads, sends, flushes, and counts sent and failed records."""

    def __init__(
        self,
        producer: LineProducer,
        args: argparse.Namespace,
        settings: ProducerSettings,
        progress: Progress,
        *,
        is_typed: bool,
    ) -> None:
        self._producer = producer
        self._is_typed = is_typed
        self._args = args
        self._max_line = settings.max_request_size
        if args.format == "json":
            self._max_line = self._max_line * LONGEST_BYTE + MOST_AROUND
        self._progress = progress
        self._sent = 0
        self._failed = 0
        self._error: BaseException | None = None
        self._interrupted = False

    def send_lines(self, source: FileIO) -> None:
        """Send all lines and wait for their outcome; errors are kept for the report."""
        try:
            self._send_all(source)
            self._settle(None)
        except KeyboardInterrupt:
            self._interrupted = True
            try:
                self._settle(INTERRUPT_FLUSH)
            except KeyboardInterrupt:
                self._settle(0.0)
        finally:
            self._close()

    def report(self) -> int:
        """Report undelivered records on standard error, and return the exit status."""
        # A record whose send was interrupted may be pending as well; it is then counted twice.
        failed = min(self._failed, self._sent)
        if failed:
            cause = f": {_reason(self._error)}" if self._error else ""
            say(f"{failed:,} of {self._sent:,} records were not delivered{cause}")
        elif self._error:
            say(f"{self._error} (records delivered before it: {self._sent:,})")
        if self._interrupted:
            say(f"interrupted after {self._sent:,} record{'s' if self._sent != 1 else ''}")
            return _INTERRUPTED
        return _UNDELIVERED if failed or self._error else 0

    def _send_all(self, source: FileIO) -> None:
        """Send block by block, until the end of the input or the first error."""
        try:
            for lines in read_lines(source, self._max_line):
                if self._is_typed:
                    self._send_typed(lines.values)
                else:
                    self._send(lines.values)
                self._progress.advance(len(lines.values), lines.size)
        except (KafkaError, OSError) as error:
            self._error = error

    def _send_typed(self, lines: list[bytes]) -> None:
        """Send typed lines, wait for their outcome, and report a failure at once."""
        sent, failed = self._sent, self._failed
        first, self._error = self._error, None
        try:
            self._send(lines)
            self._settle(None)
        except KafkaError as refused:
            self._sent, self._failed = sent + len(lines), failed + len(lines)
            self._error = refused
        if self._failed > failed:
            say(str(self._error))
        self._error = first or self._error

    def _send(self, lines: list[bytes]) -> None:
        if self._args.format == "json":
            values, columns = self._of_json(lines)
        else:
            values, columns = self._of_lines(lines)
        self._sent += len(lines)
        try:
            self._producer.send_many(self._args.topic, values, **columns)
        except BaseException:
            self._failed += len(lines)  # none was accepted, or an unknown number
            raise

    def _of_lines(self, lines: list[bytes]) -> tuple[Sequence[bytes | None], dict[str, Any]]:
        """Return the values of lines, and what else `send_many` is given."""
        keys: Sequence[bytes | None] | None = None
        values: Sequence[bytes | None] = lines
        if self._args.key_separator is not None:
            keys, values = split_keys(lines, self._args.key_separator, self._sent + 1)
        if self._args.null is not None:
            values = self._with_nulls(values)
            keys = None if keys is None else self._with_nulls(keys)
        headers = self._args.header or None
        return values, {"keys": keys, "partitions": self._args.partition, "headers": headers}

    def _of_json(self, lines: list[bytes]) -> tuple[Sequence[bytes | None], dict[str, Any]]:
        """Return the same of lines of JSON."""
        records = read_records(lines, self._sent + 1)
        more: list[Header] = self._args.header
        headers = records.headers
        if more:
            headers = [[*(own or ()), *more] for own in headers]
        partition = records.partitions if self._args.keep_partitions else self._args.partition
        return records.values, {
            "keys": records.keys,
            "partitions": partition,
            "timestamps_ms": records.timestamps_ms,
            "headers": headers,
        }

    def _with_nulls(self, parts: Sequence[bytes | None]) -> list[bytes | None]:
        null = self._args.null
        return [None if part == null else part for part in parts]

    def _settle(self, timeout: float | None) -> None:
        """Flush, and count records that failed or are still pending after `timeout`."""
        try:
            self._failed += self._producer.flush(timeout)
        except DeliveryError as error:
            self._failed += error.count
            self._error = self._error or error.first or error

    def _close(self) -> None:
        # The interrupted flush has counted pending records; close() may report them again.
        with suppress(DeliveryError):
            self._producer.close(0.0 if self._interrupted else None)


def _reason(error: BaseException) -> BaseException:
    """Return the reason of a rejection, without the outer error that only says "rejected"."""
    if isinstance(error, DeliveryError) and error.outcome is Outcome.REJECTED and error.first:
        return error.first
    return error


def _connect(config: dict[str, object]) -> LineProducer:
    from kafka_fast import Producer

    return Producer(config)


@contextmanager
def _open(name: str) -> Iterator[FileIO]:
    """Open a file, or standard input for `-`, without Python's buffer."""
    if name != "-":
        with FileIO(name) as source:
            yield source
    elif sys.stdin is None:
        raise UsageError("there is no standard input to read")
    else:
        with FileIO(sys.stdin.fileno(), closefd=False) as source:
            yield source


def _size_of(source: FileIO) -> int | None:
    """Return the size of a regular file; None for a pipe."""
    status = os.fstat(source.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _bytes(text: str) -> bytes:
    return unescape(os.fsencode(text))


def _separator(text: str) -> bytes:
    separator = _bytes(text)
    if not separator:
        raise argparse.ArgumentTypeError("must not be empty")
    return separator


def _header(text: str) -> Header:
    key, value = key_value(text)
    return key, os.fsencode(value)
