"""What a new part touches: planted in a copy of the tree, counted, and used by a program.

An API and its handler: an API that Kafka does not have, a call that the requester sends for it, and
the embedded broker's answer. A client's control plane finds the version that both sides know, asks,
and reads what the broker's handler counted.

A kind of client: its control plane, its core with what users call, its public name, and its place
in the layers. It counts the nodes of an embedded broker.

A command and an event between the planes: a class and a handler for each. Their code in C and
Cython is made and compiled, and a consumer's control plane asks its data plane how many streams it
has.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAKER = runpy.run_path(str(ROOT / "src_c" / "make_messages"))
SETUP = runpy.run_path(str(ROOT / "setup.py"))

MOST_FILES_OF_AN_API = 3
MOST_FILES_OF_A_HANDLER = 1
MOST_FILES_OF_A_CLIENT = 4
MOST_FILES_OF_A_COMMAND = 2
MOST_FILES_OF_AN_EVENT = 2

API = {
    "kafka_fast/protocol/apis/topics/count_records.py": '''
from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, array, int16, int64, string


class CountRecordsRequest(Request, api_key=9999, versions="0-1", flexible="1+"):
    """Topics whose records are counted."""

    topics: list[str] = array(string, "0+")


class CountRecordsResponse(Response, api_key=9999, versions="0-1", flexible="1+"):
    """How many there are."""

    error_code: int = int16("0+")
    counts: list[int] = array(int64, "0+")
''',
    "kafka_fast/control/count_records.py": '''
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kafka_fast.control.requests.call import AnswerSource, Call
from kafka_fast.control.requests.meanings import Done, Meaning, meaning_of
from kafka_fast.control.requests.targets import AnyNode
from kafka_fast.errors import KafkaError
from kafka_fast.protocol.apis.topics.count_records import CountRecordsRequest, CountRecordsResponse


class CountRecords(Call[str, int]):
    """Asks any node."""

    request_class = CountRecordsRequest
    response_class = CountRecordsResponse

    def __init__(self, on_end: Callable[[str, object], None]) -> None:
        super().__init__(AnyNode(), timeout=10.0)
        self._on_end = on_end

    def build(self, items: Sequence[str], version: int) -> CountRecordsRequest:
        return CountRecordsRequest(topics=list(items))

    def read(
        self, answer: CountRecordsResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[int]]]:
        if answer.error_code:
            for topic in items:
                yield topic, meaning_of(answer.error_code, "CountRecords", "")
        for topic, count in zip(items, answer.counts):
            yield topic, Done(count)

    def handle_done(self, item: str, value: int, now: float) -> None:
        self._on_end(item, value)

    def handle_failed(self, item: str, error: KafkaError, now: float) -> None:
        self._on_end(item, error)
''',
}
HANDLER = {
    "kafka_fast/testing/broker/handlers/topics/count_records.py": '''
from __future__ import annotations

from kafka_fast.protocol.apis.topics.count_records import CountRecordsRequest, CountRecordsResponse
from kafka_fast.testing.broker.registry import answers
from kafka_fast.testing.broker.received_request import ReceivedRequest


@answers(CountRecordsRequest)
def answer(request: ReceivedRequest) -> CountRecordsResponse:
    """Count them."""
    planned = request.planned_error()
    if planned is not None:
        return CountRecordsResponse(error_code=planned.code)
    topics = [request.state.topics[name] for name in request.body.topics]
    counts = [sum(one.log.end_offset for one in topic.partitions) for topic in topics]
    return CountRecordsResponse(counts=counts)
''',
}
ASK_BROKER = """
import queue
from kafka_fast import Producer
from kafka_fast.errors import CoordinatorLoadInProgress
from kafka_fast.control.count_records import CountRecords
from kafka_fast.protocol.apis import api_name
from kafka_fast.testing import EmbeddedKafka

