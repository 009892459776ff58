"""`kafka-fast consume`: records of topics, written to standard output as they come.

    with --until          a range: what is there now, or up to a point; no group; ends
    with --group          as a member; commits what was written, and only that; waits for topics
                          that do not exist (yet)
    without either        all partitions, for ever

Ctrl-C, a reader of the output that leaves, and `--max` end it between two blocks: what was begun is
written to its end.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

from kafka_fast import Consumer, TopicPartition, read_range
from kafka_fast.cli.connection import add_connection, is_given, reader_configuration
from kafka_fast.cli.points import BEGINNING, END, Point, parse_point
from kafka_fast.cli.progress import make_progress
from kafka_fast.cli.rendering import Render, make_render
from kafka_fast.consumer import ConsumerRecords
from kafka_fast.errors import UsageError, WakeupError

AT_A_TIME = 5_000
"""Records that are written together; a block is a few hundred kilobytes."""

WAIT = 1.0
"""Seconds between two looks at whether a commit is due."""

COMMIT_INTERVAL = 5.0

_INTERRUPTED = 130


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "consume",
        help="write records to standard output",
        description="Write the records of topics to standard output as they come.",
    )
    parser.add_argument("topic", nargs="+")
    parser.add_argument("-g", "--group", help="read as a member of this group, and commit")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="POINT",
        type=parse_point,
        help="beginning, end, an offset, @MS (Unix time in ms) or an ISO time; default: end, with "
        "--until beginning, and with --group what it committed",
    )
    parser.add_argument(
        "--until", metavar="POINT", type=parse_point, help="stop there; end: what is there now"
    )
    parser.add_argument(
        "-F",
        "--format",
        default="value",
        help=r"value (default), json, hex, or a text with %%t topic, %%p partition, %%o offset, "
        r"%%T Unix ms, %%k key, %%v value, %%h headers; \n, \t, \0 and \xNN are escapes",
    )
    parser.add_argument("-n", "--max", type=_count, help="stop after so many records")
    add_connection(parser, "consumer")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on a terminal")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write records until there are no more, there are enough, or Ctrl-C; return the status."""
    config = reader_configuration(args)
    if args.group is not None and args.until is not None:
        raise UsageError("a group reads on and on: leave --group or --until out")
    sink = _Sink(make_render(args.format), args)
    try:
        if args.until is not None:
            return _run_range(args, config, sink)
        return _run_for_ever(args, config, sink)
    finally:
        sink.close()


def _run_range(args: argparse.Namespace, config: dict[str, object], sink: _Sink) -> int:
    start: Point = args.start or BEGINNING
    until: Point = args.until
    if (start.is_time and until.is_offset) or (start.is_offset and until.is_time):
        raise UsageError("--from and --until are both offsets or both times")
    by_time = start.is_time or until.is_time
    if start is END or until is BEGINNING:
        raise UsageError("nothing stands between --from and --until")
    with read_range(
        args.topic,
        start.value,
        until.value,
        by="timestamp" if by_time else "offset",
        max_records=_at_most(args.max, AT_A_TIME),
        config=config,
    ) as steps:
        for records in steps:
            if sink.write(records):
                break
    return 0


def _run_for_ever(args: argparse.Namespace, config: dict[str, object], sink: _Sink) -> int:
    commits = args.group is not None and not is_given(config, "enable.auto.commit", "consumer")
    if args.group is not None:
        config["group.id"] = args.group
        if commits:
            config["enable.auto.commit"] = False  # what is committed has been written
    if args.start in (BEGINNING, END):
        config["auto.offset.reset"] = "earliest" if args.start is BEGINNING else "latest"
    elif args.start is not None and args.group is not None:
        raise UsageError("a group goes on from what it committed: --from is beginning or end")
    with Consumer(config) as consumer, _interruptible(consumer) as is_interrupted:
        if args.group is not None:
            consumer.subscribe(args.topic)
        else:
            _assign(consumer, args.topic, args.start)
        committed = time.monotonic()
        try:
            for records in _polls(consumer, sink):
                if records and sink.write(records):
                    break
                if commits and time.monotonic() - committed >= COMMIT_INTERVAL:
                    committed = time.monotonic()
                    consumer.commit(sync=False)
        except WakeupError:
            pass
        if commits and sink.count:
            _commit(consumer)
        return _INTERRUPTED if is_interrupted() else 0


def _commit(consumer: Consumer) -> None:
    try:
        consumer.commit()
    except WakeupError:  # Ctrl-C came with the last block, after the last poll
        consumer.commit()


def _polls(consumer: Consumer, sink: _Sink) -> Iterator[ConsumerRecords]:
    while True:
        yield consumer.poll(WAIT, _at_most(sink.left, AT_A_TIME))


def _assign(consumer: Consumer, topics: Iterable[str], start: Point | None) -> None:
    """Read all partitions from the point on; None: the end."""
    partitions = [
        TopicPartition(topic, it.partition)
        for topic in dict.fromkeys(topics)
        for it in consumer.partitions_for(topic)
    ]
    consumer.assign(partitions)
    if start is BEGINNING:
        consumer.seek_to_beginning()
    elif start is None or start is END:
        consumer.seek_to_end()
    elif start.is_time:
        consumer.seek_to_timestamp(start.number)
    else:
        for partition in partitions:
            consumer.seek(partition, start.number)


@contextmanager
def _interruptible(consumer: Consumer) -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C end the next poll, so that no block is cut; the second one ends all.

    Yields:
        whether there was one.
    """
    seen = False

    def handle(signum: int, frame: FrameType | None) -> None:
        nonlocal seen
        if seen:
            raise KeyboardInterrupt
        seen = True
        consumer.wakeup()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: seen
    finally:
        signal.signal(signal.SIGINT, before)


class _Sink:
    """Standard output, to which blocks go whole."""

    def __init__(self, render: Render, args: argparse.Namespace) -> None:
        self.count = 0
        self._render = render
        self._max: int | None = args.max
        self._progress = make_progress(args.quiet or sys.stdout.isatty(), None)

    @property
    def left(self) -> int | None:
        """Records that are wanted yet; None: as many as come."""
        return None if self._max is None else self._max - self.count

    def write(self, records: ConsumerRecords) -> bool:
        """Write what of the records is wanted; returns whether that was the last.

        Raises:
            BrokenPipeError: whoever read the output has left.
        """
        wanted = records if self.left is None else records[: self.left]
        block = memoryview(self._render(wanted))
        size, fd = len(block), sys.stdout.fileno()
        while block:
            block = block[os.write(fd, block) :]
        self.count += len(wanted)
        self._progress.advance(len(wanted), size)
        return self.left == 0

    def close(self) -> None:
        """Leave the line of the progress."""
        self._progress.close()


def _at_most(left: int | None, most: int) -> int:
    return most if left is None else min(left, most)


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return count
