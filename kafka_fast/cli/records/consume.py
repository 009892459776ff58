"""`kafka-fast consume`: records of topics, written to standard output as they come.

    with --until          read a range, without a group, and end
    with --tail           read the last records, without a group, and end
    with --group          read as a member; commit only records that were written; wait for topics
                          that do not exist (yet)
    without either        read all partitions, forever

    without --group, --partition chooses among the partitions of a topic

The command ends at Ctrl-C, SIGTERM or `--max`, or when the reader of the output leaves. A block of
records is never cut: the command ends between two blocks.
"""

from __future__ import annotations

import argparse
import errno
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from kafka_fast import Consumer, TopicPartition, read_range
from kafka_fast.cli.connection import (
    add_connection,
    group_id,
    is_given,
    reader_configuration,
)
from kafka_fast.cli.records.partitions import assign, check_topics, parse_partition, sources
from kafka_fast.cli.records.points import BEGINNING, END, Point, parse_point, time_meant
from kafka_fast.cli.records.readings import BYTES, KINDS
from kafka_fast.cli.records.rendering import Readings, Records, Render, make_render
from kafka_fast.cli.records.selection import Select, selection, wanted_header
from kafka_fast.cli.records.tail import last_records, last_together
from kafka_fast.cli.showing.progress import Progress, showing_progress
from kafka_fast.cli.showing.standard_error import is_terminal, say
from kafka_fast.consumer import ConsumerRecords
from kafka_fast.errors import PositionError, SerializationError, UsageError, WakeupError

AT_A_TIME = 5_000
"""Most records that are written together; such a block has a few hundred kilobytes."""

WAIT = 1.0
"""Seconds between two looks at whether a commit is due."""

COMMIT_INTERVAL = 5.0

EXAMPLES = r"""examples:
  kafka-fast consume events --until end                      what is there now
  kafka-fast consume events --from -1h --until now -F json   the last hour
  kafka-fast consume events --tail 10                        of each partition
  kafka-fast consume events -H source=import -F '%h{trace} %v\n'
  kafka-fast consume events -g audit --from beginning -F '%p %o %k %v\n'
"""

_SIGNALLED = 128
"""Added to a signal's number, this is the exit status after that signal, as in shells."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "consume",
        help="write records to standard output",
        description="Write the records of topics to standard output as they come: new ones only, "
        "unless --from, --until or --group says otherwise.",
        epilog=EXAMPLES,
    )
    parser.add_argument("topic", nargs="+", help="to read")
    parser.add_argument("-g", "--group", help="read as a member of this group, and commit")
    parser.add_argument(
        "-p",
        "--partition",
        metavar="N",
        type=parse_partition,
        action="append",
        default=[],
        help="read only this partition of the topic, without a group; may be repeated",
    )
    parser.add_argument(
        "--from",
        dest="start",
        metavar="POINT",
        type=parse_point,
        help="beginning, end, an offset, now, a time before now such as -90s, -1h or -7d, @MS "
        "(Unix time in ms) or an ISO time; default: end, with --until beginning, and with --group "
        "what it committed",
    )
    parser.add_argument(
        "--until",
        metavar="POINT",
        type=parse_point,
        help="stop there, and end; POINT as above; end: what is there now",
    )
    last = parser.add_mutually_exclusive_group()
    last.add_argument(
        "--tail",
        metavar="N",
        type=_count,
        help="the last N records of each partition that are there now, and end",
    )
    last.add_argument(
        "--tail-together",
        metavar="N",
        type=_count,
        help="the last N records of all partitions together, by their timestamps, and end",
    )
    parser.add_argument(
        "-H",
        "--header",
        metavar="NAME[=VALUE]",
        type=wanted_header,
        action="append",
        default=[],
        help="only records that have this header; may be repeated: they have all",
    )
    parser.add_argument(
        "-F",
        "--format",
        default="value",
        help=r"value (default), key, json, hex, or a text with %%t topic, %%p partition, %%o "
        r"offset, %%T Unix ms, %%k key, %%v value, %%h headers, %%h{NAME} one header's value; \n, "
        r"\t, \0 and \xNN are escapes; what is null is shown as null",
    )
    for name in ("key", "value"):
        parser.add_argument(
            f"--{name}-as",
            metavar="KIND",
            choices=KINDS,
            default=BYTES,
            help=f"what the {name} is: {', '.join(KINDS)}; numbers are those of Java's serializers "
            "(default %(default)s, which is as it is)",
        )
    parser.add_argument("-n", "--max", type=_count, help="stop after so many records")
    add_connection(parser, "consumer")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on a terminal")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write records until the range ends, `--max` is reached, or Ctrl-C; return the status."""
    check_topics(args.topic)
    config = reader_configuration(args)
    for name in ("key.deserializer", "value.deserializer"):
        if is_given(config, name):
            raise UsageError(f"{name}: what is written are the record's own bytes")
    group = group_id(config, args.group)
    if group is not None and args.until is not None:
        raise UsageError("a group reads on and on: leave --group or --until out")
    if group is not None and args.partition:
        raise UsageError("a group shares its partitions out: leave --group or --partition out")
    count = args.tail or args.tail_together
    if count is not None:
        _check_tail(args, group)
    render = make_render(args.format, Readings(args.key_as, args.value_as))
    if sys.stdout is None:  # the parent process closed it
        raise OSError(errno.EBADF, "there is no standard output")
    with showing_progress(quiet=args.quiet or not _is_file(sys.stdout), total=None) as progress:
        sink = _Sink(render, args.max, progress, selection(args.header))
        if count is not None:
            return _run_tail(args, config, sink, count)
        if args.until is not None:
            return _run_range(args, config, sink)
        if group is not None:
            return _run_member(args, {**config, "group.id": group}, sink)
        return _run_alone(args, config, sink)


