"""The thread that runs users' delivery callbacks. The first callback starts the thread.

`flush` returns after the callbacks of the records that it waited for have run, as in Java
(`await_run`).
"""

from __future__ import annotations

import threading

from kafka_fast.dataplane.core._wake import Wake
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.logs import get_logger, name_thread
from kafka_fast.net._pump import Machine
from kafka_fast.net.waiting.steps import Steps, Wait
from kafka_fast.sending._observers import collect, notify

logger = get_logger("kafka_fast.producer")

START_PATIENCE = 0.5
"""Seconds after which a thread that an interruption kept from starting is taken for never begun."""

IDLE_WAIT = 60.0
"""Seconds after which the idle thread looks, at the latest, whether it is to end."""


class CallbackThread:
    """The callback thread of one producer. Any thread."""

    def __init__(self, queues: Queues, machine: Machine, users: Wake) -> None:
        """Prepare the thread; `start` starts it.

        Args:
            queues: hold the batches that have the callbacks.
            machine: wakes the thread when batches have ended.
            users: wakes callers that wait until callbacks have run.
        """
        self._queues = queues
        self._machine = machine
        self._thread: threading.Thread | None = None
        self._has_begun = threading.Event()
        self._users = users

    @property
    def is_current(self) -> bool:
        """Whether the caller is a callback, and so runs on this thread."""
        return threading.current_thread() is self._thread

    def start(self) -> None:
        """Start the thread, unless an interrupted call has done so."""
        if self._thread is not None and self._has_begun.wait(START_PATIENCE):
            return
        self._thread = threading.Thread(target=self._run, name="kf-callback", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Have the thread, if it was started, look for batches that have ended."""
        if self._thread is not None:
            self._machine.wake_callbacks()

    def await_run(self, deadline: float) -> Steps[None]:
        """Wait until the callbacks of all ended batches have run, or the deadline has come.

        Callbacks of batches that end meanwhile are not waited for.
        """
        queues = self._queues
        collect(queues)
        last = queues.observed
        if queues.notified < last:
            self.wake()
            yield Wait(
                lambda: queues.notified >= last or queues.dead, deadline, "delivery callbacks"
            )

    def join(self, patience: float | None) -> None:
        """Wait for the end of the thread; a callback does not wait for itself."""
        self.wake()  # the thread sees that the queues are dead
        if self._thread is not None and not self.is_current:
            self._thread.join(patience)

    def _run(self) -> None:
        name_thread(self._queues.client_id)
        self._has_begun.set()
        self._queues.callback_thread = threading.get_ident()
        while not self._queues.dead:
            notify(self._queues, _report)
            self._users.raise_()
            self._machine.wait_observers(IDLE_WAIT)
        notify(self._queues, _report)


def _report(callback: object, error: BaseException) -> None:
    logger.error("the delivery callback %r has raised", callback, exc_info=error)
