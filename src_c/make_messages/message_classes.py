"""What the makers read: the classes of the commands and events, as syntax trees.

The package cannot be imported before it is built, so nothing of it is imported here.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

NOTE = "Made by src_c/make_messages from the classes of the messages; not committed."
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
class Side:
    """One side of the data plane."""

    name: str
    union: str
    """The union of its commands, in `messages`."""
    reports: tuple[str, ...]
    """The unions of its events, there too."""
    messages: str
    handlers: str
    """The module that carries out its commands."""
    carrier: str
    """The module that packs its commands, and makes objects of its events."""
    cimports: str
    """What packing needs, as lines of Cython."""
    target: str
    """What packing takes beside the message."""
    names: str
    """The same as arguments."""
    plane: str
    """The `kf_plane` that the target leads to."""
    text: str
    """What the function that packs does, for its docstring."""

    @property
    def package(self) -> str:
        """The package of the module of its messages."""
        return self.messages.rpartition("/")[0].replace("/", ".")

    @property
    def module(self) -> str:
        """The name of that module."""
        return Path(self.messages).stem


SIDES = [
    Side(
        "transport",
        "TransportCommand",
        ("TransportEvent", "DumpEvent"),
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
        ("ProduceEvent",),
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
        ("FetchEvent",),
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


@dataclass(frozen=True)
class Member:
    """A member of a struct."""

    type: str
    name: str
    pack: str = ""
    """Command: what fills it, as Cython; `command` is the struct and `message` the object."""
    free: str = ""
    """What frees it, as C; `command` or `event` is the struct."""
    read: str = ""
    """Event: what Python gets of it, as Cython; `event` is the struct."""

    def declared(self, boolean: str) -> str:
        """Return the declaration as C has it, or with Cython's `bint`."""
        type_ = boolean if self.type == "bool" else self.type
        return f"{type_}{'' if type_.endswith('*') else ' '}{self.name}"


@dataclass(frozen=True)
class CStruct:
    """What a class becomes in C."""

    name: str
    """As Python has it."""
    summary: str
    members: list[Member]

    @property
    def snake(self) -> str:
        """Its name in C."""
        return snake(self.name)

    @property
    def frees(self) -> list[Member]:
        """The members that it owns."""
        return [member for member in self.members if member.free]


class Declared:
    """What one module of messages declares."""

    def __init__(self, path: Path) -> None:
        """Read the module."""
        self.path = path
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        """By name, in their order."""
        self._unions = {
            ast.unparse(node.target): node.value
            for node in tree.body
            if isinstance(node, ast.AnnAssign) and node.value is not None
        }

    def of_union(self, union: str) -> list[ast.ClassDef]:
        """Return the classes of a union, in the order in which they stand in the module."""
        if union not in self._unions:
            raise SystemExit(f"{self.path} has no {union}")
        names = {name.id for name in ast.walk(self._unions[union]) if isinstance(name, ast.Name)}
        if names - {*self.classes}:
            raise SystemExit(f"{self.path}: {union} has members that are no classes there")
        return [class_ for name, class_ in self.classes.items() if name in names]

    def derived_from(self, base: str) -> list[ast.ClassDef]:
        """Return the classes with this base, in their order."""
        return [
            class_
            for class_ in self.classes.values()
            if base in [ast.unparse(node) for node in class_.bases]
        ]


def fields_of(class_: ast.ClassDef) -> list[tuple[str, str]]:
    """Return name and type of each field of a class."""
    return [
        (line.target.id, ast.unparse(line.annotation))
        for line in class_.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    ]


def summary_of(class_: ast.ClassDef) -> str:
    """Return the first line of a docstring."""
    return (ast.get_docstring(class_) or "").partition("\n")[0]


def snake(name: str) -> str:
    """Return the name of a class as C has it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