def _check_tail(args: argparse.Namespace, group: str | None) -> None:
    """Refuse what cannot stand beside the last records.

    Raises:
        UsageError: it says another place, another number, or a group.
    """
    if group is not None:
        raise UsageError("a group goes on from what it committed: leave --group or --tail out")
    for option, value in (("--from", args.start), ("--until", args.until), ("--max", args.max)):
        if value is not None:
            raise UsageError(f"--tail says which records: leave {option} out")


def _run_tail(args: argparse.Namespace, config: dict[str, object], sink: _Sink, count: int) -> int:
    with _interruptible(sink.interrupt) as signalled, suppress(KeyboardInterrupt):
        of_partitions = last_records(
            config, sources(args.topic, args.partition), count, sink.select
        )
        if args.tail_together is not None:
            of_partitions = [last_together(of_partitions, count)]
        for records in of_partitions:
            for at in range(0, len(records), AT_A_TIME):
                sink.write(records[at : at + AT_A_TIME])
                if signalled():
                    return signalled()
    return signalled()


def _run_range(args: argparse.Namespace, config: dict[str, object], sink: _Sink) -> int:
    start: Point = args.start or BEGINNING
    until: Point = args.until
    if (start.is_time and until.is_offset) or (start.is_offset and until.is_time):
        raise UsageError("--from and --until are both offsets or both times")
    by_time = start.is_time or until.is_time
    is_backwards = start.kind == until.kind and start.number > until.number
    if start is END or until is BEGINNING or is_backwards:
        raise UsageError("nothing stands between --from and --until")
    with (
        _interruptible(sink.interrupt) as signalled,
        suppress(KeyboardInterrupt),
        _saying_what_is_meant(start),
        read_range(
            sources(args.topic, args.partition),
            start.value,
            until.value,
            by="timestamp" if by_time else "offset",
            max_records=AT_A_TIME if sink.select else _at_most(args.max, AT_A_TIME),
            config=config,
        ) as steps,
    ):
        _warn_of_time(until, steps.ranges)
        for records in steps:
            if sink.write(records) or signalled():
                break
    return signalled()


@contextmanager
def _saying_what_is_meant(start: Point) -> Iterator[None]:
    """Add to the error of an offset that no log has which time it most likely is."""
    try:
        yield
    except PositionError as error:
        meant = time_meant(start.number) if start.is_offset else ""
        if not meant:
            raise
        raise PositionError(
            f"{error}{meant}", topic=error.topic, partition=error.partition, offset=error.offset
        ) from error


def _warn_of_time(until: Point, ranges: Mapping[TopicPartition, range]) -> None:
    """Say that an offset to stop at lies beyond all logs, and is most likely a time."""
    meant = time_meant(until.number) if until.is_offset else ""
    if meant and all(span.stop < until.number for span in ranges.values()):
        say(f"--until {until.number} is an offset, beyond the log{meant}")


def _run_member(args: argparse.Namespace, config: dict[str, object], sink: _Sink) -> int:
    commits = not is_given(config, "enable.auto.commit")
    if commits:
        config["enable.auto.commit"] = False  # only records that were written are committed
    if args.start in (BEGINNING, END):
        if is_given(config, "auto.offset.reset"):
            raise UsageError("--from and auto.offset.reset say the same: leave one of them out")
        config["auto.offset.reset"] = "earliest" if args.start is BEGINNING else "latest"
    elif args.start is not None:
        raise UsageError("a group goes on from what it committed: --from is beginning or end")
    with Consumer(config) as consumer, _interruptible(consumer.wakeup) as signalled:
        consumer.subscribe(args.topic)
        committed = time.monotonic()
        for records in _polls(consumer, sink):
            if records and sink.write(records):
                break
            if commits and time.monotonic() - committed >= COMMIT_INTERVAL:
                committed = time.monotonic()
                consumer.commit(sync=False)
        if commits and sink.count:
            _commit(consumer)
        return signalled()


