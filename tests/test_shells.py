"""The clients for asyncio have the names, parameters and docstrings of the blocking ones."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path

import pytest

import kafka_fast
from kafka_fast import aio
from tests.shells import (
    ASYNCIO_ONLY,
    BLOCKING_ONLY,
    COMPILED,
    ROOT,
    SHELLS,
    WORDS,
    rewritten,
    stale,
    twins,
)

PAIRS = [
    pytest.param(getattr(kafka_fast, name), getattr(aio, name), id=name)
    for name in ("Admin", "Consumer", "Producer", "RecordRange", "RebalanceListener")
]


def test_the_files_are_as_the_blocking_clients_want_them() -> None:
    assert list(stale(ROOT)) == [], "python -m tests.shells"


def public_methods(kind: type) -> dict[str, object]:
    return {
        name: method
        for name, method in inspect.getmembers(kind, inspect.isroutine)
        if not name.startswith("_")
    }


@pytest.mark.parametrize(("blocking", "shell"), PAIRS)
def test_both_have_the_same_methods(blocking: type, shell: type) -> None:
    theirs, ours = public_methods(blocking), public_methods(shell)
    only = {f"{blocking.__name__}.{name}" for name in theirs.keys() - ours.keys()}
    assert only == {name for name in BLOCKING_ONLY if name.startswith(f"{blocking.__name__}.")}
    only = {f"{blocking.__name__}.{name}" for name in ours.keys() - theirs.keys()}
    assert only == {name for name in ASYNCIO_ONLY if name.startswith(f"{blocking.__name__}.")}


def parameters(function: object) -> list[tuple[str, object, object]]:
    """Return name, kind and default of each; a compiled method's self can have no other kind."""
    assert callable(function)
    return [
        (p.name, None if p.name == "self" else p.kind, p.default)
        for p in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize(("blocking", "shell"), PAIRS)
def test_both_take_the_same_arguments(blocking: type, shell: type) -> None:
    theirs, ours = public_methods(blocking), public_methods(shell)
    for name in theirs.keys() & ours.keys():
        assert parameters(theirs[name]) == parameters(ours[name]), name
    if blocking is not kafka_fast.RecordRange:  # users do not make those
        assert parameters(blocking) == parameters(shell)


def test_read_range_takes_the_same_arguments() -> None:
    assert inspect.signature(aio.read_range).parameters == (
        inspect.signature(kafka_fast.read_range).parameters
    )


def test_every_word_that_is_replaced_is_there() -> None:
    texts = []
    for shell in SHELLS:
        twin = twins(ROOT, shell)
        members = [member.docstring or "" for member in twin.members.values()]
        texts += [" ".join(text.split()) for text in [twin.docstring or "", *members]]
    said = "\n".join(texts)
    assert [blocking for blocking, _ in WORDS if blocking not in said] == []


DRIFTS = [
    pytest.param(
        "consumer/client.py",
        "aio/consumer.py",
        "timeout: float = 1.0, max_records",
        "timeout: float = 2.0, max_records",
        id="a default",
    ),
    pytest.param(
        "consumer/client.py",
        "aio/consumer.py",
        "def lag(self, timeout: float",
        "def lag(self, seconds: float",
        id="a parameter",
    ),
    pytest.param(
        "consumer/client.py",
        "aio/consumer.py",
        "-> set[str]:",
        "-> frozenset[str]:",
        id="a result",
    ),
    pytest.param(
        "consumer/client.py",
        "aio/consumer.py",
        "Automatic commits now cover the records of earlier calls.",
        "Automatic commits now cover nothing.",
        id="a docstring",
    ),
    pytest.param(
        "consumer/client.py",
        "aio/consumer.py",
        "self._calls.position(partition, timeout)",
        "self._calls.place(partition, timeout)",
        id="steps",
    ),
    pytest.param(
        "sending/bulk/_bulk.pyi",
        "aio/producer.py",
        'key: str | None = "key"',
        'key: str | None = "keys"',
        id="a stub",
    ),
    pytest.param(
        "sending/bulk/_bulk.pyx",
        "aio/producer.py",
        "headers: name of a column of list",
        "headers: The column of list",
        id="a docstring of a compiled method",
    ),
    pytest.param(
        "sending/_accumulator.pyx",
        COMPILED,
        "headers: (key, value) pairs or a mapping.",
        "headers: A mapping.",
        id="send",
    ),
    pytest.param(
        "consumer/ranges/record_range.py",
        "aio/range.py",
        "max_records: most records at a time.",
        "max_records: most records at once.",
        id="a function",
    ),
]


@pytest.mark.parametrize(("source", "target", "before", "after"), DRIFTS)
def test_what_changes_in_a_blocking_client_changes_in_the_other(
    tmp_path: Path, source: str, target: str, before: str, after: str
) -> None:
    for pattern in ("*.py", "*.pyi", "*.pyx"):
        for path in (ROOT / "kafka_fast").rglob(pattern):
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    changed = tmp_path / "kafka_fast" / source
    text = changed.read_text(encoding="utf-8")
    assert before in text
    changed.write_text(text.replace(before, after), encoding="utf-8")
    rewritten_files = stale(tmp_path)
    assert target in rewritten_files
    assert after in " ".join(rewritten_files[target].split())


def test_notes_and_bodies_of_asyncio_stay() -> None:
    path = "aio/consumer.py"
    text = (ROOT / "kafka_fast" / path).read_text(encoding="utf-8")
    note = "In an event loop, other tasks run at least once a millisecond"
    assert note in text
    other = text.replace(note, "In an event loop, others run at least once a millisecond")
    assert rewritten(ROOT, path, other) == other
    body = text.replace("await self._driver.yield_if_due()", "await self._driver.yield_now()")
    assert rewritten(ROOT, path, body) == body
