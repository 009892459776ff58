"""A daemon thread that uses a client as its process ends: nothing is printed, and nothing hangs."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import fill
from tests.embedded.processes import run, start
from tests.embedded.sanitized import shown_by
from tests.waiting import TIMEOUT

TIMES = 3
"""Processes that end beside each other: what they do while they end differs a little."""

PRELUDE = """
import asyncio
from kafka_fast import aio
from kafka_fast.net.process import daemon_threads, process_life
warnings.simplefilter("ignore", ResourceWarning)  # nobody closes these clients
partition = TopicPartition("t", 0)
began = threading.Event()
def run(task):
    async def run_on_a_busy_machine():
        asyncio.get_running_loop().slow_callback_duration = 10.0  # else the debug mode reports it
        await task
    asyncio.run(run_on_a_busy_machine())
def in_daemon(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    assert began.wait(30)
    return thread
"""

CONSUMER = """
consumer = Consumer(bootstrap_servers=sys.argv[1], auto_offset_reset="earliest")
consumer.assign([partition])
"""
MEMBER = """
consumer = Consumer(bootstrap_servers=sys.argv[1], group_id=sys.argv[2])
consumer.subscribe(["t"])
"""
PRODUCER = """
producer = Producer(bootstrap_servers=sys.argv[1])
producer.partitions_for("t")
"""

USES = {
    "a poll that waits": CONSUMER
    + """
def use():
    consumer.seek_to_end()
    began.set()
    consumer.poll(60)
""",
    "a member that polls": MEMBER
    + """
def use():
    while True:
        consumer.poll(0.01)
        began.set()
""",
    "an iteration": CONSUMER
    + """
def use():
    for record in consumer:
        began.set()
""",
    "a position that is not known": CONSUMER
    + """
def use():
    consumer.assign([TopicPartition("absent", 0)])
    began.set()
    consumer.position(TopicPartition("absent", 0))
""",
    "send": PRODUCER
    + """
def use():
    while True:
        producer.send("t", b"")
        began.set()
""",
    "send_nowait": PRODUCER
    + """
def use():
    while True:
        producer.send_nowait("t", b"")
        began.set()
""",
    "send_many": PRODUCER
    + """
def use():
    while True:
        producer.send_many("t", [b""] * 10)
        began.set()
""",
    "send and result": PRODUCER
    + """
def use():
    while True:
        producer.send("t", b"").result()
        began.set()
""",
    "send to an unknown topic": PRODUCER
    + """
def use():
    began.set()
    producer.send("absent", b"")
""",
    "a task that polls": """
def use():
    async def poll():
        consumer = aio.Consumer(bootstrap_servers=sys.argv[1], auto_offset_reset="earliest")
        consumer.assign([partition])
        while True:
            await consumer.poll(0.01)
            began.set()
    run(poll())
""",
    "a task that sends": """
def use():
    async def send():
        producer = aio.Producer(bootstrap_servers=sys.argv[1])
        while True:
            await producer.send("t", b"", on_delivery=lambda error, metadata: began.set())
    run(send())
""",
    "tasks that wait for room": """
def use():
    async def send(producer):
        while True:
            await producer.send("t", bytes(20_000))
            began.set()
    async def send_from_several():
        producer = aio.Producer(bootstrap_servers=sys.argv[1], buffer_memory=300_000)
        await asyncio.gather(*[send(producer) for _ in range(20)])
    run(send_from_several())
""",
    "a task that sends many": """
def use():
    async def send():
        producer = aio.Producer(bootstrap_servers=sys.argv[1])
        while True:
            await producer.send_many("t", [b""] * 10)
            began.set()
    run(send())
""",
}
SHOWN = ("a poll that waits", "send", "a task that sends")
WHY = "it is Python that refuses a call, and holds the thread"


@pytest.fixture(name="kafka", scope="module")
def embedded_kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=1) as kafka:
        kafka.create_topic("t", 1)
        fill(kafka, "t", 100)
        yield kafka


@pytest.mark.parametrize("use", shown_by(SHOWN, USES, WHY))
def test_a_daemon_thread_says_nothing_as_the_process_ends(kafka: EmbeddedKafka, use: str) -> None:
    """Regression: its traceback was cut short, or CPython aborted over the lock of stderr."""
    body = USES[use] + "in_daemon(use)\n"
    processes = [
        start(body, kafka.bootstrap, f"{use} {number}", prelude=PRELUDE) for number in range(TIMES)
    ]
    for process in processes:
        _, err = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, err) == (0, "")


JOINED = (
    """
import atexit
threads = []
atexit.unregister(process_life.end_clients)
atexit.register(lambda: threads[0].join())
atexit.register(process_life.end_clients)  # the last that is registered runs first
daemon_threads.HOLD = 0.1
"""
    + CONSUMER
    + """
def use():
    try:
        began.set()
        consumer.poll(60)
    except WakeupError:
        print("told")
threads.append(in_daemon(use))
"""
)


def test_a_thread_that_is_waited_for_gets_its_error(kafka: EmbeddedKafka) -> None:
    process = run(JOINED, kafka.bootstrap, prelude=PRELUDE)
    assert (process.returncode, process.stdout, process.stderr) == (0, "told\n", "")


LOCKED = (
    PRODUCER
    + """
lock = threading.Lock()
def told(error, metadata):
    began.set()
    with lock:
        pass
def use():
    try:
        while True:
            with lock:
                producer.send("t", b"", on_delivery=told)
    except UsageError as error:
        os.write(2, str(error).encode())  # at once: the process may end within a traceback
daemon_threads.DELIVERY_HOLD = 0.1
in_daemon(use)
"""
)


def test_a_lock_that_callbacks_need_is_given_back(kafka: EmbeddedKafka) -> None:
    """Else the end of the process would wait for these callbacks until exit.flush.timeout.ms."""
    process = run(LOCKED, kafka.bootstrap, prelude=PRELUDE)
    assert process.returncode == 0
    assert "the producer is closed" in process.stderr
    assert "waiting up to exit.flush.timeout.ms" not in process.stderr


CHILD = """
import multiprocessing
def child():
    global consumer
    consumer = Consumer(bootstrap_servers=sys.argv[1], auto_offset_reset="earliest")
    consumer.assign([partition])
    def use():
        try:
            consumer.seek_to_end()
            began.set()
            consumer.poll(60)
        except WakeupError:
            print("told", flush=True)
    threading.Thread(target=use).start()
    assert began.wait(30)
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
print(process.exitcode)
"""


@pytest.mark.not_under("thread", "a forked child must not start threads there")
@pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="there a child joins its threads before its finalizers run"
)
def test_a_thread_that_a_child_of_multiprocessing_joins_gets_its_error(
    kafka: EmbeddedKafka,
) -> None:
    """The child joins it after its finalizers, which have ended the clients."""
    process = run(CHILD, kafka.bootstrap, prelude=PRELUDE)
    assert (process.stdout, process.stderr) == ("told\n0\n", "")