def _commit(consumer: Consumer) -> None:
    try:
        consumer.commit()
    except WakeupError:  # Ctrl-C came with the last block, after the last poll
        consumer.commit()


def _run_alone(args: argparse.Namespace, config: dict[str, object], sink: _Sink) -> int:
    from_end = args.start is None or args.start is END
    if not (from_end or is_given(config, "auto.offset.reset")):
        # If records are deleted before they are read, go on with the first that is left. The
        # default, latest, would skip all others, too.
        config["auto.offset.reset"] = "earliest"
    with Consumer(config) as consumer, _interruptible(consumer.wakeup) as signalled:
        try:
            assign(consumer, sources(args.topic, args.partition), args.start)
        except WakeupError:
            return signalled()
        if args.start is None and not args.quiet and is_terminal():
            say("new records only (--from beginning: those that are there as well); Ctrl-C ends")
        for records in _polls(consumer, sink):
            if records and sink.write(records):
                break
        return signalled()


def _polls(consumer: Consumer, sink: _Sink) -> Iterator[ConsumerRecords]:
    """Yield the records of polls, until there is a signal."""
    while True:
        try:
            records = consumer.poll(WAIT, _at_most(sink.left, AT_A_TIME))
        except WakeupError:
            return
        if not records:
            sink.check_reader()
        yield records


@contextmanager
def _interruptible(stop: Callable[[], None]) -> Iterator[Callable[[], int]]:
    """Have the first Ctrl-C (or SIGTERM) call `stop`, so that no block is cut.

    A second signal raises KeyboardInterrupt.

    Yields:
        A function that returns the exit status; 0 if there was no signal.
    """
    seen = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        if seen:
            raise KeyboardInterrupt
        seen = number
        stop()

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield lambda: _SIGNALLED + seen if seen else 0
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class _Sink:
    """Standard output; blocks are written as a whole."""

    def __init__(
        self, render: Render, most: int | None, progress: Progress, select: Select | None
    ) -> None:
        self.count = 0
        self.select = select
        self._is_writing = False
        self._render = render
        self._max = most
        self._progress = progress

    @property
    def left(self) -> int | None:
        """Number of records that are still wanted; None: no limit."""
        return None if self._max is None else self._max - self.count

    def write(self, records: Records) -> bool:
        """Write those of the records that are to be shown; return whether `--max` is reached.

        Raises:
            BrokenPipeError: the reader of the output has left.
            SerializationError: a record is not what `--key-as` or `--value-as` says. Those before
                it are written.
        """
        chosen: Records = records if self.select is None else self.select(records)
        written = chosen if self.left is None else chosen[: self.left]
        try:
            block = self._render(written)
        except SerializationError:
            for record in written:  # the same error ends this
                self._write_block(self._render([record]), 1)
            raise
        self._write_block(block, len(written))
        return self.left == 0

    def _write_block(self, block: bytes, count: int) -> None:
        rest, fd = memoryview(block), sys.stdout.fileno()
        self._is_writing = True
        while rest:
            rest = rest[os.write(fd, rest) :]
        self._is_writing = False
        self.count += count
        self._progress.advance(count, len(block))

    def interrupt(self) -> None:
        """Interrupt the command, unless a block is being written.

        Raises:
            KeyboardInterrupt: nothing is being written.
        """
        if not self._is_writing:
            raise KeyboardInterrupt

    def check_reader(self) -> None:
        """Look whether the reader of the output has left, while there is nothing to write.

        Raises:
            BrokenPipeError: the reader has left.
        """
        waits = select.poll()
        waits.register(sys.stdout.fileno(), 0)  # poll always reports POLLERR
        if waits.poll(0):
            raise BrokenPipeError


def _is_file(output: TextIO) -> bool:
    """Return whether records go to a file, or to no place at all.

    Those that go into a pipe may come out on the same terminal, between the lines of progress.
    """
    try:
        kind = os.fstat(output.fileno()).st_mode
    except OSError:  # an object of Python's in the place of standard output
        return False
    return not (output.isatty() or stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind))


def _at_most(left: int | None, most: int) -> int:
    return most if left is None else min(left, most)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of records")
    return int(text)
