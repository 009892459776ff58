"""A producer that cannot be made leaves nothing behind, whichever step of its making failed.

Each step fails where C libraries compress, in threads of their own, and where Python packages do.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_fast import Producer
from kafka_fast.net import control_thread, producer_core, producer_exit
from tests.net.producing import entries
from tests.waiting import eventually


def refuse(*_: object, **__: object) -> Any:
    raise OSError(24, "Too many open files")


class PumpThatCannotStart(producer_core.Pump):
    start = refuse


class ControlThatCannotStart(threading.Thread):
    def start(self) -> None:
        if self.name == "kf-control":
            refuse()
        super().start()


STEPS = {
    "ProducerControl": (producer_core, "ProducerControl", refuse),
    "Machine": (producer_core, "Machine", refuse),
    "Compressor": (producer_core, "Compressor", refuse),
    "the package": (producer_core, "compress", refuse),
    "the package's warning": (producer_core.warnings, "warn", refuse),
    "Handover": (producer_core, "Handover", refuse),
    "selector": (control_thread.selectors, "EpollSelector", refuse),
    "DataPlane": (producer_core, "DataPlane", refuse),
    "Pump": (producer_core, "Pump", refuse),
    "the pump's thread": (producer_core, "Pump", PumpThatCannotStart),
    "the control thread": (producer_core.threading, "Thread", ControlThatCannotStart),
}


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What waits for the garbage collector counts as left behind."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def cases() -> Iterator[object]:
    """Yield each step, and who compresses; those of one way are no steps of the other."""
    for step in STEPS:
        if step not in ("the package", "the package's warning", "Handover"):
            mark = pytest.mark.native_codec("lz4", "threads of their own compress")
            yield pytest.param(step, "native", marks=mark)
        if step != "Compressor":
            yield pytest.param(step, "package")


@pytest.mark.usefixtures("no_collector")
@pytest.mark.filterwarnings("ignore:this build has no library for lz4")
@pytest.mark.parametrize(("step", "served"), [*cases()])
def test_a_failed_step_takes_back_those_before_it(
    monkeypatch: pytest.MonkeyPatch, step: str, served: str
) -> None:
    monkeypatch.setattr(producer_core, "codecs_available", lambda: {"lz4": served})
    Producer(bootstrap_servers="127.0.0.1:1", compression_type="lz4").close()
    tasks, fds = entries("/proc/self/task"), entries("/proc/self/fd")
    cores = len(producer_exit._living)
    where, name, planted = STEPS[step]
    monkeypatch.setattr(where, name, planted)
    with pytest.raises(OSError, match="Too many open files"):
        Producer(bootstrap_servers="127.0.0.1:1", compression_type="lz4")
    monkeypatch.undo()
    eventually(lambda: entries("/proc/self/task") <= tasks, "the threads to be gone")
    assert entries("/proc/self/fd") <= fds
    assert len(producer_exit._living) == cores


@pytest.mark.usefixtures("no_collector")
def test_a_closed_producer_does_not_wait_for_the_collector() -> None:
    fds = entries("/proc/self/fd")
    Producer(bootstrap_servers="127.0.0.1:1", compression_type="lz4").close()
    assert entries("/proc/self/fd") <= fds
