"""Programs that read records and end in some way, and what they may commit: a table.

A program is a text with some words for what differs between clients and ways to read:

    LOOP:        the loop over records; its body works on `record`
    LEAVE        leave the loop
    WITH, DEF    `with` and `def`, or `async with` and `async def`
    AWAIT        nothing, or `await`
    FOR          `for`, or `async for`

    text ── source_of(way, is_async) ──► a function `program(consumer, case)`

`case` is a `Case`. The log has 30 records, and a poll returns 10 of them. `case.handle` fails at
offset 13, if the program is one that fails; so 0 to 12 are done then, and a poll has returned 10
to 19.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from textwrap import dedent
from typing import Any, NamedTuple

COUNT = 30
BATCH = 10
PLACE = 13
"""Offset of the record at which something happens."""

WAYS = ("for", "poll", "batches")


class Shape(NamedTuple):
    """A program.

    Attributes:
        text: the program's body.
        for_loop: what is committed if LOOP is a `for` statement over the consumer.
        others: what is committed if it is a loop over polls or batches; None: there is no such
            program.
        is_for_all: whether the asyncio client has this program, too.
    """

    text: str
    for_loop: int
    others: int | None = BATCH
    is_for_all: bool = True


FAILS = PLACE
"""Offset that is committed if the body of `PLACE` has not ended."""

DONE = PLACE + 1
"""Offset that is committed if it has, by `break` or `return`."""

SHAPES: dict[str, Shape] = {
    # ---- an exception, and a close somewhere ----
    "raise, with": Shape(
        """
        WITH consumer:
            LOOP:
                case.handle(record)
        """,
        FAILS,
    ),
    "raise, finally close": Shape(
        """
        try:
            LOOP:
                case.handle(record)
        finally:
            AWAIT consumer.close()
        """,
        FAILS,
    ),
    "raise, except, close": Shape(
        """
        try:
            LOOP:
                case.handle(record)
        except ValueError:
            pass
        AWAIT consumer.close()
        """,
        FAILS,
    ),
    "raise, close in except": Shape(
        """
        try:
            LOOP:
                case.handle(record)
        except ValueError as error:
            case.keep = error
            AWAIT consumer.close()
        """,
        FAILS,
    ),
    "raise, caught within with": Shape(
        """
        WITH consumer:
            try:
                LOOP:
                    case.handle(record)
            except ValueError as error:
                case.keep = error
        """,
        FAILS,
    ),
    "raise in a function, caught, close": Shape(
        """
        DEF read():
            LOOP:
                case.handle(record)
        try:
            AWAIT read()
        except ValueError:
            pass
        AWAIT consumer.close()
        """,
        FAILS,
    ),
    "raise, suppressed, close": Shape(
        """
        with case.suppressed():
            LOOP:
                case.handle(record)
        AWAIT consumer.close()
        """,
        FAILS,
    ),
    "raise within try/finally in the body": Shape(
        """
        WITH consumer:
            LOOP:
                try:
                    case.handle(record)
                finally:
                    case.clean_up()
        """,
        FAILS,
    ),
    "SystemExit, close at exit": Shape(
        """
        try:
            LOOP:
                if record.offset == 13:
                    raise SystemExit(3)
                case.handle(record)
        except SystemExit:
            pass
        AWAIT consumer.close()
        """,
        FAILS,
    ),
    "Ctrl-C in the body, with": Shape(
        """
        WITH consumer:
            LOOP:
                if record.offset == 13:
                    raise KeyboardInterrupt
                case.handle(record)
        """,
        FAILS,
    ),
    "raise, unsubscribe, close": Shape(
        """
        try:
            LOOP:
                case.handle(record)
        finally:
            AWAIT consumer.unsubscribe()
            AWAIT consumer.close()
        """,
        FAILS,
    ),
    "raise, assign, close": Shape(
        """
        try:
            LOOP:
                case.handle(record)
        except ValueError:
            consumer.assign([])
        AWAIT consumer.close()
        """,
        FAILS,
    ),
    "raise, pause and resume, close": Shape(
        """
        try:
            LOOP:
                case.handle(record)
        except ValueError:
            consumer.pause(case.partition)
            consumer.resume(case.partition)
        AWAIT consumer.close()
        """,
        FAILS,
    ),
    "seek forward, raise, close": Shape(
        """
        try:
            LOOP:
                if record.offset == 13:
                    consumer.seek(case.partition, 25)
                case.handle(record)
        except ValueError:
            pass
        AWAIT consumer.close()
        """,
        FAILS,
    ),
    "raise, seek to the end, close": Shape(
        """
        try:
            LOOP:
                case.handle(record)
        except ValueError:
            consumer.seek_to_end()
            AWAIT consumer.position(case.partition)
        AWAIT consumer.close()
        """,
        FAILS,
    ),
    "raise, seek back, close": Shape(
        """
        try:
            LOOP:
                case.handle(record)
        except ValueError:
            consumer.seek(case.partition, 12)
        AWAIT consumer.close()
        """,
        12,
    ),
    "raise, assign nothing and the same again, close": Shape(
        """
        try:
            LOOP:
                case.handle(record)
        except ValueError:
            consumer.assign([])
            consumer.assign([case.partition])
        AWAIT consumer.close()
        """,
        FAILS,
    ),
    # ---- the loop's iterator is somewhere else than on the stack of its frame ----
    "raise in a generator's caller": Shape(
        """
        DEF records():
            LOOP:
                yield record
        try:
            FOR record in records():
                case.handle(record)
        except ValueError:
            pass
        AWAIT consumer.close()
        """,
        FAILS,
    ),
    "break in a generator's caller": Shape(
        """
        DEF records():
            LOOP:
                yield record
        FOR record in records():
            case.work(record)
            if record.offset == 13:
                break
        AWAIT consumer.close()
        """,
        FAILS,  # the generator is closed: what its caller did is not known
    ),
    "raise in a generator expression's caller": Shape(
        """
        try:
            FOR offset in (record.offset FOR record in consumer):
                case.handle_offset(offset)
        except ValueError:
            pass
        AWAIT consumer.close()
        """,
        FAILS,
        None,
    ),
    "raise in a comprehension": Shape(
        """
        try:
            [case.handle(record) FOR record in consumer]
        except ValueError:
            pass
        AWAIT consumer.close()
        """,
        FAILS,
        None,
    ),
    "raise with the iterator in a variable": Shape(
        """
        records = case.iterate(consumer)
        try:
            FOR record in records:
                case.handle(record)
        except ValueError:
            pass
        del records
        AWAIT consumer.close()
        """,
        FAILS,
        None,
    ),
    "raise with the iterator in the variable of a function": Shape(
        """
        DEF read():
            records = case.iterate(consumer)
            try:
                FOR record in records:
                    case.handle(record)
            except ValueError:
                pass
        AWAIT read()
        AWAIT consumer.close()
        """,
        FAILS,
        None,
    ),
    "raise after next()": Shape(
        """
        DEF read():
            records = case.iterate(consumer)
            while True:
                case.handle(AWAIT case.next_of(records))
        try:
            AWAIT read()
        except ValueError:
            pass
        AWAIT consumer.close()
        """,
        FAILS,
        None,
    ),
    "raise with enumerate in a variable": Shape(
        """
        DEF read():
            numbered = enumerate(consumer)
            try:
                for number, record in numbered:
                    case.handle(record)
            except ValueError:
                pass
            del numbered
        read()
        consumer.close()
        """,
        FAILS,
        None,
        is_for_all=False,
    ),
    "raise within enumerate": Shape(
        """
        try:
            for number, record in enumerate(consumer):
                case.handle(record)
        except ValueError:
            pass
        consumer.close()
        """,
        FAILS,
        None,
        is_for_all=False,
    ),
    "break within enumerate": Shape(
        """
        for number, record in enumerate(consumer, start=1):
            case.work(record)
            if record.offset == 13:
                break
        consumer.close()
        """,
        FAILS,  # what such an iterator has read ahead is not known; the same holds below
        None,
        is_for_all=False,
    ),
    "islice to its end": Shape(
        """
        for record in case.itertools.islice(consumer, 14):
            case.work(record)
        consumer.close()
        """,
        FAILS,
        None,
        is_for_all=False,
    ),
    "zip with something shorter": Shape(
        """
        for record, number in zip(consumer, range(13)):
            case.work(record)
        consumer.close()
        """,
        FAILS,  # and one record more was read, which the body did not get
        None,
        is_for_all=False,
    ),
    "takewhile": Shape(
        """
        for record in case.itertools.takewhile(lambda record: record.offset < 13, consumer):
            case.work(record)
        consumer.close()
        """,
        FAILS,
        None,
        is_for_all=False,
    ),
    "break within groupby": Shape(
        """
        for key, records in case.itertools.groupby(consumer, lambda record: record.offset // 13):
            for record in records:
                case.work(record)
            break
        consumer.close()
        """,
        FAILS,
        None,
        is_for_all=False,
    ),
    "raise with an iterator that a C function keeps": Shape(
        """
        iterate = case.functools.lru_cache(case.operator.methodcaller("__iter__"))
        try:
            for record in iterate(consumer):
                case.handle(record)
        except ValueError:
            pass
        iterate.cache_clear()
        consumer.close()
        """,
        FAILS,
        None,
        is_for_all=False,
    ),
    "raise in the caller of a generator that returns": Shape(
        """
        DEF records():
            LOOP:
                try:
                    yield record
                except GeneratorExit:
                    return
        DEF read():
            FOR record in records():
                case.handle(record)
        try:
            AWAIT read()
        except ValueError:
            pass
        AWAIT case.collect_garbage()
        AWAIT consumer.close()
        """,
        FAILS,
    ),
    "iter() of the consumer in the body": Shape(
        """
        try:
            LOOP:
                case.iterate(consumer)
                case.handle(record)
        except ValueError:
            pass
        AWAIT consumer.close()
        """,
        FAILS,
    ),
    "a poll that raises in the body, and later a body that does": Shape(
        """
        try:
            LOOP:
                if record.offset == 11:
                    AWAIT consumer.commit(record, sync=False, callback=case.complain)
                    AWAIT case.wait_for_callback(consumer)
                    with case.suppressed():
                        AWAIT consumer.poll(0)
                case.handle(record)
        except ValueError:
            pass
        AWAIT consumer.close()
        """,
        FAILS,
        None,  # has asked for the next batch
    ),
    # ---- the loop is left ----
    "break, with": Shape(
        """
        WITH consumer:
            LOOP:
                case.work(record)
                if record.offset == 13:
                    LEAVE
        """,
        DONE,
    ),
    "break, close": Shape(
        """
        LOOP:
            case.work(record)
            if record.offset == 13:
                LEAVE
        AWAIT consumer.close()
        """,
        DONE,
    ),
    "return, with": Shape(
        """
        WITH consumer:
            LOOP:
                case.work(record)
                if record.offset == 13:
                    return
        """,
        DONE,
    ),
    "return from a function, close": Shape(
        """
        DEF read():
            LOOP:
                case.work(record)
                if record.offset == 13:
                    return record
        AWAIT read()
        AWAIT consumer.close()
        """,
        DONE,
    ),
    "break, pause, close": Shape(
        """
        LOOP:
            case.work(record)
            if record.offset == 13:
                consumer.pause(case.partition)
                LEAVE
        AWAIT consumer.close()
        """,
        DONE,
    ),
    "break, then raise, with": Shape(
        """
        WITH consumer:
            LOOP:
                case.receive(record)
                if record.offset == 13:
                    LEAVE
            raise ValueError
        """,
        FAILS,
    ),
    "break, then raise, finally close": Shape(
        """
        try:
            LOOP:
                case.receive(record)
                if record.offset == 13:
                    LEAVE
            raise ValueError
        finally:
            AWAIT consumer.close()
        """,
        FAILS,
    ),
    "close in the body": Shape(
        """
        LOOP:
            if record.offset == 13:
                AWAIT consumer.close()
                return
            case.work(record)
        """,
        FAILS,
    ),
    "a signal handler closes in the body": Shape(
        """
        LOOP:
            if record.offset == 13:
                case.close_by_signal(consumer)
                return
            case.work(record)
        """,
        FAILS,
        is_for_all=False,
    ),
    "another thread closes while the body works": Shape(
        """
        LOOP:
            if record.offset == 13:
                case.close_in_thread(consumer)
                return
            case.work(record)
        """,
        FAILS,
        is_for_all=False,
    ),
    "woken in the body, with": Shape(
        """
        try:
            WITH consumer:
                LOOP:
                    if record.offset == 13:
                        consumer.wakeup()
                    case.work(record)
        except case.WakeupError:
            pass
        """,
        DONE,
        2 * BATCH,
    ),
    "woken in the body, caught, close": Shape(
        """
        try:
            LOOP:
                if record.offset == 13:
                    consumer.wakeup()
                case.work(record)
        except case.WakeupError:
            pass
        AWAIT consumer.close()
        """,
        DONE,
        2 * BATCH,
    ),
    # ---- commits by hand, and other ways to say that a record is done ----
    "commit a record, raise": Shape(
        """
        WITH consumer:
            LOOP:
                case.work(record)
                AWAIT consumer.commit(record)
                if record.offset == 13:
                    raise ValueError
        """,
        DONE,
        DONE,
    ),
    "commit(upto=record), leave": Shape(
        """
        LOOP:
            case.work(record)
            if record.offset == 13:
                AWAIT consumer.commit(upto=record)
                LEAVE
        AWAIT consumer.close()
        """,
        DONE,
        DONE,
    ),
    "commit all, raise": Shape(
        """
        WITH consumer:
            LOOP:
                case.work(record)
                if record.offset == 13:
                    AWAIT consumer.commit()
                    raise ValueError
        """,
        DONE,
        None,  # commits the rest of its batch: that is what the user says
    ),
    "each error is logged": Shape(
        """
        WITH consumer:
            LOOP:
                try:
                    case.handle(record)
                except ValueError:
                    case.work(record)
                if record.offset == 15:
                    LEAVE
        """,
        16,
    ),
    "log and loop again": Shape(  # a new loop asks for the next record: documented
        """
        WITH consumer:
            while True:
                try:
                    LOOP:
                        case.handle(record)
                        if record.offset == 15:
                            return
                except ValueError:
                    case.work_at(13)
        """,
        16,
        None,
    ),
    "a poll within the loop, raise": Shape(
        """
        WITH consumer:
            LOOP:
                case.work(record)
                if record.offset == 13:
                    more = AWAIT consumer.poll(10, 3)
                    case.handle_all(more)
        """,
        DONE,
        None,
    ),
    "another loop within the loop, raise": Shape(
        """
        WITH consumer:
            FOR record in consumer:
                case.work(record)
                if record.offset == 12:
                    FOR record in consumer:
                        case.handle(record)
        """,
        FAILS,
        None,
    ),
    "records of another loop's generator, break": Shape(
        """
        DEF records():
            FOR record in consumer:
                yield record
        others = records()
        FOR record in consumer:
            case.work(record)
            if record.offset == 12:
                case.receive(AWAIT case.next_of(others))
                break
        AWAIT consumer.close()
        """,
        FAILS,
        None,
    ),
    "no close at all": Shape(
        """
        LOOP:
            case.handle(record)
        """,
        BATCH,  # committed by the second poll
    ),
    "the last exit stack closes": Shape(
        """
        DEF run(stack):
            LOOP:
                case.handle(record)
        WITH case.exit_stack() as stack:
            AWAIT case.enter(stack, consumer)
            AWAIT run(stack)
        """,
        FAILS,
    ),
    "raise in a nested with": Shape(
        """
        WITH consumer:
            LOOP:
                with case.resource():
                    case.handle(record)
        """,
        FAILS,
    ),
}

LOOPS = {
    "for": (("FOR record in consumer:",), ()),
    "poll": (
        ("while True:", "    for record in AWAIT consumer.poll(1):"),
        ("    else:", "        continue", "    break"),
    ),
    "batches": (
        ("FOR records in consumer.batches():", "    for record in records:"),
        ("    else:", "        continue", "    break"),
    ),
}
"""The lines of LOOP before and behind its body, which stands within the last one before."""


def source_of(shape: Shape, way: str, *, is_async: bool) -> str:
    """Return a program as Python has it."""
    return _in_python(["DEF program(consumer, case):", *_expanded(shape, way)], is_async=is_async)


def _expanded(shape: Shape, way: str) -> list[str]:
    before, behind = LOOPS[way]
    lines: list[str] = []
    loops: list[tuple[int, int]] = []  # around this line: their indentation in the text, and here
    for line in [*dedent(shape.text).strip().splitlines(), ""]:
        words = line.strip()
        indent = len(line) - len(line.lstrip())
        while loops and indent <= loops[-1][0]:
            _, at = loops.pop()
            lines += [" " * at + each for each in behind]
        at = 4 + indent + 4 * len(loops) * (len(before) - 1)
        if words == "LOOP:":
            lines += [" " * at + each for each in before]
            loops.append((indent, at))
        else:
            lines.append(" " * at + words.replace("LEAVE", "break"))
    return lines


def _in_python(lines: list[str], *, is_async: bool) -> str:
    prefix = "async " if is_async else ""
    text = "\n".join(lines) + "\n"
    for word, plain in (("WITH", "with"), ("DEF", "def"), ("FOR", "for")):
        text = re.sub(rf"\b{word}\b", prefix + plain, text)
    return re.sub(r"\bAWAIT ", "await " if is_async else "", text)


def program_of(shape: Shape, way: str, *, is_async: bool) -> Callable[..., Any]:
    """Return a program as a function, or as one that returns a coroutine."""
    source = source_of(shape, way, is_async=is_async)
    name = f"<a program: {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {}
    exec(compile(source, name, "exec"), names)
    program: Callable[..., Any] = names["program"]
    return program
