"""The code that follows from the classes of the commands: what goes down."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from message_classes import (
    CORE,
    NOTE,
    SCALARS,
    SIDES,
    CStruct,
    Declared,
    Member,
    Side,
    fields_of,
    summary_of,
)


class Command(CStruct):
    """A kind of command."""

    @property
    def kind(self) -> str:
        """Its constant in C."""
        return f"KF_COMMAND_{self.snake.upper()}"

    @property
    def is_packed(self) -> bool:
        """Whether Python has it: a carrier packs it."""
        return all(member.pack for member in self.members)


# What outlives its command as one struct: the rest of the fields are in it.
AS_ONE = {
    "StartHeartbeats": Member(
        "kf_heartbeat *",
        "heartbeat",
        "command.heartbeat = heartbeat_of(message)",
        "kf_heartbeat_free(command->heartbeat)",
    ),
    "ProgramFetch": Member(
        "kf_session *",
        "session",
        "command.session = session_of(message)",
        "kf_session_free(command->session)",
    ),
}


# ---- reading the classes ----


def members_of(name: str, type_: str) -> list[Member]:
    """Return what a field becomes in C."""
    if type_ in SCALARS:
        return [Member(SCALARS[type_], name, f"command.{name} = message.{name}")]
    if type_ in ("bytes", "bytes | None"):
        lines = [
            f"command.{name}_size = len(message.{name})",
            f"command.{name} = copy_bytes(message.{name})",
        ]
        if type_ != "bytes":
            lines = [f"if message.{name} is not None:", *(f"    {line}" for line in lines)]
        return [
            Member("uint8_t *", name, "\n".join(lines), f"free(command->{name})"),
            Member("size_t", f"{name}_size", "pass"),
        ]
    if type_ == "QueueId":
        pack = f"command.queue = queues.queue(message.{name})"
        return [Member("kf_queue *", "queue", pack)]
    if type_ == "TopicName":
        pack = f"command.topic = (<TopicQueues>queues.topic(message.{name}, seed)).topic"
        return [Member("kf_topic *", "topic", pack)]
    if type_ == "StreamId":
        pack = f"command.stream = streams.stream(message.{name})\nkf_stream_ref(command.stream)"
        return [Member("kf_stream *", "stream", pack, "kf_stream_unref(command->stream)")]
    if type_ == "Outcome":
        return [Member("int", name, f"command.{name} = outcome_code(message.{name})")]
    if type_ == "BatchRow":
        row = f"message.{name}"
        return [
            Member("kf_queue *", "queue", f"command.queue = queues.queue({row}.queue_id)"),
            *(
                Member(SCALARS[width], part, f"command.{part} = {row}.{part}")
                for part, width in (
                    ("generation", "Int64"),
                    ("serial", "Int64"),
                    ("slice", "Int32"),
                )
            ),
        ]
    if type_ == "OwnedLink":
        return [Member("kf_link *", name)]
    raise SystemExit(f"a command has a field {name}: {type_}, which no rule brings to C")


def command_of(class_: ast.ClassDef) -> Command:
    """Return what a class says."""
    members = [
        member
        for name, type_ in fields_of(class_)
        for member in members_of(name, type_)
        if class_.name not in AS_ONE or member.name == "link_id"
    ]
    if class_.name == "StartHeartbeats":
        members = []  # the struct has the link's id
    if class_.name in AS_ONE:
        members.append(AS_ONE[class_.name])
    return Command(class_.name, summary_of(class_), members)


def commands_of(root: Path, side: Side) -> list[Command]:
    """Return the commands of one side, in the order of its module."""
    return [command_of(class_) for class_ in Declared(root / side.messages).of_union(side.union)]


# ---- C ----


def header(sides: dict[str, list[Command]]) -> Iterator[str]:
    """Yield the lines of kf_commands.h."""
    yield "/* What the control plane asks of the data plane: tagged unions, one for each side."
    yield f" *\n * {NOTE}\n */"
    yield "#ifndef KF_COMMANDS_H\n#define KF_COMMANDS_H\n"
    yield "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
    for name in ("heartbeat", "link", "queue", "session", "stream", "topic"):
        yield f"typedef struct kf_{name} kf_{name};"
    yield "\nenum kf_side {"
    yield "\n".join(f"    KF_SIDE_{name.upper()} = {i}," for i, name in enumerate(sides, 1))
    yield "};"
    for side, commands in sides.items():
        yield f"\n/* ---- of the {side} side ---- */\n"
        yield f"enum kf_{side}_kind {{"
        yield "\n".join(
            f"    {command.kind}{' = 1' if command is commands[0] else ''}," for command in commands
        )
        yield "};"
        for command in commands:
            yield f"\n/* {command.summary} */"
            yield f"typedef struct kf_{command.snake} {{"
            yield "\n".join(f"    {member.declared('bool')};" for member in command.members)
            yield f"}} kf_{command.snake};"
        yield f"\ntypedef struct kf_{side}_command {{"
        yield f"    enum kf_{side}_kind kind;\n    union {{"
        yield "\n".join(f"        kf_{command.snake} {command.snake};" for command in commands)
        yield f"    }};\n}} kf_{side}_command;"
    yield "\n/* ---- any of them ---- */\n"
    yield "typedef struct kf_command {\n    struct kf_command *next;\n    enum kf_side side;"
    yield "    union {"
    yield "\n".join(f"        kf_{side}_command {side};" for side in sides)
    yield "    };\n} kf_command;\n"
    yield "/* Free what a command still owns; handlers take out what they keep. */"
    yield "void kf_command_release(kf_command *command);\n\n#endif /* KF_COMMANDS_H */"


def source(sides: dict[str, list[Command]]) -> Iterator[str]:
    """Yield the lines of kf_commands.c."""
    yield f"/* {NOTE} */"
    yield '#include "kf_commands.h"\n#include "kf_fetch.h"\n\n#include <stdlib.h>'
    for side, commands in sides.items():
        yield f"\nstatic void release_{side}(kf_{side}_command *any) {{"
        yield "    switch (any->kind) {"
        plain = [command for command in commands if not command.frees]
        for command in commands:
            if command.frees:
                yield f"    case {command.kind}: {{"
                yield f"        kf_{command.snake} *command = &any->{command.snake};"
                for member in command.frees:
                    yield f"        if (command->{member.name} != NULL) {{"
                    yield f"            {member.free};\n        }}"
                yield "        return;\n    }"
        if plain:
            yield "\n".join(f"    case {command.kind}:" for command in plain)
            yield "        return;"
        yield "    }\n}"
    yield "\nvoid kf_command_release(kf_command *command) {\n    switch (command->side) {"
    for side in sides:
        yield f"    case KF_SIDE_{side.upper()}:"
        yield f"        release_{side}(&command->{side});\n        return;"
    yield "    }\n}"


# ---- Cython ----


def declarations(sides: dict[str, list[Command]]) -> Iterator[str]:
    """Yield the lines of commands.pxd."""
    yield '"""What the control plane asks of the data plane, as declared in kf_commands.h.'
    yield f'\n{NOTE}\n"""\n'
    yield "from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t\n"
    yield f"from {CORE}.structs cimport (\n    kf_heartbeat,\n    kf_link,\n    kf_queue,"
    yield "    kf_session,\n    kf_stream,\n    kf_topic,\n)\n\n"
    yield 'cdef extern from "kf_commands.h" nogil:\n    enum kf_side:'
    yield "\n".join(f"        KF_SIDE_{side.upper()}" for side in sides)
    for side, commands in sides.items():
        yield f"\n    enum kf_{side}_kind:"
        yield "\n".join(f"        {command.kind}" for command in commands)
        for command in commands:
            yield f"\n    ctypedef struct kf_{command.snake}:"
            for member in command.members:
                yield "        " + member.declared("bint").replace(" *", "* ")
        yield f"\n    ctypedef struct kf_{side}_command:\n        kf_{side}_kind kind"
        yield "\n".join(f"        kf_{command.snake} {command.snake}" for command in commands)
    yield "\n    ctypedef struct kf_command:\n        kf_command* next\n        kf_side side"
    yield "\n".join(f"        kf_{side}_command {side}" for side in sides)


