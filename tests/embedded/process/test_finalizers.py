"""Finalizers when imports are dead: nothing can be imported, or all names of our modules are gone.

So it is at the end of the interpreter. Each script makes what has finalizers, has the imports die,
and lets it go. What compiled finalizers look up is checked in tests/test_finalizers.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kafka_fast.errors import NotEnoughReplicas
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from tests.embedded.consuming import fill
from tests.embedded.process.test_producer_endings import counted_aloud
from tests.embedded.processes import run

COMPLAINTS = re.compile(r"Exception ignored|Traceback|Error\b|dead")
"""What Python says of a finalizer that has failed, but for the names of levels in the log."""

PRELUDE = """
import asyncio, builtins, ipaddress, ssl, types  # what a control thread may import late
from kafka_fast import aio
from kafka_fast.net.process import process_life

servers = sys.argv[1]
warnings.simplefilter("ignore", ResourceWarning)
real_import = builtins.__import__

def no_import(name, *rest):
    if name in sys.modules and threading.current_thread() is not threading.main_thread():
        return real_import(name, *rest)  # a control thread that begins to connect
    raise ImportError(f"imports are dead: {name}")

def kill_imports():
    sys.meta_path, sys.path_hooks = [], []
    builtins.__import__ = no_import

def revive_imports():
    builtins.__import__ = real_import

def clear_names():
    kill_imports()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "kafka_fast":
            for key in list(vars(module)):
                if not key.startswith("__"):
                    vars(module)[key] = None

def producer(kind=Producer, **more):
    return kind(bootstrap_servers=servers, linger_ms=0, **more)

def sender(topic, **more):
    made = producer(**more)
    made.partitions_for(topic)
    return made

class Held:
    pass

held = Held()
"""

CASES = {
    "an open producer": """
held.client = sender("fine")
held.client.send("fine", b"before").result()
held.client.send_nowait("fine", b"pending")
held.client.send_nowait("fine", b"called", on_delivery=lambda *_: None)
""",
    "an open producer that compresses": """
held.client = sender("fine", compression_type="gzip")
held.client.send("fine", b"x" * 2000).result()
""",
    "handles of a closed producer": """
held.client = sender("refused")
held.handles = [held.client.send("refused", b"") for _ in range(3)]
held.far = held.client.send("refused", b"", timestamp_ms=1)
held.many = held.client.send_many("refused", [b""] * 3)
held.client.close(0)
""",
    "a producer with TLS": """
held.client = producer(security_protocol="SSL")
""",
    "a producer with Python's ssl": """
held.client = producer(security_protocol="SSL", ssl_context=ssl.create_default_context())
""",
    "an open consumer": """
held.client = Consumer(bootstrap_servers=servers, auto_offset_reset="earliest")
held.client.assign([TopicPartition("filled", 0)])
held.records = next(held.client.batches(5))
held.each = iter(held.client)
held.record = next(held.each)
""",
    "the rest of a range": """
held.range = read_range("filled", bootstrap_servers=servers, max_records=5)
held.records = next(held.range)
held.tables = held.range.tables()
""",
    "clients of asyncio": """
async def use():
    held.client = producer(aio.Producer)
    await held.client.partitions_for("fine")
    held.handle = await held.client.send("fine", b"")
    held.range = aio.read_range("filled", bootstrap_servers=servers, max_records=5)
    held.records = await held.range.__anext__()
    held.consumer = aio.Consumer(bootstrap_servers=servers)
asyncio.run(use())
""",
    "calls that nobody awaits": """
async def use():
    held.client = producer(aio.Producer)
    held.call = held.client.send("fine", b"")
    held.consumer = aio.Consumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    held.poll = held.consumer.poll()
asyncio.run(use())
""",
    "cycles of all of them": """
held.me = held
held.client = sender("fine")
held.handle = held.client.send("fine", b"")
held.consumer = Consumer(bootstrap_servers=servers)
held.range = read_range("filled", bootstrap_servers=servers, max_records=5)
held.records = next(held.range)
""",
}


@pytest.fixture(name="kafka", scope="module")
def refusing_broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=1) as kafka:
        for topic in ("fine", "filled", "refused"):
            kafka.create_topic(topic, 1)
        fill(kafka, "filled", 100)
        kafka.faults.error(PRODUCE, NotEnoughReplicas, topic="refused")
        yield kafka


@pytest.mark.parametrize("name", CASES)
def test_without_imports(kafka: EmbeddedKafka, name: str) -> None:
    """Clients that are dropped end in the background, with all of their threads, as always."""
    done = run(
        CASES[name]
        + """
warnings.simplefilter("default", RuntimeWarning)
kill_imports()
del held
gc.collect()
deadline = time.monotonic() + 50
while threading.active_count() > 1 and time.monotonic() < deadline:
    time.sleep(0.01)
