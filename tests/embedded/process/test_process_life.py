"""What becomes of records when a process ends, forks or is interrupted.

Each case is a script in a process of its own, for that is what it is about. The broker lives here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kafka_fast.errors import NotEnoughReplicas
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from tests.embedded.processes import run, start


@pytest.fixture(name="kafka")
def embedded_kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=1) as kafka:
        kafka.create_topic("t", 1)
        yield kafka


def count(kafka: EmbeddedKafka) -> int:
    return len(kafka.records("t"))


def test_a_forked_child_is_told_and_the_parent_goes_on(kafka: EmbeddedKafka) -> None:
    done = run(
        """
        producer = Producer(bootstrap_servers=sys.argv[1])
        future = producer.send("t", b"before")
        future.result()
        pending = producer.send("t", b"pending")
        child = os.fork()
        if child == 0:
            try:
                producer.send("t", b"child")
            except UsageError as error:
                print("child:", error, flush=True)
            producer.close()
            os._exit(0)
        os.waitpid(child, 0)
        pending.result()
        producer.send("t", b"after").result()
        producer.close()
        """,
        kafka.bootstrap,
    )
    assert done.returncode == 0, done.stderr
    assert "child: this producer belongs to the parent of this process" in done.stdout
    assert count(kafka) == 3


def test_a_forked_child_locks_nothing(kafka: EmbeddedKafka) -> None:
    """Another thread holds the planes' locks at nearly any time; the child must not wait for it."""
    kafka.create_topic("refused", 1)
    kafka.faults.error(PRODUCE, NotEnoughReplicas, topic="refused")  # its records stay pending
    process = start(
        """
        import asyncio, gc
        producer = Producer(bootstrap_servers=sys.argv[1])
        producer.send("t", b"").result()
        go_on = True
        def hold_locks():
            while go_on:
                producer.send_many("t", [b"x" * 100] * 20_000)
        holder = threading.Thread(target=hold_locks)
        holder.start()

        async def wait_for(handle):
            await handle

        def refused(call):
            try:
                call()
            except UsageError as error:
                return "belongs to the parent" in str(error)

        def child():
            assert refused(lambda: producer.send("t", b""))
            assert refused(lambda: producer.send_nowait("t", b""))
            assert refused(lambda: producer.send_many("t", [b""]))
            assert refused(lambda: producer.partitions_for("t"))
            assert refused(producer.flush)
            assert refused(producer.metrics)
            assert refused(producer.debug_dump)
            for handle in (one, many):
                assert not handle.done() and "pending" in repr(handle)
                assert refused(handle.result)
                assert refused(handle.exception)
                assert refused(lambda: handle.add_done_callback(print))
                assert refused(lambda: asyncio.run(wait_for(handle)))

        try:
            for _ in range(20):
                one = producer.send("refused", b"pending")
                many = producer.send_many("refused", [b"x" * 100] * 1000)
                pid = os.fork()
                if pid == 0:
                    signal.alarm(20)
                    child()
                    del one, many
                    producer.close()
                    del producer
                    gc.collect()
                    os._exit(0)
                assert os.waitpid(pid, 0)[1] == 0
        finally:
            go_on = False
            holder.join()
        print("forked", flush=True)
        sys.stdin.readline()  # the broker takes the records that it refused, from here on
        producer.close()
        """,
        kafka.bootstrap,
    )
    assert process.stdout is not None
    forked = process.stdout.readline()
    kafka.faults.clear()
    _, err = process.communicate("\n", timeout=60)
    assert process.returncode == 0, err
    assert forked == "forked\n", err
    # On a busy machine asyncio's debug mode tells of slow tasks, and of what they have raised.
    assert "Error" not in re.sub(r"Executing <.*> took .* seconds", "", err)
    assert len(kafka.records("refused")) == 20 * 1001


