"""Losses that nobody was told of are told at the end of the process: an ERROR, and its exit status.

Each ending is a script in a process of its own, whose broker refuses every record, so that records
stay pending until somebody gives them up.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast.errors import NotEnoughReplicas
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from tests.embedded.process.test_producer_endings import counted_aloud, statuses
from tests.embedded.processes import run

DRIVERS = True

STATUS = 77

SHARED = "both producers have one core, which counts"

PRELUDE = """
import collections, contextlib, multiprocessing

def make(status=77, kind=Producer, **more):
    config = dict(bootstrap_servers=sys.argv[1], exit_flush_timeout_ms=10, linger_ms=0)
    return kind(config, exit_status_on_loss=status, **more)

def lose(producer, count=3):
    for _ in range(count):
        producer.send_nowait("refused", b"")

def hold(producer, count=3):
    return [producer.send("refused", b"") for _ in range(count)]
"""


@pytest.fixture(name="kafka", scope="module")
def refusing_broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=1) as kafka:
        kafka.create_topic("refused", 1)
        kafka.create_topic("fine", 1)
        kafka.create_topic("small", 1, config={"max.message.bytes": "1000"})
        kafka.faults.error(PRODUCE, NotEnoughReplicas, topic="refused")
        yield kafka


def ended(
    kafka: EmbeddedKafka, body: str, driver: str = "threads"
) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, at which nothing is ignored."""
    done = run(body, kafka.bootstrap, prelude=PRELUDE, driver=driver)
    assert "Exception ignored" not in done.stderr, done.stderr
    assert "ImportError" not in done.stderr, done.stderr
    return done


# ---- what is a loss ----

LOSSES = {
    "never closed": ("producer = make(); lose(producer)", 3),
    "collected": ("lose(make())", 3),
    "collected, with handles that are kept": ("kept = hold(make())", 3),
    "a close with a timeout, and handles that nobody reads": (
        "producer = make(); kept = hold(producer); producer.close(0)",
        3,
    ),
    "the same, by a call for many": (
        "producer = make(); kept = producer.send_many('refused', [b''] * 3); producer.close(0)",
        3,
    ),
    "the same, collected later": (
        "producer = make(); kept = hold(producer); producer.close(0); del kept",
        3,
    ),
    "a failure that only the log had": (
        """
        producer = make()
        producer.send_nowait("small", bytes(2000))
        while producer._core.queues.has_unlogged or not producer.metrics()["records_failed"]:
            time.sleep(0.01)
        """,
        1,
    ),
    "a close in a block that raised": (
        """
        try:
            with make() as producer:
                producer.send_nowait("small", bytes(2000))
                raise LookupError
        except LookupError:
            pass
        """,
        1,
    ),
    "two producers": ("first, second = make(5), make(77); lose(first); lose(second)", 6),
    "two, the other way round": ("first, second = make(), make(5); lose(first); lose(second)", 6),
    "one of two producers": ("first, second = make(), make(0); lose(first); lose(second)", 6),
    "a producer in a daemon thread": (
        """
        made = threading.Event()
        def job():
            producer = make()
            lose(producer)
            made.set()
            threading.Event().wait()
        threading.Thread(target=job, daemon=True).start()
        made.wait()
        """,
        3,
    ),
    "a user's atexit function": (
        """
        import atexit
        @atexit.register
        def job():
            lose(make())
        """,
        3,
    ),
    "sys.exit(0)": ("producer = make(); lose(producer); sys.exit(0)", 3),
}

