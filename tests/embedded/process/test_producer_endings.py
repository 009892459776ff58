"""Accepted is accepted: however a program ends, its records are delivered, or counted aloud.

Each ending is a script in a process of its own. It sends 1, 1,000 and 20,000 records through three
producers that nobody closes; or 100 records to a broker that dies before they have left.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka_fast.errors import InvalidRecord
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from tests.embedded.processes import ROOT, run, start
from tests.embedded.sanitized import shown_by
from tests.waiting import TIMEOUT, eventually

DRIVERS = True

COUNTS = {"few": 1, "some": 1_000, "many": 20_000}
LATE = 100
"""Records that are pending when the broker dies."""

EXIT_FLUSH_MS = 300
ALLOWED = 15.0
"""Seconds that a process may take beyond exit.flush.timeout.ms; batches live for two minutes."""


@pytest.fixture(name="kafka", scope="module")
def embedded_kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=1) as kafka:
        yield kafka


PRELUDE = """
sent = []

def make(topic, count, kind=Producer):
    # A second of linger: nothing leaves before the program ends.
    producer = kind(bootstrap_servers=sys.argv[1], linger_ms=1000, exit_flush_timeout_ms={exit_ms})
    if {dies}:
        producer.partitions_for(topic)
        print("known", flush=True)
        sys.stdin.readline()
    for number in range(count):
        producer.send_nowait(topic, b"%d" % number)
    return producer

def each(job):
    for name, count in {counts}.items():
        job(sys.argv[2] + name, count)
"""


@dataclass
class Ending:
    """A way for a program to end."""

    body: str
    status: int = 0


ENDINGS = {
    "the script's last line": Ending("producers = []; each(lambda *a: producers.append(make(*a)))"),
    "a function that returns": Ending("each(make)"),
    "sys.exit in a function": Ending(
        """
        def main():
            producers = []
            each(lambda *a: producers.append(make(*a)))
            sys.exit(3)
        main()
        """,
        3,
    ),
    "an exception in a function": Ending(
        """
        def main():
            producers = []
            each(lambda *a: producers.append(make(*a)))
            raise RuntimeError("the end")
        main()
        """,
        1,
    ),
    "SIGINT": Ending(
        """
        def main():
            producers = []
            each(lambda *a: producers.append(make(*a)))
            signal.raise_signal(signal.SIGINT)
        main()
        """,
        -signal.SIGINT,
    ),
    "SIGTERM with a handler": Ending(
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
        def main():
            producers = []
            each(lambda *a: producers.append(make(*a)))
            signal.raise_signal(signal.SIGTERM)
        main()
        """,
        4,
    ),
    "collected with a cycle": Ending(
        """
        def job(*a):
            cycle = [make(*a)]
            cycle.append(cycle)
        each(job)
        gc.collect()
        """
    ),
    "a thread that ends": Ending(
        """
        def in_thread(*a):
            thread = threading.Thread(target=make, args=a)
            thread.start()
            thread.join()
        each(in_thread)
        """
    ),
    "a live thread": Ending(
        """
        def job(*a):
            producer = make(*a)
            threading.main_thread().join()
        each(lambda *a: threading.Thread(target=job, args=a).start())
        """
    ),
    "a daemon thread": Ending(
        """
        made = threading.Semaphore(0)
        def job(*a):
            producer = make(*a)
            made.release()
            threading.Event().wait()
        def start(*a):
            threading.Thread(target=job, args=a, daemon=True).start()
            made.acquire()
        each(start)
        """
    ),
    "an atexit of the user's": Ending(
        """
        import atexit
        atexit.register(lambda: each(make))
        """
    ),
    "an abandoned generator": Ending(
        """
        def rows(*a):
            producer = make(*a)
            yield 1
            raise AssertionError("never reached")
        kept = []
        def job(*a):
            generator = rows(*a)
            next(generator)
            if a[1] > 1:
                kept.append(generator)  # this one lives on to the end
        each(job)
        """
    ),
    "an exception in a user's __init__": Ending(
        """
        class Mine(Producer):
            def __init__(self, **properties):
                super().__init__(**properties)
        class Wrapper:
            def __init__(self, *a):
                self.producer = make(*a, Mine)
                raise ValueError("no")
        def job(*a):
            try:
                Wrapper(*a)
            except ValueError:
                pass
        each(job)
        """
    ),
    "a notebook's cell, run again": Ending(
        """
        import code
        shell = code.InteractiveInterpreter(globals())
        each(lambda *a: shell.runsource(f"producer = make(*{a})"))
        """
    ),
}


