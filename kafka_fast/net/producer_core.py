"""The core of a producer: both planes on the machine, with their threads.

    kf-data      native: turns the data plane, never takes the GIL
    kf-control   Python: carries events and commands, connects, keeps time for the control plane
    kf-callback  Python, started with the first callback: runs the users' callbacks

Threads hold the core; the core does not know the `Producer` in front of it. One that is collected
unclosed leaves a core that delivers what it took and then ends itself (`abandon`).
"""

from __future__ import annotations

import os
import random
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from kafka_fast.config import ProducerSettings
from kafka_fast.control.metadata import Partition
from kafka_fast.control.plane import Command, TopicSettled
from kafka_fast.control.producer.control import ProducerControl
from kafka_fast.control.silence import topic_wait
from kafka_fast.control.troubles import late
from kafka_fast.dataplane._observers import collect, notify, take_lost, take_unlogged
from kafka_fast.dataplane._plane import EVENT_DUMP, WAIT_SLICE, DataPlane
from kafka_fast.dataplane.losses import Losses
from kafka_fast.errors import (
    DeliveryError,
    KafkaError,
    Outcome,
    UsageError,
    fresh_copy,
)
from kafka_fast.logs import LongWait, Waiting, get_logger, in_seconds
from kafka_fast.net import carrier, producer_exit
from kafka_fast.net._compressor import Compressor, Handover
from kafka_fast.net._pump import Machine, Pump
from kafka_fast.net.control_thread import ControlThread
from kafka_fast.net.dump import LinkDump
from kafka_fast.net.guide import Guide
from kafka_fast.net.loop import LoopBridge
from kafka_fast.net.loss_log import LossLog
from kafka_fast.record import Codec, codecs_available, compress

logger = get_logger("kafka_fast.producer")

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
TOUCH_INTERVAL_MAX = 30.0
"""Seconds between two looks which topics are in use, at most."""

IDLE_WAIT = 60.0
"""The callback thread looks at least this often whether it is to end."""

EXIT_PATIENCE = 1.0
"""Seconds that the end of the process waits for a thread of ours that user code may hold."""


