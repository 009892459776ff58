"""Whoever waits in vain is told why, in the exception itself: a table of hostile answers.

Every API that the clients use, by kinds of nonsense; each case names the call of a user that waits
for the answer, and what its exception has to say. The last test counts.
"""

from __future__ import annotations

import pickle
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from kafka_fast import Consumer, OffsetAndMetadata, Producer, TopicPartition, read_range
from kafka_fast.errors import BrokerError, DeliveryError, KafkaError, KafkaTimeoutError
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import fill
from tests.embedded.hostile.hostile_answers import CASES, Case, Listener
from tests.waiting import TIMEOUT

T0 = TopicPartition("t", 0)
PATIENCE_MS = (200, 1_000, 5_000)
"""How long a call waits; longer where the machine was too busy to get as far as the answer."""

QUICK = {
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 50,
}


class Calls:
    """The calls of users that wait; each returns the exception that it raises."""

    def __init__(self, bootstrap: str, patience_ms: int) -> None:
        """Call these brokers.

        Args:
            bootstrap: where they listen.
            patience_ms: how long the call that waits in vain is to wait.
        """
        self._patience_ms = patience_ms
        self._config = {
            "bootstrap.servers": bootstrap,
            "request.timeout.ms": patience_ms // 2,
            **QUICK,
        }

    def send(self) -> KafkaError:
        with self._producer() as producer:
            return self._raised(lambda: producer.send("t", b"v"))

    def deliver(self) -> KafkaError:
        with self._producer(max_block_ms=60_000) as producer:
            error = producer.send("t", b"v").exception(TIMEOUT)
            assert isinstance(error, DeliveryError)
            return error

    def partitions_for(self) -> KafkaError:
        with self._consumer() as consumer:
            return self._raised(lambda: consumer.partitions_for("t"))

    def end_offsets(self) -> KafkaError:
        with self._consumer() as consumer:
            return self._raised(lambda: consumer.end_offsets([T0]))

    def committed(self) -> KafkaError:
        with self._consumer(group_id="g") as consumer:
            return self._raised(lambda: consumer.committed([T0]))

    def commit(self) -> KafkaError:
        with self._consumer(group_id="g") as consumer:
            consumer.assign([T0])
            return self._raised(lambda: consumer.commit({T0: OffsetAndMetadata(0)}))

    def position(self) -> KafkaError:
        with self._consumer(group_id="g") as consumer:
            consumer.assign([T0])
            return self._raised(lambda: consumer.position(T0))

    def poll(self) -> KafkaError:
        with self._consumer() as consumer:
            consumer.assign([T0])
            consumer.seek(T0, 0)
            return self._polled(consumer)

    def poll_positioning(self) -> KafkaError:
        with self._consumer() as consumer:
            consumer.assign([T0])
            return self._polled(consumer)

    def poll_validating(self) -> KafkaError:
        with self._consumer() as consumer:
            consumer.assign([T0])
            consumer.seek(T0, OffsetAndMetadata(0, leader_epoch=0))
            return self._polled(consumer)

    def poll_joining(self) -> KafkaError:
        with self._consumer(group_id="g") as consumer:
            consumer.subscribe(["t"])
            return self._polled(consumer)

    def poll_joining_848(self) -> KafkaError:
        with self._consumer(group_id="g", group_protocol="consumer") as consumer:
            consumer.subscribe(["t"])
            return self._polled(consumer)

    def poll_as_member(self) -> KafkaError:
        with self._consumer(group_id="g", heartbeat_interval_ms=50) as consumer:
            consumer.subscribe(["t"])
            return self._polled(consumer)

    def read_range(self) -> KafkaError:
        with read_range(
            "t", 0, config=self._config, default_api_timeout_ms=2 * self._patience_ms
        ) as steps:
            return self._raised(lambda: next(steps))

    def _producer(self, **config: object) -> Producer:
        waits = {"max_block_ms": self._patience_ms, **config}
        return Producer(
            self._config, delivery_timeout_ms=3 * self._patience_ms // 2, linger_ms=0, **waits
        )

    def _consumer(self, **config: object) -> Consumer:
        return Consumer(
            self._config,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            default_api_timeout_ms=self._patience_ms,
            fetch_max_wait_ms=20,
            **config,
        )

    def _raised(self, call: Callable[[], object]) -> KafkaError:
        try:
            answer = call()
        except KafkaError as error:
            return error
        raise AssertionError(f"the answer was taken for one: {answer}")

    def _polled(self, consumer: Consumer) -> KafkaError:
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            try:
                consumer.poll(0.1)
            except KafkaError as error:  # noqa: PERF203  one in each poll
                return error
        raise AssertionError("polls say nothing")


@contextmanager
def listening(listener: Listener) -> Iterator[str]:
    """A port at which something else listens than a broker."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                listener(connection)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        host, port = server.getsockname()
        yield f"{host}:{port}"
        server.shutdown(socket.SHUT_RDWR)


def raised_by(case: Case, patience_ms: int) -> KafkaError:
    """Return what the user's call raises."""
    spoil, listener = case.spoil, case.listener
    if listener is not None:
        with listening(listener) as address:
            return call(case.call, Calls(address, patience_ms))
    assert spoil is not None
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t")
        fill(kafka, "t", 3)
        spoil(kafka)
        return call(case.call, Calls(kafka.bootstrap, patience_ms))


def call(name: str, calls: Calls) -> KafkaError:
    """Make one of the calls."""
    raised: KafkaError = getattr(calls, name)()
    return raised


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_exception_names_the_cause(case: Case) -> None:
    for patience_ms in PATIENCE_MS:
        error = raised_by(case, patience_ms)
        if re.search(case.says, str(error)):
            assert_caused(error)
            return
    raise AssertionError(f"{type(error).__name__}: {error}")


def assert_caused(error: KafkaError) -> None:
    """See that what went wrong is the cause, and that all of it reaches another process."""
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), str(copied)) == (type(error), str(error))
    if isinstance(error, KafkaTimeoutError) and "node 77" not in str(error):
        assert isinstance(error.__cause__, KafkaError)
    if isinstance(error, DeliveryError) and "the last answer" in str(error):
        assert isinstance(error.__cause__, BrokerError)
        assert isinstance(error.first, KafkaTimeoutError)


def test_the_table_is_as_large_as_was_asked_for() -> None:
    """Each case has to pass above, so the bar, 95 % of 94, is held with room to spare."""
    assert len(CASES) >= 94
    assert len({str(case) for case in CASES}) == len(CASES)
