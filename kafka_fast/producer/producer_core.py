"""The core of a producer: a client's core, extended by callbacks, report of losses, and endings.

    kf-data      native: turns the data plane
    kf-control   Python: gives this core its turns
    kf-callback  Python, started with the first callback: runs the users' callbacks

A producer that is collected without being closed leaves its core behind. The core delivers all
records that it has accepted, and then ends itself (`abandon`).
"""

from __future__ import annotations

import os
import threading
import warnings
from contextlib import ExitStack
from functools import partial
from typing import Any

from kafka_fast.config import ProducerSettings
from kafka_fast.control.messages import DumpEvent
from kafka_fast.control.producer.producer_control import ProducerControl
from kafka_fast.control.producer.producer_messages import (
    OwnCommand,
    ProduceCommand,
    ProduceEvent,
    ProducerEvent,
    QueueChange,
)
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.dataplane.core._plane import WAIT_SLICE
from kafka_fast.dataplane.produce._produce_waits import ProduceWaits
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.errors import DeliveryError, InternalError, Outcome, UsageError
from kafka_fast.instants import NEVER
from kafka_fast.logs import ClientLog, count_of
from kafka_fast.net.core.client_core import ClientCore
from kafka_fast.net.host import ProducerHost
from kafka_fast.net.planes import make_queues, producer_plane
from kafka_fast.net.process import process_life
from kafka_fast.net.process.detached import detached
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.net.waiting.waits import ClientWaits
from kafka_fast.producer import producer_carrier as produce_carrier
from kafka_fast.producer.failure_explainer import FailureExplainer
from kafka_fast.producer.loss_log import LossLog, log_finally
from kafka_fast.producer.producer_topics import ProducerTopics
from kafka_fast.sending._observers import (
    add_given_up,
    collect,
    raise_lost,
    report_if_dead,
)
from kafka_fast.sending.losses import were
from kafka_fast.values import assert_never

END_PATIENCE = 1.0
"""Seconds that the end of the process waits for a thread of ours that user code may block."""


NO_TRANSACTION = "no transaction is open: call begin_transaction() first"