@pytest.mark.parametrize(
    "blocking",
    [
        "producer.flush()",
        "future.result()",
        "producer.send('unknown', b'')",
        "producer.close()",
        "while True: producer.send_nowait('t', bytes(1000))",
    ],
)
def test_ctrl_c_ends_a_blocking_call(kafka: EmbeddedKafka, blocking: str) -> None:
    """The time between the signal and KeyboardInterrupt is measured in the process itself.

    Of three rounds the fastest counts: the others tell of the machine.
    """
    process = start(
        f"""
        producer = Producer(bootstrap_servers=sys.argv[1], buffer_memory=1 << 20,
                            exit_flush_timeout_ms=1)
        producer.send("t", b"").result()
        print("ready", flush=True)
        sys.stdin.readline()  # the broker stands still from here on
        future = producer.send("t", b"never")
        sent = []
        took = []
        def interrupt():
            time.sleep(0.1)  # until the call blocks, which nothing tells
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        for _ in range(3):
            threading.Thread(target=interrupt, daemon=True).start()
            try:
                {blocking}
            except KeyboardInterrupt:
                took.append(time.monotonic() - sent[-1])
        print("after", len(took), min(took), flush=True)
        os._exit(0)
        """,
        kafka.bootstrap,
        prelude="producer = None\n",
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    kafka.pause(1)
    out, err = process.communicate("\n", timeout=60)
    assert out.startswith("after"), err
    _, rounds, fastest = out.split()
    assert rounds == "3"
    assert float(fastest) < 0.05, "Ctrl-C must end a blocking call at once"


def test_close_from_a_callback_and_close_twice(kafka: EmbeddedKafka) -> None:
    done = run(
        """
        closed = threading.Event()
        def on_delivery(error, metadata):
            producer.close()
            closed.set()
        producer = Producer(bootstrap_servers=sys.argv[1], on_delivery=on_delivery)
        producer.send_nowait("t", b"")
        assert closed.wait(10)
        producer.close()
        try:
            producer.send("t", b"")
        except UsageError as error:
            print(error)
        """,
        kafka.bootstrap,
    )
    assert done.returncode == 0, done.stderr
    assert "the producer is closed" in done.stdout


def test_close_from_a_callback_while_another_thread_closes(kafka: EmbeddedKafka) -> None:
    done = run(
        """
        called = threading.Event()
        def on_delivery(error, metadata):
            called.set()
            while not producer._queues.refuses:  # until the other close waits for this callback
                time.sleep(0.001)
            producer.close()
            print("callback")
        producer = Producer(bootstrap_servers=sys.argv[1], on_delivery=on_delivery)
        producer.send_nowait("t", b"")
        assert called.wait(10)
        producer.close()
        print("closed")
        """,
        kafka.bootstrap,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "callback\nclosed\n"


def test_a_producer_that_its_own_control_thread_collects(kafka: EmbeddedKafka) -> None:
    done = run(
        """
        held = [Producer(bootstrap_servers=sys.argv[1])]
        held[0].send("t", b"").result()
        core = held[0]._core
        core.call(lambda now: held.clear())
        while threading.active_count() > 1:
            time.sleep(0.001)
        print("dead", core.queues.dead)
        """,
        kafka.bootstrap,
    )
    assert "was not closed" in done.stderr
    assert "Error" not in done.stderr
    assert done.stdout == "dead True\n"


def test_a_callback_must_not_wait(kafka: EmbeddedKafka) -> None:
    done = run(
        """
        told = threading.Event()
        def on_delivery(error, metadata):
            for call in (producer.flush, lambda: producer.send("t", b"2").result()):
                try:
                    call()
                except UsageError as error:
                    print("UsageError")
            told.set()
        producer = Producer(bootstrap_servers=sys.argv[1], linger_ms=1000)
        producer.send_nowait("t", b"1", on_delivery=on_delivery)
        producer.send_nowait("t", b"pending", partition=0)
        producer.flush()
        assert told.wait(10)
        producer.close()
        """,
        kafka.bootstrap,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("UsageError") >= 1


def test_signals_reach_python_not_the_data_plane(kafka: EmbeddedKafka) -> None:
    done = run(
        """
        seen = []
        signal.signal(signal.SIGUSR1, lambda *_: seen.append(threading.current_thread().name))
        with Producer(bootstrap_servers=sys.argv[1]) as producer:
            for _ in range(50):
                os.kill(os.getpid(), signal.SIGUSR1)
                producer.send("t", b"").result()
        print(set(seen))
        """,
        kafka.bootstrap,
    )
    assert done.stdout == "{'MainThread'}\n", done.stderr