class ProducerCore:
    """Both planes of one producer and their threads. Public methods: any thread."""

    def __init__(self, settings: ProducerSettings, client_id: str) -> None:
        """Start the threads; connections are made when they are needed.

        Args:
            settings: the producer's configuration.
            client_id: of all requests.
        """
        self.settings = settings
        self.control = ProducerControl(settings, client_id, random.SystemRandom().random)
        self._settled = threading.Condition()
        self._topic_errors: dict[str, KafkaError] = {}
        self._failure: UsageError | None = None
        self._touch_at = 0.0
        self._callbacks: threading.Thread | None = None
        self._closing = threading.RLock()  # garbage collection may close a producer anywhere
        self._abandoned = False
        self.pid = os.getpid()
        self.client_id = client_id
        self.exit_flush_timeout = settings.exit_flush_timeout
        self.origin: object = None
        """Was allocated with the `Producer` in front; None once somebody has called `close`, or
        was warned that nobody has."""
        with ExitStack() as undo:  # a process that is out of threads or files is no worse after it
            self._start(undo)
            undo.pop_all()
        producer_exit.add(self)

    def _start(self, undo: ExitStack) -> None:
        """Make the planes and start their threads; `undo` learns how to take back each step."""
        settings = self.settings
        self._machine = Machine()
        undo.callback(self._machine.close)
        codec = CODECS[settings.compression_type]
        self._compressor: Compressor | None = None
        self._handover: Handover | None = None
        if codec and codecs_available()[settings.compression_type] == "native":
            self._compressor = Compressor(codec, settings.compression_level)
            undo.callback(self._compressor.stop)
            self._machine.use_compressor(self._compressor)
        elif codec:
            self._handover = self._use_packages(Codec(codec))
        self.plane = DataPlane(
            self._machine,
            buffer_memory=settings.buffer_memory,
            batch_size=settings.batch_size,
            max_request_size=settings.max_request_size,
            coalesce_bytes=settings.request_coalesce_bytes,
            max_frame=settings.receive_message_max_bytes,
            linger=settings.linger,
            delivery_timeout=settings.delivery_timeout,
            request_timeout=settings.request_timeout,
            max_in_flight=settings.max_in_flight_requests_per_connection,
            max_idle=max(settings.connections_max_idle_ms, 0) / 1000,  # -1 is for ever, 0 here
            availability_timeout=settings.partitioner_availability_timeout,
            codec=codec,
            idempotent=settings.enable_idempotence,
            acks_zero=settings.acks == 0,
            client_id=self.client_id,
        )
        undo.callback(self.plane.shut_down)
        self._loss_log = LossLog(self.plane)
        self._dump = LinkDump(self.plane)
        self._pump = Pump(self.plane, self._machine)
        undo.callback(self._pump.stop)
        self._pump.start()
        self._control = ControlThread(self, self.control.links, self._machine, self._pump, settings)
        undo.callback(self._control.stop)
        self._control.start()
        self.plane.set_callback_starter(self._start_callbacks)
        self.plane.set_loop_bridge(LoopBridge(self.plane, self._machine))
        self.plane.set_guide(Guide(self.control.causes, self.control.says_what_waits))

    def _use_packages(self, codec: Codec) -> Handover:
        """Have the control thread compress with Python packages, and say that this is slow."""
        level = None if codec is Codec.SNAPPY else self.settings.compression_level
        self._compress = partial(compress, codec, level=level)
        self._compress(b"")  # a package that is not there raises here, not in the control thread
        warnings.warn(
            f"this build has no library for {codec.name.lower()}: a Python package compresses, "
            "which is slow; `kafka-fast info` says how to mend it",
            RuntimeWarning,
            stacklevel=5,
        )
        handover = Handover()
        self._machine.use_handover(handover)
        return handover

    # ---- callers ----

    def need_topic(self, name: str, max_block: float) -> None:
        """Wait until the topic has queues to send to.

        Raises:
            KafkaTimeoutError: not within `max_block` seconds.
            BrokerError: the topic cannot be used.
            UsageError: the producer does not run any more, or a delivery callback would wait.
        """
        self._await_topic(name, max_block, lambda: self.plane.partition_count(name))

    def partitions(self, name: str, max_block: float) -> Sequence[Partition]:
        """Return what metadata says of the topic's partitions; wait if it says nothing.

        The queues of a topic outlive its metadata, which goes when nobody has used it for
        metadata.max.idle.ms. Raises as `need_topic`.
        """
        self.plane.check_lives()
        known = self.control.cluster.partitions(name)
        if known:
            self._control.call(lambda now: self.control.touch_topics([name], now))
            return known
        # A send to the topic waits for its queues: who has waited here need not wait there.
        self._await_topic(
            name,
            max_block,
            lambda: self.control.cluster.partition_count(name) and self.plane.partition_count(name),
        )
        return self.control.cluster.partitions(name)

    def _await_topic(self, name: str, max_block: float, known: Callable[[], int | None]) -> None:
        """Ask for the topic's metadata and wait until `known()` tells of partitions."""
        self.plane.check_may_wait()
        if self._control.is_current:  # such as a handler of logs that sends them to Kafka
            raise UsageError(
                f"the producer's own thread must not wait for metadata of topic {name!r}: it would "
                "wait for itself"
            )
        began = time.monotonic()
        deadline = began + max_block
        wait = LongWait(logger)
        with self._settled:
            self._topic_errors.pop(name, None)
            self._control.call(lambda now: self.control.want_topic(name, now))
        while True:
            with self._settled:
                if known():
                    return
                error = self._failure or self._topic_errors.get(name)
                if error is not None:
                    raise fresh_copy(error)
                now = time.monotonic()
                if now >= deadline:
                    self._control.call(lambda now: self.control.give_up_topic(name))
                    what = f"no metadata of topic {name!r} after max.block.ms"
                    reasons = self.control.why_no_topic(name, now, began)
                    raise late(f"{what} ({max_block * 1000:.0f})", *reasons)
                if self.plane.dead:
                    raise UsageError("the producer was closed")
                self._settled.wait(min(WAIT_SLICE, deadline - now))
            # Without the lock: whoever takes what is logged may wait for this very producer.
            wait.look(now, lambda at: self._describe_topic(name, at, began, max_block))

    def _describe_topic(self, name: str, now: float, began: float, max_block: float) -> Waiting:
        """Return what the wait for a topic's metadata is for."""
        text = topic_wait(self.control.cluster, self.control.links, name, now, began)
        return Waiting(f"{text}; waiting up to max.block.ms ({in_seconds(max_block)})")

    def flush(self, timeout: float | None) -> int:
        """Send what was accepted and wait; returns the records still pending."""
        self.plane.check_owner()
        if self.plane.dead:
            return 0
        self.plane.check_may_wait()
        deadline = 0.0 if timeout is None else time.monotonic() + max(timeout, 1e-9)
        pending = self.plane.flush(deadline)
        self._await_callbacks(deadline)
        return pending

    def _await_callbacks(self, deadline: float) -> None:
        """Wait until the callbacks of what has ended have run: a flush promises that, as Java's."""
        collect(self.plane)
        while self.plane.unnotified and not self.plane.dead:
            left = deadline - time.monotonic() if deadline else WAIT_SLICE
            if left <= 0:
                return
            with self._settled:
                self._machine.wake_callbacks()
                self._settled.wait(min(WAIT_SLICE, left))

    def debug_dump(self, timeout: float) -> str:
        """Return what the links did lately, as text for people; what came within `timeout`."""
        self.plane.check_owner()
        lines = self._dump.ask(timeout, lambda: self.plane.dead)
        return "\n".join([self.control.describe(), *lines])

    def lost(self) -> Losses:
        """Return, and forget, the failures that nobody can observe."""
        if self.plane.inherited:
            return Losses()  # the parent's to tell
        lost = take_lost(self.plane)
        if self._callbacks is not None:
            # What this call took from the data plane, the callback thread did not find there.
            self._machine.wake_callbacks()
        return lost

    def pending(self) -> int:
        """Return how many accepted records have not ended."""
        return self.plane.pending()

    # ---- the end ----

    def close(self, timeout: float | None) -> None:
        """Deliver what was accepted, for at most `timeout` seconds, then end.

        A delivery callback must not wait, nor the control thread, in which garbage collection may
        close a generator's producer: there the core is left to itself.
        """
        self.origin = None
        if os.getpid() != self.pid:
            self.mark_forked()
            return
        if self._control.is_current or self._in_callback:
            self.abandon()
            return
        with self._closing:
            if not self.plane.dead:
                self.plane.refuse()
                self.flush(timeout)
                self._end()

    def abandon(self) -> None:
        """Accept nothing more, deliver what was accepted, then end; wait for nothing.

        Any thread: garbage collection calls this anywhere, also in this core's own threads.
        """
        if self.plane.dead:
            return
        if not self.plane.refuses:
            self.plane.refuse()
        self._abandoned = True
        self.plane.deliver_soon()
        self._machine.wake_control()
        if self._failure is not None:
            self.give_up(str(self._failure))  # there is no control thread to end it

    def wait_ended(self, timeout: float) -> bool:
        """Wait until an abandoned core has ended; returns whether it has."""
        return self._control.wait_ended(timeout) and self.plane.dead

    def give_up(self, why: str) -> None:
        """End now, and tell the log what was not delivered, and that this is why. Any thread."""
        if not self._closing.acquire(timeout=EXIT_PATIENCE):
            logger.error(
                "producer %s: %d records are not delivered, and a thread is stuck in its close()",
                self.client_id,
                self.plane.pending(),
            )
            return
        try:
            if not self.plane.dead:
                self._end(why, EXIT_PATIENCE)
        finally:
            self._closing.release()

    def _end_if_drained(self) -> None:
        """End an abandoned core whose records have all ended. Control thread."""
        collect(self.plane)
        if self.plane.pending() or self.plane.unnotified:
            return
        if not self._closing.acquire(blocking=False):
            return  # somebody else ends it, and waits for this thread
        try:
            if not self.plane.dead:
                self._end("its producer was collected", 0.0)
        finally:
            self._closing.release()

    @property
    def _in_callback(self) -> bool:
        return threading.current_thread() is self._callbacks

    def _end(self, aloud: str | None = None, patience: float | None = None) -> None:
        """End the threads and fail what was not delivered. The lock `_closing` is held.

        Args:
            aloud: Why records are given up: the log hears of them, and of all failures that nobody
                else heard of; None: the caller raises these.
            patience: Seconds to wait for a thread that a user's callback or a name's look-up
                holds; None: as long as it takes.
        """
        self._control.stop(patience)
        self._pump.stop()
        if self._compressor is not None:
            self._compressor.stop()
        losses = Losses() if aloud is None else self._count_losses(aloud)
        self.plane.shut_down()
        self.plane.set_callback_starter(None)  # it refers to this core, and
        self.plane.set_loop_bridge(None)  # this one to the plane
        self._machine.wake_callbacks()
        if self._callbacks is not None and not self._in_callback:
            self._callbacks.join(patience)
        collect(self.plane)
        with self._settled:
            self._settled.notify_all()
        producer_exit.discard(self)
        if losses:
            losses.log(self.client_id)

    def _count_losses(self, why: str) -> Losses:
        """Fail what was not delivered; return that, and what has failed before and was not told."""
        losses = take_unlogged(self.plane)
        failed_before = _failed_by_topic(self.plane)
        self.plane.mark_told()
        self.plane.shut_down()
        for topic, failed in _failed_by_topic(self.plane).items():
            count = failed - failed_before.get(topic, 0)
            if count:
                losses.add(topic, count, self._given_up(why, topic))
        return losses

    def _given_up(self, why: str, topic: str) -> DeliveryError:
        reason = self.control.causes.of_topic(topic, time.monotonic())
        if reason is None:
            return DeliveryError(why, outcome=Outcome.MAYBE_WRITTEN, topic=topic)
        error = DeliveryError(f"{why}; {reason.text}", outcome=Outcome.MAYBE_WRITTEN, topic=topic)
        error.__cause__ = reason.cause
        return error

    def mark_forked(self) -> None:
        """Called in a forked child: nothing of this runs here, and its locks may be held."""
        self.plane.mark_inherited()

    # ---- the control thread ----

    def handle_crash(self, error: BaseException) -> None:
        """The control thread has failed: nothing is sent any more, and whoever waits hears why."""
        failure = UsageError(f"the producer's control thread has failed: {error!r}")
        failure.__cause__ = error
        self.plane.refuse(failure)
        with self._settled:
            self._failure = failure
            self._settled.notify_all()
        if self._abandoned:
            self.give_up(str(failure))

    def turn(self, now: float) -> None:
        """Take events, do what is due, carry out commands."""
        if self._abandoned:
            self._end_if_drained()
            if self.plane.dead:
                return
        for event in self.plane.take_events():
            if event[0] == EVENT_DUMP:
                self._dump.take(event)
            else:
                self.control.handle_event(carrier.read_event(event), now)
        if self._handover is not None:
            self._handover.work(self._compress, _report_compression)
        if now >= self._touch_at:
            self._touch_at = now + min(TOUCH_INTERVAL_MAX, self.settings.metadata_max_idle / 3)
            self.control.touch_topics(self.plane.take_used_topics(), now)
        self.control.tick(now)
        while (command := self.control.poll_command()) is not None:
            self._carry_out(command, now)
        if collect(self.plane) and self._callbacks is not None:
            self._machine.wake_callbacks()
        self._loss_log.tick(now)

    def next_deadline(self) -> float:
        """Return when `turn` has something to do that no event announces."""
        deadline = min(self.control.next_deadline(), self._touch_at, self._loss_log.next_deadline())
        # The end of a record that nobody observes is no event.
        return min(deadline, time.monotonic() + WAIT_SLICE) if self._abandoned else deadline

    def _carry_out(self, command: Command, now: float) -> None:
        match command:
            case TopicSettled(topic, error):
                with self._settled:
                    if error is not None:
                        self._topic_errors[topic] = error
                    self._settled.notify_all()
            case _:
                if not self._control.carry_out(command, now):
                    carrier.carry_out(self.plane, command, random.getrandbits(63))

    # ---- the callback thread ----

    def _start_callbacks(self) -> None:
        self._callbacks = threading.Thread(
            target=self._run_callbacks, name="kf-callback", daemon=True
        )
        self._callbacks.start()

    def _run_callbacks(self) -> None:
        self.plane.set_callback_thread(threading.get_ident())
        while not self.plane.dead:
            notify(self.plane, _report_callback)
            with self._settled:
                self._settled.notify_all()
            self._machine.wait_observers(IDLE_WAIT)
        notify(self.plane, _report_callback)


def _report_compression(error: Exception) -> None:
    logger.error("a batch could not be compressed and goes out as it is", exc_info=error)


def _report_callback(callback: object, error: BaseException) -> None:
    logger.error("the delivery callback %r has raised", callback, exc_info=error)


def _failed_by_topic(plane: DataPlane) -> dict[str, int]:
    return {name: stats["records_failed"] for name, stats in plane.topic_stats().items()}
