"""A client that cannot be made leaves nothing behind, whichever step of its making failed.

Each step fails where C libraries compress, in threads of their own, and where Python packages do.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import ConfigError, Consumer, Producer
from kafka_fast.consumer import consumer_core
from kafka_fast.net import package_compressor, planes, threaded_host
from kafka_fast.net.process import process_life
from kafka_fast.producer import producer_core
from tests.embedded.producing import entries
from tests.waiting import eventually

ROOT = Path(__file__).parents[3]


def refuse(*_: object, **__: object) -> Any:
    raise OSError(24, "Too many open files")


class PumpThatCannotStart(threaded_host.Pump):
    start = refuse


class ControlThatCannotStart(threading.Thread):
    def start(self) -> None:
        if self.name == "kf-control":
            refuse()
        super().start()


HOST_STEPS = {
    "Machine": (threaded_host, "Machine", refuse),
    "DataPlane": (planes, "DataPlane", refuse),
    "Pump": (threaded_host, "Pump", refuse),
    "the pump's thread": (threaded_host, "Pump", PumpThatCannotStart),
    "selector": (threaded_host.selectors, "EpollSelector", refuse),
    "the control thread": (threaded_host.threading, "Thread", ControlThatCannotStart),
}
STEPS = {
    **HOST_STEPS,
    "ProducerControl": (producer_core, "ProducerControl", refuse),
    "Queues": (planes, "Queues", refuse),
    "Compressor": (threaded_host, "Compressor", refuse),
    "the package": (package_compressor, "compress", refuse),
    "the package's warning": (package_compressor.warnings, "warn", refuse),
    "Handover": (package_compressor, "Handover", refuse),
}


CONSUMER_STEPS = {
    **HOST_STEPS,
    "ConsumerControl": (consumer_core, "ConsumerControl", refuse),
    "Streams": (threaded_host, "Streams", refuse),
    "ReadingSide": (consumer_core, "ReadingSide", refuse),
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
    monkeypatch.setattr(threaded_host, "codecs_available", lambda: {"lz4": served})
    Producer(bootstrap_servers="127.0.0.1:1", compression_type="lz4").close()
    tasks, fds = entries("/proc/self/task"), entries("/proc/self/fd")
    cores = len(process_life.living)
    where, name, planted = STEPS[step]
    monkeypatch.setattr(where, name, planted)
    with pytest.raises(OSError, match="Too many open files"):
        Producer(bootstrap_servers="127.0.0.1:1", compression_type="lz4")
    monkeypatch.undo()
    eventually(lambda: entries("/proc/self/task") <= tasks, "the threads to be gone")
    assert entries("/proc/self/fd") <= fds
    assert len(process_life.living) == cores


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("step", CONSUMER_STEPS)
def test_a_failed_step_of_a_consumer_takes_back_those_before_it(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    Consumer(bootstrap_servers="127.0.0.1:1").close()
    tasks, fds = entries("/proc/self/task"), entries("/proc/self/fd")
    living = len(process_life.living)
    where, name, planted = CONSUMER_STEPS[step]
    monkeypatch.setattr(where, name, planted)
    with pytest.raises(OSError, match="Too many open files"):
        Consumer(bootstrap_servers="127.0.0.1:1")
    monkeypatch.undo()
    eventually(lambda: entries("/proc/self/task") <= tasks, "the threads to be gone")
    assert entries("/proc/self/fd") <= fds
    assert len(process_life.living) == living


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("client", [Producer, Consumer])
def test_who_reports_a_failed_constructor_can_show_the_client(client: type[Any]) -> None:
    """Error trackers show the locals of each frame."""
    with pytest.raises(ConfigError) as raised:
        client({"bootstrap.servers": "localhost:1", "nonsense": 1})
    frames = [frame.frame.f_locals for frame in raised.traceback]
    shown = [repr(names["self"]) for names in frames if isinstance(names.get("self"), client)]
    assert set(shown) == {f"<{client.__name__}, not made>"}


def test_a_closed_producer_does_not_wait_for_the_collector() -> None:
    fds = entries("/proc/self/fd")
    Producer(bootstrap_servers="127.0.0.1:1", compression_type="lz4").close()
    assert entries("/proc/self/fd") <= fds


# In a process of its own: a limit holds for all of it. The limit rises from what is used already to
# what suffices, so that each time the making stops at another call. (Of memory there is no such
# test: CPython's own `Thread.start` waits forever for a thread that had none for its first step.)
STARVED = """
import gc, os, resource, sys, warnings
from kafka_fast import ConfigError, Consumer, Producer
from kafka_fast.net import threaded_host

warnings.simplefilter("error")
SERVERS = {"bootstrap.servers": "127.0.0.1:1"}
CLIENTS = {
    "producer": lambda: Producer(SERVERS),
    "compressing": lambda: Producer(SERVERS, compression_type="gzip"),
    "compressing slowly": lambda: Producer(SERVERS, compression_type="gzip"),
    "consumer": lambda: Consumer(SERVERS),
}
found = threaded_host.codecs_available
failed = {}

def attempt(name, action):
    threaded_host.codecs_available = (lambda: {"gzip": "package"}) if "slow" in name else found
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            CLIENTS[name]().close()
        return True
    except (OSError, RuntimeWarning) as error:
        failed[type(error).__name__] = failed.get(type(error).__name__, 0) + 1
        return False

def counts():
    gc.collect()  # a closed consumer waits for it
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

for name in CLIENTS:  # what is loaded at the first use
    assert attempt(name, "ignore"), failed
before = counts()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
for name in CLIENTS:
    limit = 3
    made = False
    while not made:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        made = attempt(name, "ignore")
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        limit += 1
    attempt(name, "error")
print(failed, before, counts())
assert counts() == before
assert failed["OSError"] >= 4 * 3, failed
warned = 1 if found()["gzip"] == "native" else 2  # who compresses slowly is told so
assert failed["RuntimeWarning"] == warned, failed
"""


def test_a_process_that_lacks_files_at_every_step_lives_on() -> None:
    """And one in which a warning is an error."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", STARVED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