with EmbeddedKafka(brokers=1, partitions=2) as kafka:
    kafka.produce("orders", ["1", "2", "3"])
    kafka.faults.error(9999, CoordinatorLoadInProgress, count=1)  # to be tried again
    ended = queue.Queue()
    call = CountRecords(lambda topic, end: ended.put((topic, end)))
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        core = producer._core
        requester = core.control.requester
        core.call(lambda now: requester.open_call(call, ["orders"], deadline=now + 20.0))
        print(api_name(9999), *ended.get(timeout=30))
"""

CLIENT = {
    "kafka_fast/control/census_control.py": '''
from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from kafka_fast.config import AdminSettings
from kafka_fast.control.client_control import ClientControl
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import ClusterChanges
from kafka_fast.errors import KafkaError
from kafka_fast.instants import NEVER
from kafka_fast.logs import get_logger
from kafka_fast.values import assert_never

Done = Callable[[int | KafkaError], None]


class CensusControl(ClientControl[AdminSettings, NoReturn, NoReturn]):
    """Policy of a client that counts nodes."""

    kind = "census"
    logger = get_logger("kafka_fast.census")

    def __init__(
        self,
        settings: AdminSettings,
        client_id: str,
        random: Callable[[], float],
        wall_ms: Callable[[], int],
    ) -> None:
        super().__init__(settings, client_id, random, wall_ms, Cluster(settings, random))
        self._asking: list[Done] = []

    def count_nodes(self, done: Done) -> None:
        """Have `done` called with the number of nodes."""
        self._asking.append(done)
        self.cluster.request_refresh("nodes are counted")

    def _handle_changes(self, changes: ClusterChanges, now: float) -> None:
        asking, self._asking = self._asking, []
        for done in asking:
            done(len(self.cluster.nodes))

    def _tick(self, now: float) -> None: ...

    def _next_deadline(self) -> float:
        return NEVER

    def _handle_own(self, event: NoReturn, now: float) -> None:
        assert_never(event)

    def _stop(self, error: KafkaError) -> None:
        for done in self._asking:
            done(error)
''',
    "kafka_fast/census.py": '''
from __future__ import annotations

from typing import NoReturn

from kafka_fast.config import AdminSettings, admin_settings
from kafka_fast.control.census_control import CensusControl
from kafka_fast.control.messages import DumpEvent, TransportEvent
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.net.core import client_carrier
from kafka_fast.net.core.waiting_core import END_PATIENCE, WaitingCore
from kafka_fast.net.planes import admin_plane
from kafka_fast.net.threaded_host import ThreadedHost
from kafka_fast.net.waiting.waits import Answer, ClientWaits
from kafka_fast.values import assert_never


class CensusCore(WaitingCore[NoReturn, NoReturn]):
    """Both planes of a client that counts nodes."""

    kind = "census"
    control: CensusControl
    exit_patience = 0.0

    def __init__(self, settings: AdminSettings, client_id: str, host: ThreadedHost) -> None:
        control = CensusControl(settings, client_id, host.random, host.wall_ms)
        super().__init__(client_id, host, control, admin_plane(host.environment, settings))
        self.waits = ClientWaits(control.view, host.now, memory=settings.request_timeout)
        self._start()

    def _read_event(self, event: PlaneEvent) -> TransportEvent | DumpEvent:
        return client_carrier.read_event(event)

    def _touch(self, now: float) -> None: ...

    def _program(self, command: NoReturn) -> None:
        assert_never(command)

    def begin_exit(self) -> None: ...

    def wait_exit(self, timeout: float) -> bool:
        return True

    def log_exit(self) -> None: ...

    def end_exit(self, interrupted: str) -> None:
        self._end(END_PATIENCE)


class Census:
    """Counts nodes."""

    def __init__(self, **properties: object) -> None:
        settings = admin_settings(properties, {})
        self._core = CensusCore(settings, "census-1", ThreadedHost(settings))

    def count_nodes(self, timeout: float) -> int:
        """Return how many nodes the cluster has."""
        core, answer = self._core, Answer[int]()
        core.call(lambda now: core.control.count_nodes(answer.set))
        return core.driver.run(core.waits.wait(answer, core.now() + timeout, "the nodes"))

    def close(self) -> None:
        """Stop."""
        self._core.close()
''',
    "kafka_fast/__init__.py": [('        "Consumer": ', '        "Census": "census",\n')],
    "tests/layers.py": [
        ('"admin", "aio"}  # ""', '"census", '),
        ('    "admin": BASE', '    "census": BASE | BYTES | {"net", "control", "dataplane"},\n'),
    ],
}
COUNT_NODES = """
from kafka_fast import Census
from kafka_fast.testing import EmbeddedKafka