revive_imports()
print(threading.enumerate())
""",
        kafka.bootstrap,
        prelude=PRELUDE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[<_MainThread"), done.stdout
    assert done.stdout.count("<") == 1, done.stdout
    assert not COMPLAINTS.search(done.stderr), done.stderr
    assert ("never awaited" in done.stderr) == ("nobody awaits" in name)


@pytest.mark.parametrize("name", CASES)
def test_without_names(kafka: EmbeddedKafka, name: str) -> None:
    """After our own last step: what a client holds goes in an interpreter that ends."""
    done = run(
        CASES[name]
        + """
process_life.end_clients()
while threading.active_count() > 1:  # the callback thread has nothing left to do
    time.sleep(0.01)
sys.stderr.write("the end\\n")
warnings.simplefilter("ignore")
clear_names()
del held
gc.collect()
os._exit(0)
""",
        kafka.bootstrap,
        prelude=PRELUDE,
    )
    assert done.returncode == 0, done.stderr
    _, _, err = done.stderr.partition("the end\n")
    assert err == ""


@pytest.mark.parametrize("name", CASES)
def test_at_the_end(kafka: EmbeddedKafka, name: str) -> None:
    done = run(CASES[name], kafka.bootstrap, prelude=PRELUDE)
    assert done.returncode == 0, done.stderr
    assert not COMPLAINTS.search(done.stderr.replace("UsageError", "")), done.stderr


# ---- handles that nobody reads, wherever they are at the end ----

PLACES = {
    "a list of the module": "kept = handles",
    "each a name of the module": "one, two, three = handles",
    "a dictionary of the module": "kept = {handle: handle for handle in handles}",
    "a default of a function": "def function(kept=handles): pass",
    "a closure": "def outer(kept):\n    return lambda: kept\nfunction = outer(handles)",
    "an attribute of a class": "class Kept:\n    kept = handles",
    "a cycle": "kept = [handles]; kept.append(kept)",
    "a local of this thread": "kept = threading.local(); kept.handles = handles",
    "a finalizer of the user's": """
class Kept:
    def __del__(self):
        self.handles.clear()
kept = Kept(); kept.handles = handles
""",
    "a generator that waits": """
def generate(kept):
    yield kept
    raise AssertionError
generator = generate(handles); next(generator)
""",
    "a coroutine that waits": """
async def wait(kept):
    await asyncio.sleep(100)
    return kept
coroutine = wait(handles)
asyncio.new_event_loop().call_soon(coroutine.send, None)
warnings.simplefilter("ignore")
""",
    "the traceback of an error": """
def fail(kept):
    raise LookupError
try:
    fail(handles)
except LookupError as error:
    kept = error
""",
    "the frame of a daemon thread": """
def stay(kept):
    began.set()
    threading.Event().wait()
began = threading.Event()
threading.Thread(target=stay, args=(handles,), daemon=True).start()
began.wait()
""",
    "another module": """
module = sys.modules["other"] = types.ModuleType("other")
module.kept = handles
""",
    "a module that was imported before": "gc.kept = handles",
    "a module of ours": "aio.kept = handles",
    "the module of the log": "import logging; logging.kept = handles",
    "the builtins": "builtins.kept = handles",
    "sys": "sys.kept = handles",
    "an exit function of C": """
@ctypes.CFUNCTYPE(None)
def last(kept=handles): pass
""",
    "a reference that is leaked": "ctypes.pythonapi.Py_IncRef(ctypes.py_object(handles))",
    "a future of many": "handles.clear(); kept = many",
}

ENDS = {
    "the last line": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "an exception": ("raise LookupError", 1),
}


def told_once(err: str) -> None:
    assert counted_aloud(err) == 6, err
    assert len(re.findall(r"ERROR:kafka_fast\.producer:\[producer-1\] 6 records", err)) == 1, err
    assert "Exception ignored" not in err, err
    assert "ImportError" not in err, err


@pytest.mark.parametrize("name", PLACES)
def test_unread_handles_are_told_by_the_log(kafka: EmbeddedKafka, name: str) -> None:
    """Regression: a traceback of ImportError stood in place of the ERROR, for most places."""
    done = run(HOLD + PLACES[name] + "\ndel handles, many\n", kafka.bootstrap, prelude=PRELUDE)
    assert done.returncode == 0, done.stderr
    told_once(done.stderr)


@pytest.mark.parametrize("name", ENDS)
def test_unread_handles_are_told_however_it_ends(kafka: EmbeddedKafka, name: str) -> None:
    end, status = ENDS[name]
    done = run(HOLD + end, kafka.bootstrap, prelude=PRELUDE)
    assert done.returncode == status, done.stderr
    told_once(done.stderr)


HOLD = """
import logging
logging.basicConfig()
client = sender("refused", retry_backoff_ms=60_000, retry_backoff_max_ms=60_000)
handles = [client.send("refused", b"") for _ in range(3)]
many = client.send_many("refused", [b""] * 3)
client.close(0)
"""