SHOWN = (
    "the script's last line",
    "a function that returns",
    "SIGINT",
    "collected with a cycle",
    "a live thread",
    "a daemon thread",
    "an atexit of the user's",
    "an abandoned generator",
)
MADE_AT_THE_END = ("a live thread", "an atexit of the user's")
WHY = "what else ends a frame in Python ends its producers as a return or an exception does"


def begin(
    bootstrap: str,
    body: str,
    prefix: str,
    *,
    dies: bool = False,
    exit_ms: int = 20_000,
    driver: str = "threads",
) -> subprocess.Popen[str]:
    counts = {"few": LATE} if dies else COUNTS
    prelude = PRELUDE
    for name, value in {"counts": counts, "dies": dies, "exit_ms": exit_ms}.items():
        prelude = prelude.replace(f"{{{name}}}", repr(value))
        body = body.replace(f"{{{name}}}", repr(value))
    return start(body, bootstrap, prefix, prelude=prelude, driver=driver)


def skip_what_cannot_be(name: str) -> None:
    """Skip clients that are made after the end of the main thread, where none can be made.

    CPython 3.12.0 and 3.12.1 start no thread from then on (gh-113964).
    """
    if name in MADE_AT_THE_END and (3, 12) <= sys.version_info < (3, 12, 2):
        pytest.skip("this Python starts no thread once its main thread has ended")


def statuses(status: int) -> set[int]:
    """Return the exit statuses that mean `status`; with 3.13 an interrupted `-c` may end with 1."""
    is_new = sys.version_info >= (3, 13)
    return {status, 1} if is_new and status == -signal.SIGINT else {status}


def counted_aloud(err: str) -> int:
    """Return the sum of what the log's lines count."""
    return sum(int(count) for count in re.findall(r"\[\S+\] (\d+) records? (?:was|were) not", err))


def topics_of(kafka: EmbeddedKafka, name: str) -> str:
    """Make the topics of a test; returns the prefix of their names."""
    prefix = re.sub(r"\W+", "-", name) + "-"
    for topic in COUNTS:
        kafka.create_topic(prefix + topic, 1)
    return prefix


@pytest.mark.parametrize("name", shown_by(SHOWN, ENDINGS, WHY))
def test_what_was_accepted_is_delivered(kafka: EmbeddedKafka, driver: str, name: str) -> None:
    skip_what_cannot_be(name)
    prefix = topics_of(kafka, f"{driver} {name}")
    process = begin(kafka.bootstrap, ENDINGS[name].body, prefix, driver=driver)
    _, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode in statuses(ENDINGS[name].status), err
    ends = {topic: kafka.end_offset(prefix + topic, 0) for topic in COUNTS}
    assert ends == COUNTS, err
    assert counted_aloud(err) == 0, err