class ProducerCore(ClientCore[OwnCommand, ProduceEvent]):
    """Both planes of one producer. Any thread, except the control thread's part (`turn` and on)."""

    kind = "producer"
    control: ProducerControl
    topics: ProducerTopics
    _host: ProducerHost

    def __init__(self, settings: ProducerSettings, client_id: str, host: ProducerHost) -> None:
        """Start; connections are made when they are needed.

        Args:
            settings: the producer's configuration.
            client_id: sent in all requests.
            host: the world under this client.
        """
        self._log = ClientLog("kafka_fast.producer", client_id)
        self.exit_patience = settings.exit_flush_timeout
        self.origin: object = None
        """An object allocated together with the `Producer`, for the warning that it was not closed.
        None after `close`, and after that warning.
        """
        self._closing = threading.RLock()  # reentrant: garbage collection may close anywhere
        self._abandoned: str | None = None  # why this core ends itself after its last record
        self._failure: InternalError | None = None
        with ExitStack() as undo:  # out of threads or files: give back what was taken
            undo.callback(host.close)
            if settings.compression_type != "none":
                host.compress_with(settings.compression_type, settings.compression_level)
            control = ProducerControl(
                settings, client_id, host.random, host.wall_ms, host.mechanism
            )
            plane = producer_plane(host.environment, settings)
            self.queues = queues = make_queues(plane, settings, client_id)
            undo.callback(queues.shut_down)
            self.produce_waits = ProduceWaits(queues)
            super().__init__(client_id, host, control, plane)
            self.touch_interval = min(self.touch_interval, settings.metadata_max_idle / 3)
            # A silent broker causes one trouble in at most this time: a timeout, then a reconnect.
            memory = settings.request_timeout + settings.reconnect_backoff_max
            self.waits = ClientWaits(control.view, host.now, memory=memory)
            if settings.transactional_id is not None:
                queues.hold(UsageError(NO_TRANSACTION))
            self.topics = ProducerTopics(control, queues, host, self.call, settings.max_block)
            self._loss_log = LossLog(queues)
            self._callbacks = host.make_callbacks(queues)
            undo.pop_all()
        # A finalizer calls this, perhaps when the names of all modules are gone.
        self.report_if_dead = partial(report_if_dead, queues)
        """Have the log tell of lost records, if this core has ended."""
        queues.callback_starter = self._callbacks.start
        queues.loop_bridge = host.make_loop_bridge(queues)
        queues.explainer = FailureExplainer(client_id, control.causes, control.says_what_waits)
        self._start()

    # ---- callers ----

    def flush(self, timeout: float | None) -> int:
        """Send all accepted records and wait; return how many are still pending."""
        self.queues.check_owner()
        if self.queues.dead:
            return 0
        self.queues.check_may_wait()
        deadline = NEVER if timeout is None else self.now() + max(timeout, 1e-9)
        pending = self.produce_waits.flush(deadline)
        self.driver.run(self.await_callbacks(deadline))
        return pending

    def await_callbacks(self, deadline: float) -> Steps[None]:
        """Wait until callbacks have run: a flush promises that, as in Java."""
        yield from self._callbacks.await_run(deadline)

    def raise_lost(self) -> None:
        """Raise the failures that nobody can observe, if there are any."""
        if self.plane.inherited:
            return  # the parent process tells of them
        if collect(self.queues):
            self._callbacks.wake()  # these batches have callbacks
        raise_lost(self.queues)  # last: nothing may come between the error and the user

    def log_lost(self) -> None:
        """Log the failures that nobody can observe, and that no call will raise."""
        log_finally(self.queues)
        self._callbacks.wake()

    def note_lost(self) -> None:
        """Set the exit status of the process, if exit.status.on.loss asks for one."""
        if self.queues.exit_status:
            process_life.end_with(self.queues.exit_status)

    def stats(self) -> dict[str, Any]:
        """Return counters of records, troubles, nodes and topics."""
        self.queues.check_owner()
        return {
            "pending_records": self.queues.pending(),
            **self.plane.stats(),
            **self.queues.stats(),
            **self.control.view.stats(),
            **self._transaction_stats(),
            "nodes": self.plane.node_stats(),
            "topics": self.queues.topic_stats(),
        }

    def _transaction_stats(self) -> dict[str, int]:
        """Return how many transactions have ended, and how."""
        transactions = self.control.transactions
        return {
            "transactions_committed": 0 if transactions is None else transactions.committed,
            "transactions_aborted": 0 if transactions is None else transactions.aborted,
        }

    # ---- the end ----

    def close(self, timeout: float | None) -> None:
        """Deliver all accepted records, for at most `timeout` seconds, then end.

        Delivery callbacks and the control thread must not wait: there this call only abandons the
        core. (Garbage collection may close a generator's producer on the control thread.)
        """
        self.origin = None
        if os.getpid() != self.pid:
            self.mark_forked()
            return
        if not self.may_wait_to_close():
            self.abandon("its close() was called where it must not wait")
            return
        with self._closing:
            if not self.queues.dead:
                self.queues.refuse()
                self.flush(timeout)
            if not self.queues.dead:  # a signal handler may have closed meanwhile
                self._end()

    def may_wait_to_close(self) -> bool:
        """Return whether `close` waits in this thread, and not only abandons the core."""
        is_inherited = os.getpid() != self.pid
        return not (is_inherited or self._host.is_current or self._callbacks.is_current)

    def abandon(self, why: str) -> None:
        """Accept no more records, deliver the accepted ones, then end; wait for nothing.

        Any thread: garbage collection may call this anywhere, also in this core's own threads.

        Args:
            why: said of records that cannot be delivered.
        """
        if self.queues.dead:
            return
        if not self.queues.refuses:
            self.queues.refuse()
        self._abandoned = self._abandoned or why
        if self.control.transactions is not None:
            self.call(self.control.transactions.abandon)
        self.produce_waits.begin_flush(NEVER)  # has no end: all batches leave at once from now on
        self._host.wake()
        if self._failure is not None:  # no control thread is left to end this core
            why = str(self._failure)
            try:
                detached(self.give_up, "kf-close")((why,))
            except RuntimeError:
                self.give_up(why)

    def warn_unclosed(self) -> None:
        """Warn, once, if the producer was not closed.

        With tracemalloc the warning names the line that made the producer.
        """
        origin, self.origin = self.origin, None
        if origin is not None:
            warnings.warn(
                f"producer {self.client_id} was not closed: close() it, or use it in a with block",
                ResourceWarning,
                stacklevel=2,
                source=origin,
            )

    def give_up(self, why: str) -> None:
        """End now, and log the records that were not delivered, with the reason `why`."""
        if not self._closing.acquire(timeout=END_PATIENCE):
            self._log.error(
                "%s not delivered, and a thread is stuck in its close()",
                were(self.queues.pending()),
            )
            self.note_lost()
            return
        try:
            if not self.queues.dead:
                self._end(why, END_PATIENCE)
        finally:
            self._closing.release()

    # ---- the end of the process ----

    def begin_exit(self) -> None:
        """Accept no more records, and deliver the accepted ones."""
        self.abandon("the process ends")

    def wait_exit(self, timeout: float) -> bool:
        """Wait until all records are delivered and the threads have ended."""
        return self._host.wait_ended(timeout) and self.queues.dead

    def log_exit(self) -> None:
        """Log that the process waits for deliveries."""
        self._log.warning(
            "the process ends with %s not delivered yet: waiting up to exit.flush.timeout.ms "
            "(%.0f s); Ctrl-C ends the wait",
            count_of(self.queues.pending(), "record"),
            self.exit_patience,
        )

    def end_exit(self, interrupted: str) -> None:
        """End now, and log the records that are not delivered."""
        self.give_up(
            interrupted or f"exit.flush.timeout.ms ({self.exit_patience * 1000:.0f}) passed"
        )
        self.warn_unclosed()

    def _end_if_drained(self) -> None:
        """End an abandoned core whose records have all ended. Control thread."""
        collect(self.queues)
        if self.queues.pending() or self.queues.notified < self.queues.observed:
            return
        transactions = self.control.transactions
        if transactions is not None and not transactions.end_abandoned(self.now()):
            return
        if not self._closing.acquire(blocking=False):
            return  # another thread ends this core, and waits for the control thread
        try:
            if not self.queues.dead:
                self._end(self._abandoned, 0.0)
        finally:
            self._closing.release()

    def _end(self, aloud: str | None = None, patience: float | None = None) -> None:
        """End the threads and fail undelivered records. The caller holds the lock `_closing`.

        Args:
            aloud: why records are given up. These losses are logged, and with them all failures
                that nobody else has seen. None: the caller raises them.
            patience: seconds to wait for a thread that a user's callback or a look-up blocks; None:
                without limit.
        """
        self.waits.end_all()
        self.driver.wake()
        self._host.stop(patience)
        if aloud is not None:
            self._give_up_pending(aloud)
        self.queues.shut_down()
        self.driver.wake()
        self.queues.callback_starter = None  # both refer to the queues:
        self.queues.loop_bridge = None  # this breaks the cycles
        self._callbacks.join(patience)
        collect(self.queues)
        process_life.discard(self)
        if aloud is not None:
            log_finally(self.queues)

    def _give_up_pending(self, why: str) -> None:
        """Fail undelivered records, and count all of them as lost, whoever holds their handles."""
        failed_before = _failed_by_topic(self.queues)
        self.queues.told = True  # by this log: handles need not tell of what it fails
        self.queues.shut_down()
        for topic, failed in _failed_by_topic(self.queues).items():
            count = failed - failed_before.get(topic, 0)
            if count:
                add_given_up(self.queues, count, self._given_up(why, topic))

    def _given_up(self, why: str, topic: str) -> DeliveryError:
        reason = self.control.causes.of_topic(topic, self.now())
        if reason is None:
            return DeliveryError(why, outcome=Outcome.MAYBE_WRITTEN, topic=topic)
        error = DeliveryError(f"{why}; {reason.text}", outcome=Outcome.MAYBE_WRITTEN, topic=topic)
        error.__cause__ = reason.cause
        return error

    # ---- the control thread ----

    def turn(self, now: float) -> None:
        """Take a turn; end an abandoned core after its last record."""
        if self._abandoned:
            self._end_if_drained()
            if self.queues.dead:
                return
        super().turn(now)
        if collect(self.queues):
            self._callbacks.wake()
        self._loss_log.tick(now)

    def next_deadline(self) -> float:
        """Return when `turn` has something to do that no wake announces."""
        deadline = min(super().next_deadline(), self._loss_log.next_deadline())
        # No event announces the end of records without observers, so an abandoned core polls.
        return min(deadline, self.now() + WAIT_SLICE) if self._abandoned else deadline

    def mark_forked(self) -> None:
        """Refuse sends in a forked child."""
        self.queues.mark_inherited()

    def _read_event(self, event: PlaneEvent) -> ProducerEvent | DumpEvent:
        return produce_carrier.read_event(event)

    def _touch(self, now: float) -> None:
        self.control.touch_topics(self.queues.take_used_topics(), now)

    def _program(self, command: OwnCommand) -> None:
        seed = self._host.random_bits()
        if isinstance(command, ProduceCommand):
            produce_carrier.carry_out(self.queues, command, seed)
        elif isinstance(command, QueueChange):
            produce_carrier.change(self.queues, command, seed)
        else:
            assert_never(command)

    def _fail(self, failure: InternalError) -> None:
        """Refuse records from now on, and end all waits with `failure`."""
        self._failure = failure
        self.queues.refuse(failure)
        self.topics.fail_all(failure)
        self.waits.fail_all(failure)
        if self._abandoned:
            self.give_up(str(failure))


def _failed_by_topic(queues: Queues) -> dict[str, int]:
    return {name: stats["records_failed"] for name, stats in queues.topic_stats().items()}
