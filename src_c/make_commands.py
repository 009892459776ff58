"""Make, from the classes of the commands, all code that only follows from them.

    control/messages.py       ─┐  kf_commands.h, kf_commands.c   kinds, structs, freeing
    …/producer_messages.py    ─┼► commands.pxd                   the same for Cython
    …/consumer_messages.py    ─┘  _dispatch.pyx                  kind ► `on_…`
                                  _…_commands.pxd                what each side carries out
                                  _…_carrier.pyx                 message ► struct

`setup.py` calls `write_all` before it builds. What is made is not committed, and a file that would
stay as it is keeps its age. This reads syntax trees, because the package cannot be imported yet.
A new command is a class in one of those modules (`control/command_fields.py` has the types of its
fields), and the `on_…` that Cython then finds missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

NOTE = "Made by src_c/make_commands.py from the classes of the commands; not committed."
CONTROL = "kafka_fast/control"
CORE = "kafka_fast.dataplane.core"

SCALARS = {
    "Int16": "int16_t",
    "Int32": "int32_t",
    "Int64": "int64_t",
    "Size": "size_t",
    "float": "double",
    "bool": "bool",
}


@dataclass(frozen=True)
class Member:
    """A member of a command's struct."""

    type: str
    name: str
    pack: str = ""
    """What fills it, as Cython; `command` is the struct and `message` the Python object."""
    free: str = ""
    """What frees it, as C; `command` is the struct."""

    def declared(self, boolean: str) -> str:
        """Return the declaration as C has it, or with Cython's `bint`."""
        type_ = boolean if self.type == "bool" else self.type
        return f"{type_}{'' if type_.endswith('*') else ' '}{self.name}"


@dataclass(frozen=True)
class Command:
    """A kind of command."""

    name: str
    summary: str
    members: list[Member]

    @property
    def snake(self) -> str:
        """Its name in C."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()

    @property
    def kind(self) -> str:
        """Its constant in C."""
        return f"KF_COMMAND_{self.snake.upper()}"

    @property
    def is_packed(self) -> bool:
        """Whether Python has it: a carrier packs it."""
        return all(member.pack for member in self.members)

    @property
    def frees(self) -> list[Member]:
        """The members that it owns."""
        return [member for member in self.members if member.free]


@dataclass(frozen=True)
class Side:
    """One side of the data plane."""

    name: str
    union: str
    """The union of its commands, in `messages`."""
    messages: str
    handlers: str
    """The module that carries out its commands."""
    carrier: str
    """The module that packs them."""
    cimports: str
    """What the carrier needs, as lines of Cython."""
    target: str
    """The carrier's parameters beside the message."""
    names: str
    """The same as arguments."""
    plane: str
    """The `kf_plane` that the target leads to."""
    text: str
    """What the carrier's function does, for its docstring."""


SIDES = [
    Side(
        "transport",
        "TransportCommand",
        f"{CONTROL}/messages.py",
        "kafka_fast/dataplane/core/_transport_commands",
        "kafka_fast/net/_transport_carrier",
        f"from {CORE}._plane cimport DataPlane, copy_bytes, heartbeat_of",
        "DataPlane plane",
        "plane",
        "plane.plane",
        "Give the data plane a command of its transport.",
    ),
    Side(
        "produce",
        "ProduceCommand",
        f"{CONTROL}/producer/producer_messages.py",
        "kafka_fast/dataplane/produce/_produce_commands",
        "kafka_fast/producer/_produce_carrier",
        f"from {CORE}._plane cimport copy_bytes\n"
        "from kafka_fast.dataplane.produce._queues cimport Queues, TopicQueues, outcome_code",
        "Queues queues, uint64_t seed",
        "queues, seed",
        "queues.producer.plane",
        "Give the data plane a command of its produce side; `seed`: random bits for a new topic.",
    ),
    Side(
        "fetch",
        "FetchCommand",
        f"{CONTROL}/consumer/consumer_messages.py",
        "kafka_fast/dataplane/fetch/_fetch_commands",
        "kafka_fast/consumer/_fetch_carrier",
        f"from {CORE}._plane cimport copy_bytes\n"
        "from kafka_fast.dataplane.fetch._streams cimport Streams, session_of",
        "Streams streams",
        "streams",
        "streams.plane.plane",
        "Give the data plane a command of its fetch side.",
    ),
]

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


def command_of(node: ast.ClassDef) -> Command:
    """Return what a class says."""
    summary = (ast.get_docstring(node) or "").partition("\n")[0]
    members = [
        member
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        for member in members_of(line.target.id, ast.unparse(line.annotation))
        if node.name not in AS_ONE or member.name == "link_id"
    ]
    if node.name == "StartHeartbeats":
        members = []  # the struct has the link's id
    if node.name in AS_ONE:
        members.append(AS_ONE[node.name])
    return Command(node.name, summary, members)


def commands_of(root: Path, side: Side) -> list[Command]:
    """Return the commands of one side, in the order of its union."""
    tree = ast.parse((root / side.messages).read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == side.union:
            assert node.value is not None
            names = [name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)]
            return [command_of(classes[name]) for name in sorted(names, key=[*classes].index)]
    raise SystemExit(f"{side.messages} has no {side.union}")


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


def carrier(side: Side, commands: list[Command]) -> Iterator[str]:
    """Yield the lines of a side's _…_carrier.pyx."""
    packed = [command for command in commands if command.is_packed]
    yield f'"""Packs the commands of the {side.name} side.\n\n{NOTE}\n"""\n'
    yield "from libc.stdint cimport uint64_t\n" if "uint64_t" in side.target else ""
    yield f"{side.cimports}\nfrom {CORE}.commands cimport *\nfrom {CORE}.state cimport *"
    if side.name == "fetch":
        yield "from kafka_fast.dataplane.fetch.fetch cimport *"
    package, _, module = side.messages.removesuffix(".py").replace("/", ".").rpartition(".")
    yield f"\nfrom {package} import {module}\n"
    yield "cdef dict KINDS = {"
    yield "\n".join(f"    {module}.{command.name}: {command.kind}," for command in packed)
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


# ---- all of it ----


def all_files(root: Path) -> dict[str, str]:
    """Return the text of each file that is made, by its path in the tree."""
    sides = {side.name: commands_of(root, side) for side in SIDES}
    lines: dict[str, Callable[[], Iterator[str]]] = {
        "src_c/kf_commands.h": lambda: header(sides),
        "src_c/kf_commands.c": lambda: source(sides),
        "kafka_fast/dataplane/core/commands.pxd": lambda: declarations(sides),
        "kafka_fast/dataplane/core/_dispatch.pyx": lambda: dispatch(sides),
        "kafka_fast/dataplane/core/_dispatch.pxd": dispatch_header,
    }
    texts = {path: "\n".join(make()) for path, make in lines.items()}
    for side in SIDES:
        texts[f"{side.handlers}.pxd"] = "\n".join(handlers(side, sides[side.name]))
        texts[f"{side.carrier}.pyx"] = "\n".join(carrier(side, sides[side.name]))
    return {path: f"{text.strip()}\n" for path, text in texts.items()}


def write_all(root: Path) -> None:
    """Write each file that would change; nothing in a tree that has no control plane."""
    if not (root / CONTROL).is_dir():
        return  # the tests of setup.py build one small extension
    for name, text in all_files(root).items():
        path = root / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_all(Path(__file__).resolve().parent.parent)