def handlers(side: Side, commands: list[Command]) -> Iterator[str]:
    """Yield the lines of a side's _…_commands.pxd."""
    yield f'"""What carries out the commands of the {side.name} side.\n\n{NOTE}\n"""\n'
    yield f"from {CORE}._sender_state cimport sender_state\nfrom {CORE}.commands cimport *\n"
    for command in commands:
        yield f"\n# {command.summary}"
        yield f"cdef void on_{command.snake}(sender_state* state, kf_{command.snake}* command,"
        yield f"{'':{len('cdef void on_(') + len(command.snake)}}double now) noexcept nogil"


def dispatch(sides: dict[str, list[Command]]) -> Iterator[str]:
    """Yield the lines of _dispatch.pyx."""
    yield f'"""From a command to what carries it out, by side and by kind.\n\n{NOTE}\n"""\n'
    for home in SIDES:
        module = home.handlers.replace("/", ".")
        yield f"from {module} cimport ("
        yield "\n".join(f"    on_{command.snake}," for command in sides[home.name])
        yield ")"
    yield f"from {CORE}._sender_state cimport sender_state"
    yield f"from {CORE}.commands cimport *\nfrom {CORE}.state cimport *"
    for side, commands in sides.items():
        yield f"\n\ncdef void carry_out_{side}(sender_state* state, kf_command* any,"
        yield f"{'':{len('cdef void carry_out_(') + len(side)}}double now) noexcept nogil:"
        yield f"    cdef kf_{side}_command* command = &any.{side}"
        for command in commands:
            branch = "if" if command is commands[0] else "elif"
            yield f"    {branch} command.kind == {command.kind}:"
            yield f"        on_{command.snake}(state, &command.{command.snake}, now)"
        yield "    else:\n        kf_plane_refuse(state.plane, any, command.kind)"
    yield "\n\ncdef void carry_out(sender_state* state, kf_command* command,"
    yield "                    double now) noexcept nogil:"
    for i, side in enumerate(sides):
        yield f"    {'elif' if i else 'if'} command.side == KF_SIDE_{side.upper()}:"
        yield f"        carry_out_{side}(state, command, now)"
    yield "    else:\n        kf_plane_refuse(state.plane, command, 0)"
    yield "\n\ncdef void carry_out_commands(sender_state* state, double now) noexcept nogil:"
    yield "    cdef kf_command* command = kf_plane_take_commands(state.plane)"
    yield "    cdef kf_command* following\n    while command != NULL:"
    yield "        following = command.next\n        carry_out(state, command, now)"
    yield "        kf_command_free(command)\n        command = following"


