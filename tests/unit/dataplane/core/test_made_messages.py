"""What a build makes from the classes of the messages, and what becomes of an unknown one."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kafka_fast.config import producer_settings
from kafka_fast.consumer._fetch_carrier import carry_fetch, read_fetch
from kafka_fast.control import messages as transport
from kafka_fast.control.consumer import consumer_messages as fetch
from kafka_fast.control.producer import producer_messages as produce
from kafka_fast.control.producer.producer_control import ProducerControl
from kafka_fast.errors import InternalError
from kafka_fast.net._transport_carrier import carry_transport
from kafka_fast.producer._produce_carrier import carry_produce, read_produce
from tests.unit.dataplane.fetch.fetch_rig import FetchRig
from tests.unit.dataplane.rig import ProduceRig

ROOT = Path(__file__).parents[4]
MAKER = runpy.run_path(str(ROOT / "src_c" / "make_messages"))
UNIONS = [
    (transport, "TransportCommand"),
    (produce, "ProduceCommand"),
    (fetch, "FetchCommand"),
]
REPORTS = [
    (transport, ["TransportEvent", "DumpEvent"]),
    (produce, ["ProduceEvent"]),
    (fetch, ["FetchEvent"]),
]


def classes(module: ModuleType, union: str) -> list[str]:
    return [class_.__name__ for class_ in typing.get_args(getattr(module, union))]


def made(side: int) -> list[Any]:
    """Return the commands of a side as the maker reads them."""
    commands: list[Any] = MAKER["commands_of"](ROOT, MAKER["SIDES"][side])
    return commands


def reports(side: int) -> Any:
    """Return what the maker reads of the events of a side."""
    return MAKER["reports_of"](ROOT, MAKER["SIDES"][side])


def test_what_was_made_is_current() -> None:
    for name, text in MAKER["all_files"](ROOT).items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, f"{name}: run make build"


def test_what_is_made_is_not_in_git() -> None:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no checkout, or no git")
    command = ["git", "-c", "safe.directory=*", "ls-files", *MAKER["all_files"](ROOT)]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout == b""


@pytest.mark.parametrize("side", range(3))
def test_each_command_of_a_union_is_made(side: int) -> None:
    assert {command.name for command in made(side)} == {*classes(*UNIONS[side])}


@pytest.mark.parametrize("side", range(3))
def test_each_command_has_a_handler(side: int) -> None:
    handlers = (ROOT / f"{MAKER['SIDES'][side].handlers}.pyx").read_text(encoding="utf-8")
    for command in made(side):
        assert f"cdef void on_{command.snake}(" in handlers


@pytest.mark.parametrize("side", range(3))
def test_each_event_of_a_union_is_made(side: int) -> None:
    module, unions = REPORTS[side]
    declared = {name for union in unions for name in classes(module, union)}
    assert {event.name for event in reports(side).events} == declared


@pytest.mark.parametrize("side", range(3))
def test_the_enums_in_c_have_the_numbers_of_those_in_python(side: int) -> None:
    module, _ = REPORTS[side]
    for made_enum in reports(side).enums:
        class_ = getattr(module, made_enum.name)
        assert [(name, int(value)) for name, value in made_enum.values] == [
            (member.name, member.value) for member in class_
        ]


COMMAND = 'class MuteQueue(Value):\n    """Send nothing."""\n\n    {field}\n\n\n'
EVENT = 'class QueueMuted(Value):\n    """Nothing is sent."""\n\n    {field}\n\n\n'


def plant(tree: Path, text: str, union: str) -> dict[str, str]:
    """Return what is made in a tree whose produce side has one more message.

    Args:
        tree: an empty folder.
        text: of the message's class.
        union: that it is a member of, up to the other members.
    """
    for side in MAKER["SIDES"]:
        (tree / side.messages).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / side.messages, tree / side.messages)
    home = tree / MAKER["SIDES"][1].messages
    source = home.read_text(encoding="utf-8")
    assert union in source
    name = text.removeprefix("class ").partition("(")[0]
    source = source.replace(union, f"{text}{union}    {name} |")
    home.write_text(source, encoding="utf-8")
    files: dict[str, str] = MAKER["all_files"](tree)
    return files


def plant_command(tree: Path, field: str) -> dict[str, str]:
    return plant(tree, COMMAND.format(field=field), "ProduceCommand: TypeAlias = (\n")


def plant_event(tree: Path, field: str) -> dict[str, str]:
    return plant(tree, EVENT.format(field=field), "ProduceEvent: TypeAlias = ")


def test_a_new_command_needs_its_class_and_its_handler_only(tmp_path: Path) -> None:
    files = plant_command(tmp_path, "queue_id: QueueId")
    expected = {
        "src_c/kf_commands.h": "    KF_COMMAND_MUTE_QUEUE,",
        "kafka_fast/dataplane/core/commands.pxd": "    ctypedef struct kf_mute_queue:",
        "kafka_fast/dataplane/core/_dispatch.pyx": "on_mute_queue(state, &command.mute_queue",
        "kafka_fast/dataplane/produce/_produce_commands.pxd": "cdef void on_mute_queue(",
        "kafka_fast/producer/_produce_carrier.pyx": "messages.MuteQueue: KF_COMMAND_MUTE_QUEUE,",
    }
    for name, line in expected.items():
        assert line in files[name]


def test_a_new_event_needs_its_class_and_its_handler_only(tmp_path: Path) -> None:
    files = plant_event(tmp_path, "batches: tuple[BatchRow, ...]")
    expected = {
        "src_c/kf_events.h": "    KF_EVENT_QUEUE_MUTED,",
        "src_c/kf_events.c": "free(event->batches.items);",
        "kafka_fast/dataplane/core/events.pxd": "    ctypedef struct kf_queue_muted:",
        "kafka_fast/producer/_produce_carrier.pyx": "return producer_messages.QueueMuted(",
    }
    for name, line in expected.items():
        assert line in files[name]


def test_a_field_that_has_no_form_in_c_stops_the_build(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="times: list"):
        plant_command(tmp_path / "command", "times: list[float]")
    with pytest.raises(SystemExit, match="times: list"):
        plant_event(tmp_path / "event", "times: list[float]")


def test_a_command_of_another_side_is_not_carried() -> None:
    rig, fetching = ProduceRig(), FetchRig()
    thaw: Any = produce.ThawQueue(0, 1, 0.0, False)
    stop: Any = fetch.StopStream(0, 0)
    with pytest.raises(KeyError):
        carry_transport(thaw, rig.plane)
    with pytest.raises(KeyError):
        carry_produce(stop, rig.queues, 0)
    with pytest.raises(KeyError):
        carry_fetch(thaw, fetching.streams)


def test_a_field_that_does_not_fit_leaves_no_command() -> None:
    rig = ProduceRig()
    with pytest.raises(OverflowError):
        rig.carry(produce.SetProducerId(1 << 40, 1 << 20))
    rig.send()
    assert len(rig.requests()) == 1


def test_an_unknown_command_ends_the_client() -> None:
    settings = producer_settings({"bootstrap.servers": "one:9092"})
    control = ProducerControl(settings, "test", lambda: 0.5, lambda: 0)
    with pytest.raises(InternalError, match="no command 99 of its side 2"):
        control.handle_event(transport.UnknownCommand(2, 99), 0.0)


def test_an_event_of_another_side_ends_the_client() -> None:
    rig = ProduceRig()
    rig.route(0, 0)
    rig.accumulator.send("t", b"1", partition=0)  # over no link, so a route is wanted
    rig.turner.turn()
    (event,) = rig.plane.take_events()
    with pytest.raises(InternalError, match="an event of the unknown kind"):
        read_fetch(event)
    assert read_produce(event) == produce.RouteWanted((0,))


PLANES = (
    *("batch", "commands", "event", "events", "fetch", "frame", "link", "plane", "pool"),
    *("producer", "queue", "split"),
)
"""The sources in C that the planes share, as setup.py lists them."""

PROGRAM = """
#include "kf_plane.h"
#include <stdio.h>

