"""Make, from the classes of commands and events, all code that only follows from them.

    control/messages.py       ─┐  kf_commands.[ch], kf_events.[ch]  kinds, structs, enums, freeing
    …/producer_messages.py    ─┼► commands.pxd, events.pxd          the same for Cython
    …/consumer_messages.py    ─┘  _dispatch.pyx                     kind ► `on_…`
                                  _…_commands.pxd                   what each side carries out
                                  _…_carrier.pyx                    message ► struct ► data plane
                                                                    data plane ► struct ► message

`setup.py` calls `write_all` before it builds. What is made is not committed, and a file that would
stay as it is keeps its age. A new command is a class in one of those modules, in the union of its
side, and the `on_…` that Cython then finds missing. A new event is a class, in the union of its
side, and the branch that mypy then finds missing. `control/message_fields.py` has the types of
fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import command_code
import event_code
from message_classes import CONTROL, CORE, NOTE, SIDES, Side

__all__ = ["SIDES", "all_files", "commands_of", "reports_of", "write_all"]

commands_of = command_code.commands_of
reports_of = event_code.reports_of


def carrier(
    side: Side, commands: list[command_code.Command], reports: event_code.Reports
) -> Iterator[str]:
    """Yield the lines of a side's _…_carrier.pyx."""
    yield f'"""Packs the commands of the {side.name} side, and makes objects of its events.\n'
    yield f'{NOTE}\n"""\n'
    if "uint64_t" in side.target:
        yield "from libc.stdint cimport uint64_t\n"
    read = [*event_code.reading(reports)]
    parts = [name for name in ("bytes_of", "numbers_of") if f"{name}(" in "".join(read)]
    yield f"from {CORE}._events cimport {', '.join(['PlaneEvent', *parts])}"
    yield f"{side.cimports}\nfrom {CORE}.commands cimport *\nfrom {CORE}.state cimport *"
    if side.name == "fetch":
        yield "from kafka_fast.dataplane.fetch.fetch cimport *"
    yield f"\nfrom {side.package} import {side.module}"
    yield from event_code.imports(side)
    yield from command_code.packing(side, commands)
    yield from read


def all_files(root: Path) -> dict[str, str]:
    """Return the text of each file that is made, by its path in the tree."""
    commands = {side.name: commands_of(root, side) for side in SIDES}
    reports = [reports_of(root, side) for side in SIDES]
    lines: dict[str, Callable[[], Iterator[str]]] = {
        "src_c/kf_commands.h": lambda: command_code.header(commands),
        "src_c/kf_commands.c": lambda: command_code.source(commands),
        "src_c/kf_events.h": lambda: event_code.header(reports),
        "src_c/kf_events.c": lambda: event_code.source(reports),
        "kafka_fast/dataplane/core/commands.pxd": lambda: command_code.declarations(commands),
        "kafka_fast/dataplane/core/events.pxd": lambda: event_code.declarations(reports),
        "kafka_fast/dataplane/core/_dispatch.pyx": lambda: command_code.dispatch(commands),
        "kafka_fast/dataplane/core/_dispatch.pxd": command_code.dispatch_header,
    }
    texts = {path: "\n".join(make()) for path, make in lines.items()}
    for side, own in zip(SIDES, reports, strict=True):
        handlers = command_code.handlers(side, commands[side.name])
        texts[f"{side.handlers}.pxd"] = "\n".join(handlers)
        texts[f"{side.carrier}.pyx"] = "\n".join(carrier(side, commands[side.name], own))
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
    write_all(Path(__file__).resolve().parents[2])