CHILD_THAT_LOSES = """
pid = os.fork()
if pid == 0:
    producer = make()
    lose(producer)
    sys.exit()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


FORK = pytest.mark.not_under("thread", "a forked child must not start threads there")
FORKING = "a child that ends by itself"


@pytest.mark.parametrize("name", [*LOSSES, pytest.param(FORKING, marks=FORK)])
def test_a_loss_is_told_and_is_the_status(kafka: EmbeddedKafka, driver: str, name: str) -> None:
    body, count = (CHILD_THAT_LOSES, 3) if name == FORKING else LOSSES[name]
    done = ended(kafka, body, driver)
    assert done.returncode == STATUS, done.stderr
    assert counted_aloud(done.stderr) == count, done.stderr


# ---- what is none ----

NO_LOSSES = {
    "all was delivered": "producer = make(); producer.send('fine', b'').result()",
    "the flush has raised": """
        producer = make()
        producer.send_nowait("small", bytes(2000))
        with contextlib.suppress(DeliveryError):
            producer.flush()
        """,
    "the close has raised": """
        producer = make()
        lose(producer)
        with contextlib.suppress(DeliveryError):
            producer.close(0)
        """,
    "the handles were read": """
        producer = make()
        kept = hold(producer)
        producer.close(0)
        for handle in kept:
            assert handle.exception() is not None
        """,
    "the call for many was read": """
        producer = make()
        kept = producer.send_many("refused", [b""] * 3)
        producer.close(0)
        assert kept.result().failed == 3
        """,
    "callbacks were called": """
        producer = make()
        errors = []
        for _ in range(3):
            producer.send_nowait("refused", b"", on_delivery=lambda error, _: errors.append(error))
        producer.close(0)
        assert len(errors) == 3
        """,
    "the parent has lost, before": """
        producer = make()
        lose(producer)
        del producer
        while threading.active_count() > 1:
            time.sleep(0.01)
        sys.stderr.write("forking")
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        os._exit(0)
        """,
}


@pytest.mark.threads_only(SHARED)
@pytest.mark.parametrize("name", NO_LOSSES)
def test_what_was_told_is_not_the_status(kafka: EmbeddedKafka, driver: str, name: str) -> None:
    body = NO_LOSSES[name]
    if "parent" in name:
        body = body.replace("make()", "make(delivery_timeout_ms=300, request_timeout_ms=100)")
    done = ended(kafka, body, driver)
    assert done.returncode == 0, done.stderr


def test_the_default_is_the_status_that_python_has(kafka: EmbeddedKafka) -> None:
    done = ended(kafka, "producer = make(0); lose(producer)")
    assert done.returncode == 0, done.stderr
    assert counted_aloud(done.stderr) == 3


# ---- a status of the program's own ----


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("sys.exit(3)", 3),
        ("sys.exit('words')", 1),
        ("raise LookupError", 1),
        ("signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
        ("os._exit(4)", 4),
    ],
)
def test_a_status_of_the_programs_own_stays(kafka: EmbeddedKafka, end: str, status: int) -> None:
    done = ended(kafka, f"producer = make(); lose(producer)\n{end}")
    assert done.returncode in statuses(status), done.stderr


# ---- what is done before the process ends, and what is not ----


def test_all_of_pythons_own_end_comes_before(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """Exit functions of all ages, finalizers, a log file, and what was not flushed."""
    script = tmp_path / "script.py"
    script.write_text(
        "import atexit, logging, os, sys, tempfile, weakref\n"
        "atexit.register(print, 'registered before the import')\n"
        "logging.basicConfig(filename=sys.argv[2])\n"
        "folder = tempfile.TemporaryDirectory(dir=sys.argv[3])\n"
        "from kafka_fast import Producer\n"
        "atexit.register(print, 'registered after it')\n"
        "class Last:\n"
        "    def __del__(self, print=print):\n"
        "        print('a finalizer')\n"
        "last = Last()\n"
        "producer = Producer(bootstrap_servers=sys.argv[1], exit_flush_timeout_ms=10,\n"
        "                    exit_status_on_loss=9)\n"
        "producer.send_nowait('refused', b'')\n"
        "print('not flushed by hand')\n"
    )
    folders = tmp_path / "folders"
    folders.mkdir()
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, script, kafka.bootstrap, log, folders],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 9, done.stderr
    assert done.stdout.splitlines() == [
        "not flushed by hand",
        "registered after it",
        "registered before the import",
        "a finalizer",
    ]
    assert "1 record was not delivered" in log.read_text()
    assert list(folders.iterdir()) == []
    assert done.stderr == ""


def test_what_c_has_buffered_is_flushed_before(kafka: EmbeddedKafka) -> None:
    done = ended(
        kafka,
        """
        producer = make()
        lose(producer)
        ctypes.CDLL(None).printf(b"from C")  # into a pipe: buffered
        """,
    )
    assert done.returncode == STATUS, done.stderr
    assert done.stdout == "from C"


def test_a_client_whose_end_raises_keeps_no_other_from_its_own(kafka: EmbeddedKafka) -> None:
    """Regression: where warnings are errors, the third of three clients was never ended."""
    done = run(
        """
        warnings.simplefilter("error", ResourceWarning)
        producers = [make(), make(), make()]
        for producer in producers:
            lose(producer)
        """,
        kafka.bootstrap,
        prelude=PRELUDE,
    )
    assert done.returncode == STATUS, done.stderr
    assert counted_aloud(done.stderr) == 9, done.stderr
    assert "was not closed" in done.stderr


# ---- children of multiprocessing ----

CHILD = """
def job(end):
    producer = make()
    lose(producer)
    if end == "raise":
        raise LookupError("the child's own")
    if end.isdecimal():
        sys.exit(int(end))
"""


@FORK
@pytest.mark.parametrize(("end", "status"), [("", STATUS), ("0", STATUS), ("3", 3), ("raise", 1)])
@pytest.mark.parametrize("inside_an_exception", [False, True], ids=["plain", "handling an error"])
def test_a_forked_child_of_multiprocessing(
    kafka: EmbeddedKafka, end: str, status: int, *, inside_an_exception: bool
) -> None:
    """It leaves by os._exit, and the parent may start it in an `except` clause.

    Regression: from Python 3.14 on its finalizers come when its status is settled.
    """
    start = f"process = multiprocessing.get_context('fork').Process(target=job, args=({end!r},))\n"
    start += "process.start()\nprocess.join()\nprint(process.exitcode)\n"
    if inside_an_exception:
        start = "try:\n    raise KeyError\nexcept KeyError:\n    " + start.replace("\n", "\n    ")
    done = ended(kafka, CHILD + start)
    assert done.stdout == f"{status}\n", done.stderr
    assert ("the child's own" in done.stderr) == (end == "raise")
    assert counted_aloud(done.stderr) == 3, done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_children_of_multiprocessing(
    kafka: EmbeddedKafka, tmp_path: Path, method: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "from kafka_fast import Producer\n"
        "def job(servers):\n"
        "    producer = Producer(bootstrap_servers=servers, exit_flush_timeout_ms=10,\n"
        "                        exit_status_on_loss=9)\n"
        "    producer.send_nowait('refused', b'')\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context({method!r})\n"
        "    process = context.Process(target=job, args=(sys.argv[1],))\n"
        "    process.start()\n"
        "    process.join()\n"
        "    print(process.exitcode)\n"
    )
    done = subprocess.run(
        [sys.executable, script, kafka.bootstrap], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "9\n", done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    assert done.returncode == 0


@FORK
def test_what_a_child_prints_as_it_ends_is_there(kafka: EmbeddedKafka) -> None:
    """Regression: from Python 3.14 on nobody flushes after a child's finalizers."""
    done = ended(
        kafka,
        """
        def job():
            producer = make()
            producer.send_nowait("refused", b"", on_delivery=lambda error, _: print("told"))
        process = multiprocessing.get_context("fork").Process(target=job)
        process.start()
        process.join()
        """,
    )
    assert done.stdout == "told\n", done.stderr