static void wake(void *context) {
    (void)context;
}

int main(void) {
    static kf_plane plane;
    const kf_env env = {.wake_control = wake, .wake_data = wake};
    kf_plane_init(&plane, &env);
    kf_command *command = kf_command_new(KF_SIDE_FETCH);
    kf_plane_refuse(&plane, command, 99);
    kf_event *event = kf_plane_take_events(&plane);
    printf("%d %d %d", event->kind == KF_EVENT_UNKNOWN_COMMAND, event->unknown_command.side,
           event->unknown_command.kind);
    kf_command_free(command);
    kf_event_free(event);
    return 0;
}
"""


@pytest.mark.parametrize("debug", [True, False])
def test_the_data_plane_refuses_an_unknown_command(debug: bool, tmp_path: Path) -> None:
    source, program = tmp_path / "unknown.c", tmp_path / "unknown"
    source.write_text(PROGRAM, encoding="utf-8")
    shared = [str(ROOT / "src_c" / f"kf_{name}.c") for name in PLANES]
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Wswitch-enum", "-Werror", "-pthread"]
    if debug:
        flags.append("-DKF_DEBUG")
    command = ["gcc", *flags, f"-I{ROOT / 'src_c'}", str(source), *shared, "-o", str(program)]
    subprocess.run(command, check=True)
    run = subprocess.run([str(program)], capture_output=True, check=False)
    if debug:
        assert run.returncode == -6  # SIGABRT
    else:
        assert (run.returncode, run.stdout) == (0, b"1 3 99")
