"""The code that follows from the classes of the events: what comes up.

An event is a Value of named scalars, `bytes`, enums and rows. A row is a NamedTuple of scalars.
An `enum.IntEnum` is an enum in C as well, with the same numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from message_classes import (
    NOTE,
    SCALARS,
    SIDES,
    CStruct,
    Declared,
    Member,
    Side,
    fields_of,
    snake,
    summary_of,
)

SHORT = {"CloseReason": "close", "Awaited": "request"}
"""What an enum of another name is called in C."""

ADDED = "AddedText"
"""The type of a field that C does not have."""


@dataclass(frozen=True)
class CEnum:
    """An enum that both planes know."""

    name: str
    """As Python has it."""
    summary: str
    values: list[tuple[str, str]]

    @property
    def prefix(self) -> str:
        """What its constants begin with, in lower case."""
        return f"kf_{SHORT.get(self.name, snake(self.name))}"

    @property
    def constants(self) -> list[tuple[str, str]]:
        """Name and value of each constant in C."""
        return [(f"{self.prefix.upper()}_{name}", value) for name, value in self.values]


class Row(CStruct):
    """What an event may have many of."""


class Event(CStruct):
    """A kind of event."""

    @property
    def kind(self) -> str:
        """Its constant in C."""
        return f"KF_EVENT_{self.snake.upper()}"


@dataclass(frozen=True)
class Reports:
    """What one side reports."""

    side: Side
    enums: list[CEnum]
    rows: list[Row]
    events: list[Event]

    def has_many(self, row: Row) -> bool:
        """Return whether some event has any number of such rows."""
        types = [member.type for event in self.events for member in event.members]
        return f"kf_{row.snake}s" in types


# ---- reading the classes ----


def scalar(name: str, type_: str, enums: list[CEnum], module: str) -> Member | None:
    """Return what a field of one number becomes; None: it is no such field."""
    if type_ in SCALARS:
        read = f"<bint>event.{name}" if type_ == "bool" else f"event.{name}"
        return Member(SCALARS[type_], name, read=read)
    if type_ in [enum.name for enum in enums]:
        return Member("int32_t", name, read=f"{module}.{type_}(event.{name})")
    return None


def member_of(name: str, type_: str, reports: Reports) -> Member:
    """Return what a field of an event becomes in C."""
    number = scalar(name, type_, reports.enums, reports.side.module)
    if number is not None:
        return number
    if type_ in ("bytes", "bytes | None"):
        read = f"bytes_of(&event.{name})" + (' or b""' if type_ == "bytes" else "")
        return Member("kf_bytes", name, free=f"free(event->{name}.data)", read=read)
    if type_ == "tuple[Int64, ...]":
        free = f"free(event->{name}.items)"
        return Member("kf_numbers", name, free=free, read=f"numbers_of(&event.{name})")
    for row in reports.rows:
        if type_ == row.name:
            return Member(f"kf_{row.snake}", name, read=f"read_{row.snake}(&event.{name})")
        if type_ == f"tuple[{row.name}, ...]":
            read = f"read_{row.snake}s(&event.{name})"
            return Member(f"kf_{row.snake}s", name, free=f"free(event->{name}.items)", read=read)
    raise SystemExit(f"an event has a field {name}: {type_}, which no rule brings from C")


def enum_of(class_: ast.ClassDef) -> CEnum:
    """Return what an IntEnum says."""
    values = [
        (ast.unparse(line.targets[0]), ast.unparse(line.value))
        for line in class_.body
        if isinstance(line, ast.Assign)
    ]
    return CEnum(class_.name, summary_of(class_), values)


def row_of(class_: ast.ClassDef, enums: list[CEnum], module: str) -> Row:
    """Return what a NamedTuple says."""
    members = []
    for name, type_ in fields_of(class_):
        member = scalar(name, type_, enums, module)
        if member is None:
            raise SystemExit(f"a row has a field {name}: {type_}, which is no number")
        members.append(member)
    return Row(class_.name, summary_of(class_), members)


def reports_of(root: Path, side: Side) -> Reports:
    """Return what one side reports, in the order of its module."""
    declared = Declared(root / side.messages)
    enums = [enum_of(class_) for class_ in declared.derived_from("enum.IntEnum")]
    rows = [row_of(class_, enums, side.module) for class_ in declared.derived_from("NamedTuple")]
    reports = Reports(side, enums, rows, [])
    for union in side.reports:
        for class_ in declared.of_union(union):
            fields = [field for field in fields_of(class_) if field[1] != ADDED]
            members = [member_of(name, type_, reports) for name, type_ in fields]
            reports.events.append(Event(class_.name, summary_of(class_), members))
    return reports


# ---- C ----


def header(sides: list[Reports]) -> Iterator[str]:
    """Yield the lines of kf_events.h."""
    yield "/* What the data plane reports, as a tagged union; the classes say what the fields mean."
    yield f" *\n * {NOTE}\n */"
    yield "#ifndef KF_EVENTS_H\n#define KF_EVENTS_H\n"
    yield "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
    yield "typedef struct kf_bytes {\n    uint8_t *data; /* NULL: none, or no memory for them */"
    yield "    size_t size;\n} kf_bytes;\n"
    yield "typedef struct kf_numbers {\n    int64_t *items;\n    int count, capacity;"
    yield "} kf_numbers;"
    for reports in sides:
        for enum in reports.enums:
            yield f"\n/* {enum.summary} */\nenum {enum.prefix}_kind {{"
            yield "\n".join(f"    {name} = {value}," for name, value in enum.constants)
            yield "};"
        for row in reports.rows:
            yield f"\n/* {row.summary} */\ntypedef struct kf_{row.snake} {{"
            yield "\n".join(f"    {member.declared('bool')};" for member in row.members)
            yield f"}} kf_{row.snake};"
            if not reports.has_many(row):
                continue
            yield f"\ntypedef struct kf_{row.snake}s {{"
            yield f"    kf_{row.snake} *items;\n    int count, capacity;\n}} kf_{row.snake}s;\n"
            yield "/* Append a blank one, for the caller to fill in. */"
            yield f"kf_{row.snake} *kf_append_{row.snake}(kf_{row.snake}s *rows);"
        for event in reports.events:
            yield f"\n/* {event.summary} */\ntypedef struct kf_{event.snake} {{"
            yield "\n".join(f"    {member.declared('bool')};" for member in event.members)
            yield f"}} kf_{event.snake};"
    events = [event for reports in sides for event in reports.events]
    yield "\nenum kf_event_kind {"
    yield "\n".join(f"    {event.kind}{' = 1' if event is events[0] else ''}," for event in events)
    yield "};\n"
    yield "typedef struct kf_event {\n    struct kf_event *next;\n    enum kf_event_kind kind;"
    yield "    union {"
    yield "\n".join(f"        kf_{event.snake} {event.snake};" for event in events)
    yield "    };\n} kf_event;\n"
    yield "/* Free what an event owns. */\nvoid kf_event_release(kf_event *event);"
    yield "\n#endif /* KF_EVENTS_H */"


def source(sides: list[Reports]) -> Iterator[str]:
    """Yield the lines of kf_events.c."""
    yield f"/* {NOTE} */"
    yield '#include "kf_events.h"\n#include "kf_event.h"\n\n#include <stdlib.h>'
    for reports in sides:
        for row in filter(reports.has_many, reports.rows):
            yield f"\nkf_{row.snake} *kf_append_{row.snake}(kf_{row.snake}s *rows) {{"
            yield "    size_t size = sizeof *rows->items;"
            yield "    rows->items = kf_grown(rows->items, rows->count, &rows->capacity, size);"
            yield f"    kf_{row.snake} *row = &rows->items[rows->count++];"
            yield f"    *row = (kf_{row.snake}){{0}};\n    return row;\n}}"
    yield "\nvoid kf_event_release(kf_event *any) {\n    switch (any->kind) {"
    events = [event for reports in sides for event in reports.events]
    for event in events:
        if event.frees:
            yield f"    case {event.kind}: {{"
            yield f"        kf_{event.snake} *event = &any->{event.snake};"
            yield "\n".join(f"        {member.free};" for member in event.frees)
            yield "        return;\n    }"
    yield "\n".join(f"    case {event.kind}:" for event in events if not event.frees)
    yield "        return;\n    }\n}"


# ---- Cython ----


def declarations(sides: list[Reports]) -> Iterator[str]:
    """Yield the lines of events.pxd."""
    yield f'"""What the data plane reports, as declared in kf_events.h.\n\n{NOTE}\n"""\n'
    yield "from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t\n\n"
    yield 'cdef extern from "kf_events.h" nogil:'
    yield "    ctypedef struct kf_bytes:\n        uint8_t* data\n        size_t size\n"
    yield "    ctypedef struct kf_numbers:\n        int64_t* items\n        int count"
    for reports in sides:
        for enum in reports.enums:
            yield f"\n    enum {enum.prefix}_kind:"
            yield "\n".join(f"        {name}" for name, _ in enum.constants)
        for row in reports.rows:
            yield f"\n    ctypedef struct kf_{row.snake}:"
            yield "\n".join(f"        {member.declared('bint')}" for member in row.members)
            if not reports.has_many(row):
                continue
            yield f"\n    ctypedef struct kf_{row.snake}s:\n        kf_{row.snake}* items"
            yield f"        int count\n\n    kf_{row.snake}* kf_append_{row.snake}("
            yield f"        kf_{row.snake}s* rows)"
        for event in reports.events:
            yield f"\n    ctypedef struct kf_{event.snake}:"
            yield "\n".join(f"        {member.declared('bint')}" for member in event.members)
    events = [event for reports in sides for event in reports.events]
    yield "\n    enum kf_event_kind:"
    yield "\n".join(f"        {event.kind}" for event in events)
    yield "\n    ctypedef struct kf_event:\n        kf_event* next\n        kf_event_kind kind"
    yield "\n".join(f"        kf_{event.snake} {event.snake}" for event in events)


def reading(reports: Reports) -> Iterator[str]:
    """Yield the lines of a side's _…_carrier.pyx that make objects of its events."""
    side = reports.side
    yield "\n\n# ---- events ----"
    for row in reports.rows:
        yield f"\ncdef object read_{row.snake}(const kf_{row.snake}* event):"
        yield f"    return {side.module}.{row.name}("
        yield "\n".join(f"        {member.read}," for member in row.members)
        yield "    )\n"
        if not reports.has_many(row):
            continue
        yield f"\ncdef tuple read_{row.snake}s(const kf_{row.snake}s* rows):\n    cdef int i"
        yield f"    return tuple([read_{row.snake}(&rows.items[i]) for i in range(rows.count)])\n"
    for event in reports.events:
        yield f"\ncdef object read_{event.snake}(const kf_{event.snake}* event):"
        yield f"    return {side.module}.{event.name}("
        yield "\n".join(f"        {member.read}," for member in event.members)
        yield "    )\n"
    yield f"\ndef read_{side.name}(PlaneEvent carried not None):"
    yield '    """Return the object of an event of this side, or of the transport."""'
    yield "    cdef const kf_event* event = carried.event"
    for event in reports.events:
        yield f"    if event.kind == {event.kind}:"
        yield f"        return read_{event.snake}(&event.{event.snake})"
    if side is SIDES[0]:
        yield "    raise InternalError("
        yield '        f"the data plane reports an event of the unknown kind {event.kind}")'
    else:
        yield f"    return read_{SIDES[0].name}(carried)"


def imports(side: Side) -> Iterator[str]:
    """Yield the lines that import what `reading` needs."""
    if side is SIDES[0]:
        yield "from kafka_fast.errors import InternalError"
    else:
        home = SIDES[0].carrier.replace("/", ".")
        yield f"from {home} import read_{SIDES[0].name}"
