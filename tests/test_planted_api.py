"""What a new API touches: planted in a copy of the package, and asked over a socket.

The planted parts are an API that Kafka does not have, a call that the requester sends for it, and
the embedded broker's answer. A program in another process uses all of them: a client's control
plane finds the version that both sides know, asks, and reads what the broker's handler counted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "kafka_fast"

MOST_FILES_OF_AN_API = 3
MOST_FILES_OF_A_HANDLER = 1

API = {
    "protocol/apis/topics/count_records.py": '''
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
    "control/count_records.py": '''
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
    "testing/broker/handlers/topics/count_records.py": '''
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
PROGRAM = """
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


def plant(copy: Path, files: dict[str, str]) -> None:
    """Write new files into a copy of the package."""
    for name, text in files.items():
        (copy / name).write_text(text.lstrip(), encoding="utf-8")


def touched(copy: Path) -> list[str]:
    """Return the files of a copy that the package lacks, or has with other contents."""
    return sorted(
        name
        for path in copy.rglob("*")
        if not path.is_symlink() and path.is_file() and path.suffix != ".pyc"
        if not (PACKAGE / (name := path.relative_to(copy).as_posix())).exists()
        or (PACKAGE / name).read_bytes() != path.read_bytes()
    )


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the program on the copy in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_an_api_and_its_handler(tmp_path: Path) -> None:
    copy = tmp_path / "kafka_fast"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, copy, copy_function=os.symlink, ignore=ignored)

    plant(copy, API)
    api = touched(copy)
    assert api == sorted(API)
    assert len(api) <= MOST_FILES_OF_AN_API
    unanswered = run(tmp_path)
    assert "CountRecords: this client speaks 0-1, the broker does not offer it" in unanswered.stdout

    plant(copy, HANDLER)
    handler = sorted(set(touched(copy)) - set(api))
    assert handler == sorted(HANDLER)
    assert len(handler) <= MOST_FILES_OF_A_HANDLER
    answered = run(tmp_path)
    assert (answered.stdout, answered.stderr) == ("CountRecords orders 3\n", "")
