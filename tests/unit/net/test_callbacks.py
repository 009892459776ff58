"""The callback thread, whose start may be interrupted."""

from __future__ import annotations

import threading

import pytest

from kafka_fast.dataplane.core._wake import Wake
from kafka_fast.net import callbacks
from kafka_fast.net._pump import Machine
from kafka_fast.net.callbacks import CallbackThread
from tests.unit.dataplane.rig import ProduceRig


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "kf-callback"}


class InterruptedStart(threading.Thread):
    """Ctrl-C comes while its starter waits for it."""

    def start(self) -> None:
        super().start()
        raise KeyboardInterrupt


class NoStart(threading.Thread):
    """Ctrl-C comes before it is begun."""

    def start(self) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", [InterruptedStart, NoStart])
def test_after_an_interrupted_start_there_is_one_thread(
    kind: type[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = ProduceRig()
    before = threads()  # earlier tests' may end meanwhile
    thread = CallbackThread(rig.queues, Machine(), Wake(rig.plane))
    with monkeypatch.context() as patch:
        patch.setattr(callbacks.threading, "Thread", kind)  # type: ignore[attr-defined]
        with pytest.raises(KeyboardInterrupt):
            thread.start()
    monkeypatch.setattr(callbacks, "START_PATIENCE", 0.01 if kind is NoStart else 60.0)
    thread.start()
    assert len(threads() - before) == 1
    rig.queues.shut_down()
    thread.join(None)
    assert not threads() - before