with EmbeddedKafka(brokers=3) as kafka:
    census = Census(bootstrap_servers=kafka.bootstrap)
    print(census.count_nodes(30.0))
    census.close()
"""

MESSAGES = "kafka_fast/control/consumer/consumer_messages.py"
EVENT = {
    MESSAGES: [
        (
            "FetchEvent: TypeAlias",
            '''
class StreamsCounted(Value):
    """Says how many streams there are."""

    token: Int64
    count: Int32


''',
        ),
        ("StreamsStopped | FetchPunt\n", "StreamsCounted | "),
    ],
    "kafka_fast/control/consumer/consumer_control.py": [
        ("    StreamsStopped,\n", "    StreamsCounted,\n"),
        (
            "            case _:\n                assert_never(event)",
            "            case StreamsCounted():\n                self.counted = event\n",
        ),
    ],
}
COMMAND = {
    MESSAGES: [
        (
            "FetchCommand: TypeAlias",
            '''
class CountStreams(Value):
    """Asks how many streams there are."""

    token: Int64


''',
        ),
        ("    ProgramFetch | ", "    CountStreams | "),
    ],
    "kafka_fast/dataplane/fetch/_fetch_commands.pyx": [
        (
            "cdef void on_program_fetch(",
            """
cdef void on_count_streams(sender_state* state, kf_count_streams* command,
                           double now) noexcept nogil:
    cdef kf_event* event = kf_event_new(KF_EVENT_STREAMS_COUNTED)
    cdef kf_stream* stream = state.plane.fetcher.streams
    event.streams_counted.token = command.token
    while stream != NULL:
        event.streams_counted.count += 1
        stream = stream.next
    kf_plane_event(state.plane, event)


""",
        ),
    ],
}
COMPILED = [
    "kafka_fast/dataplane/fetch/_fetch_commands",
    "kafka_fast/dataplane/core/_dispatch",
    "kafka_fast/consumer/_fetch_carrier",
]
"""What reads the new kinds. They come last, so all other extensions may stay as they are."""

COUNT_STREAMS = """
from kafka_fast import Consumer, TopicPartition
from kafka_fast.control.consumer.consumer_messages import CountStreams
from kafka_fast.testing import EmbeddedKafka

with EmbeddedKafka(brokers=1) as kafka, Consumer(bootstrap_servers=kafka.bootstrap) as consumer:
    kafka.create_topic("orders", 3)
    consumer.assign([TopicPartition("orders", number) for number in range(3)])
    core = consumer._core
    core.call(lambda now: core.control._commands.append(CountStreams(7)))
    while not hasattr(core.control, "counted"):
        consumer.poll(0.1)
    print(core.control.counted)