def dispatch_header() -> Iterator[str]:
    """Yield the lines of _dispatch.pxd."""
    yield f'"""From a command to what carries it out.\n\n{NOTE}\n"""\n'
    yield f"from {CORE}._sender_state cimport sender_state\n\n"
    yield "# Carry out all commands that have come in, in order."
    yield "cdef void carry_out_commands(sender_state* state, double now) noexcept nogil"


def packing(side: Side, commands: list[Command]) -> Iterator[str]:
    """Yield the lines of a side's _…_carrier.pyx that pack its commands."""
    packed = [command for command in commands if command.is_packed]
    yield "\n# ---- commands ----\n\ncdef dict KINDS = {"
    yield "\n".join(f"    {side.module}.{command.name}: {command.kind}," for command in packed)
    yield "}"
    for command in packed:
        yield f"\n\ncdef int {command.snake}(kf_{command.snake}* command, object message,"
        yield f"{'':{len('cdef int (') + len(command.snake)}}{side.target}) except -1:"
        for member in command.members:
            if member.pack != "pass":
                yield "\n".join(f"    {line}" for line in member.pack.split("\n"))
        yield "    return 0"
    yield f"\n\ncdef int pack(kf_{side.name}_command* command, object message,"
    yield f"              {side.target}) except -1:"
    yield "    cdef int kind = KINDS[type(message)]"
    yield f"    command.kind = <kf_{side.name}_kind>kind"
    for command in packed:
        yield f"    {'if' if command is packed[0] else 'elif'} kind == {command.kind}:"
        yield f"        {command.snake}(&command.{command.snake}, message, {side.names})"
    yield "    return 0"
    yield f"\n\ndef carry_{side.name}(message, {side.target}):"
    yield f'    """{side.text}"""'
    yield f"    cdef kf_command* command = kf_command_new(KF_SIDE_{side.name.upper()})"
    yield "    try:"
    yield f"        pack(&command.{side.name}, message, {side.names})"
    yield "    except BaseException:\n        kf_command_free(command)\n        raise"
    yield f"    kf_plane_command({side.plane}, command)"