@pytest.mark.parametrize("name", shown_by(SHOWN, ENDINGS, WHY))
def test_what_a_dead_broker_did_not_take_is_counted(
    kafka: EmbeddedKafka, driver: str, name: str
) -> None:
    skip_what_cannot_be(name)
    prefix = topics_of(kafka, f"dead {driver} {name}")
    process = begin(
        kafka.bootstrap,
        ENDINGS[name].body,
        prefix,
        dies=True,
        exit_ms=EXIT_FLUSH_MS,
        driver=driver,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "known\n"
    kafka.kill(1)
    try:
        began = time.monotonic()
        _, err = process.communicate("\n", timeout=TIMEOUT)
        took = time.monotonic() - began
    finally:
        kafka.restart(1)
    assert process.returncode in statuses(ENDINGS[name].status), err
    assert counted_aloud(err) == LATE, err
    assert f"topic {prefix}few: {LATE}" in err
    assert f"exit.flush.timeout.ms ({EXIT_FLUSH_MS}) passed" in err
    assert "Connection refused" in err, "the last trouble"
    assert took < EXIT_FLUSH_MS / 1000 + ALLOWED


def test_a_temporary_producer_delivers_its_record(kafka: EmbeddedKafka, driver: str) -> None:
    topic = f"temporary-{driver}"
    kafka.create_topic(topic, 1)
    done = run(
        """
        print(Producer(bootstrap_servers=sys.argv[1]).send(sys.argv[2], b"").result().offset)
        """,
        kafka.bootstrap,
        topic,
        driver=driver,
    )
    assert done.stdout == "0\n", done.stderr


def test_two_hundred_producers_collected_in_a_loop(kafka: EmbeddedKafka, driver: str) -> None:
    """Each delivers in the background; nothing is left of any, while the program goes on."""
    topic = f"loop-{driver}"
    kafka.create_topic(topic, 1)
    done = run(
        """
        for round in range(200):
            producer = Producer(bootstrap_servers=sys.argv[1], linger_ms=1000)
            for number in range(5):
                producer.send_nowait(sys.argv[2], b"%d" % number)
            del producer
        deadline = time.monotonic() + 60
        while threading.active_count() > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        print(threading.active_count(), len(os.listdir("/proc/self/fd")))
        """,
        kafka.bootstrap,
        topic,
        driver=driver,
        timeout=90,
    )
    threads, fds = map(int, done.stdout.split())
    assert threads == 1
    assert fds < 20
    assert kafka.end_offset(topic, 0) == 1000, done.stderr
    assert counted_aloud(done.stderr) == 0


def test_a_second_ctrl_c_ends_the_wait_with_the_count(kafka: EmbeddedKafka) -> None:
    prefix = topics_of(kafka, "ctrl-c")
    body = """
    import atexit
    each(lambda *a: sent.append(make(*a)))
    atexit.register(print, "ending", flush=True)
    signal.raise_signal(signal.SIGINT)
    """
    process = begin(kafka.bootstrap, body, prefix, dies=True, exit_ms=600_000)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "known\n"
    kafka.kill(1)
    try:
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ending\n"

        def interrupted() -> bool:
            process.send_signal(signal.SIGINT)  # the first may come a moment before the wait
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                return False
            return True

        eventually(interrupted, "the end of the process")
        _, err = process.communicate()
    finally:
        kafka.restart(1)
    assert process.returncode in statuses(-signal.SIGINT)
    assert counted_aloud(err) == LATE, err
    assert "interrupted" in err


def test_the_exit_says_what_it_waits_for(kafka: EmbeddedKafka) -> None:
    prefix = topics_of(kafka, "slow")
    body = (
        "from kafka_fast.net.process import process_life\nprocess_life.LOG_AFTER = 0.05\neach(make)"
    )
    process = begin(kafka.bootstrap, body, prefix, dies=True, exit_ms=EXIT_FLUSH_MS)
    assert process.stdout is not None
    assert process.stdout.readline() == "known\n"
    kafka.kill(1)
    try:
        _, err = process.communicate("\n", timeout=TIMEOUT)
    finally:
        kafka.restart(1)
    assert f"the process ends with {LATE} records not delivered yet" in err
    assert "waiting up to exit.flush.timeout.ms" in err


def test_tracemalloc_names_the_line_that_made_an_unclosed_producer(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from kafka_fast import Producer\n"
        "def job():\n"
        "    producer = Producer(bootstrap_servers=sys.argv[1])  # collected at the return\n"
        "job()\n"
        "kept = Producer(bootstrap_servers=sys.argv[1])  # lives to the end\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "tracemalloc=5", "-W", "default", script, kafka.bootstrap],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    warnings = done.stderr.split("ResourceWarning")[1:]
    assert len(warnings) == 2, done.stderr
    for line, warning in zip((4, 6), warnings, strict=True):
        assert "was not closed" in warning
        assert f'File "{script}", lineno {line}' in warning.split("allocated at")[1]
    assert counted_aloud(done.stderr) == 0


def test_the_exception_in_a_with_block_does_not_hide_what_was_lost(
    kafka: EmbeddedKafka, driver: str
) -> None:
    topic = f"with-{driver}"
    kafka.create_topic(topic, 1)
    kafka.faults.error(PRODUCE, InvalidRecord, topic=topic)
    done = run(
        """
        with Producer(bootstrap_servers=sys.argv[1]) as producer:
            for _ in range(5):
                producer.send_nowait(sys.argv[2], b"")
            raise RuntimeError("the block's")
        """,
        kafka.bootstrap,
        topic,
        driver=driver,
    )
    assert "RuntimeError: the block's" in done.stderr
    assert counted_aloud(done.stderr) == 5, done.stderr
    assert "INVALID_RECORD" in done.stderr