"""


def copy_of_tree(tree: Path) -> Path:
    """Return a copy of what a part may touch; the extensions are those of this tree."""

    def copy_file(source: str, target: str) -> None:
        (os.symlink if source.endswith(".so") else shutil.copy)(source, target)

    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("kafka_fast", "src_c"):
        shutil.copytree(ROOT / folder, tree / folder, copy_function=copy_file, ignore=ignored)
    (tree / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "layers.py", tree / "tests")
    return tree


def plant(tree: Path, part: Mapping[str, str | list[tuple[str, str]]]) -> list[str]:
    """Put a part into a copy of the tree; return the files that this touches.

    Args:
        tree: the copy.
        part: for each file its text, if it is new; or what is inserted, each before a text that
            stands there once.
    """
    for name, change in part.items():
        path = tree / name
        if isinstance(change, str):
            assert not path.exists()
            path.write_text(change.lstrip(), encoding="utf-8")
            continue
        text = path.read_text(encoding="utf-8")
        for before, inserted in change:
            assert text.count(before) == 1, (name, before)
            text = text.replace(before, inserted.lstrip("\n") + before)
        path.write_text(text, encoding="utf-8")
    return sorted(part)


def run(tree: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program on a copy of the tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=120,
    )


def violations(tree: Path) -> list[str]:
    """Return what the copy's own table of layers says of the copy."""
    found: list[str] = runpy.run_path(str(tree / "tests" / "layers.py"))["violations"](tree)
    return found


def compile_extensions(tree: Path, modules: list[str]) -> None:
    """Make what follows from the messages, and compile some extensions in a copy of the tree."""
    MAKER["write_all"](tree)

    def call(*command: str) -> None:
        subprocess.run(command, cwd=tree, check=True)

    options = [f"{name}={value}" for name, value in SETUP["DIRECTIVES"].items()]
    sources = [f"src_c/{source}" for source in SETUP["C_LIBRARIES"]["kf_planes"]]
    gcc = ["gcc", "-std=gnu11", "-O0", "-fPIC", "-Isrc_c"]
    call(*gcc, "-Wswitch-enum", "-Werror", "-c", *sources)
    call("ar", "rcs", "libkf_planes.a", *(f"{Path(source).stem}.o" for source in sources))
    call(
        *(sys.executable, "-m", "cython", "-I."),
        *(argument for option in options for argument in ("-X", option)),
        *(f"{module}.pyx" for module in modules),
    )
    for module in modules:
        extension = f"{module}{sysconfig.get_config_var('EXT_SUFFIX')}"
        (tree / extension).unlink()  # a link to that of this tree
        python = f"-I{sysconfig.get_path('include')}"
        link = ["-shared", f"{module}.c", "-L.", "-lkf_planes", "-o", extension]
        call(*gcc, "-w", python, *link)


def test_an_api_and_its_handler(tmp_path: Path) -> None:
    tree = copy_of_tree(tmp_path)

    assert len(plant(tree, API)) <= MOST_FILES_OF_AN_API
    unanswered = run(tree, ASK_BROKER)
    assert "CountRecords: this client speaks 0-1, the broker does not offer it" in unanswered.stdout

    assert len(plant(tree, HANDLER)) <= MOST_FILES_OF_A_HANDLER
    answered = run(tree, ASK_BROKER)
    assert (answered.stdout, answered.stderr) == ("CountRecords orders 3\n", "")
    assert violations(tree) == []


def test_a_kind_of_client(tmp_path: Path) -> None:
    tree = copy_of_tree(tmp_path)
    assert len(plant(tree, CLIENT)) <= MOST_FILES_OF_A_CLIENT
    counted = run(tree, COUNT_NODES)
    assert (counted.stdout, counted.stderr) == ("3\n", "")
    assert violations(tree) == []


def test_a_command_and_an_event_between_the_planes(tmp_path: Path) -> None:
    tree = copy_of_tree(tmp_path)
    assert len(plant(tree, EVENT)) <= MOST_FILES_OF_AN_EVENT
    assert len(plant(tree, COMMAND)) <= MOST_FILES_OF_A_COMMAND
    compile_extensions(tree, COMPILED)
    counted = run(tree, COUNT_STREAMS)
    assert (counted.stdout, counted.stderr) == ("StreamsCounted(token=7, count=3)\n", "")
    assert violations(tree) == []
