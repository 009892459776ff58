"""Where a stream keeps its first offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark.source.initial_offsets import NOTE, GroupStore, LocationStore, store_of
from kafka_fast.spark.source.subscription import SourceSubscription
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.unit.spark.source.fakes import A, B, FakeClient, options

TOPIC = SourceSubscription(topics=("t",))
OFFSETS = {A: 3, B: 2**40}


@pytest.fixture(params=["path", "uri"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / "new folder" / "offsets"
    return str(path) if request.param == "path" else path.as_uri()


def test_a_file(location: str, tmp_path: Path) -> None:
    assert LocationStore(location, TOPIC).load() is None
    LocationStore(location, TOPIC).keep(OFFSETS)
    assert LocationStore(location, TOPIC).load() == OFFSETS
    assert [it.name for it in (tmp_path / "new folder").iterdir()] == ["offsets"]


def test_another_querys_file_is_refused(location: str) -> None:
    LocationStore(location, TOPIC).keep(OFFSETS)
    with pytest.raises(UsageError, match="belongs to a query that reads"):
        LocationStore(location, SourceSubscription(topics=("s",))).load()


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"reads": [], "offsets": 1}'])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "offsets").write_text(content)
    with pytest.raises(UsageError, match="is not a file of first offsets"):
        LocationStore(str(tmp_path / "offsets"), TOPIC).load()


def test_a_group() -> None:
    client = FakeClient({})
    store = GroupStore(client, TOPIC)
    assert store.load() is None
    store.keep(OFFSETS)
    assert client.group[A] == OffsetAndMetadata(3, metadata=NOTE)
    assert GroupStore(client, TOPIC).load() == OFFSETS
    assert GroupStore(client, SourceSubscription(topics=("s",))).load() is None
    assert GroupStore(client, SourceSubscription(partitions=(A,))).load() == {A: 3}
    assert GroupStore(client, SourceSubscription(pattern="t")).load() == OFFSETS


def test_a_groups_progress_is_no_start() -> None:
    """Once a batch is committed, Spark asks for first offsets only for a new checkpoint."""
    client = FakeClient({})
    store = GroupStore(client, TOPIC)
    store.keep(OFFSETS)
    client.commit({A: OffsetAndMetadata(5)})
    client.commit({TopicPartition("s", 0): OffsetAndMetadata(5, metadata=NOTE)})
    assert store.load() is None


def test_options_choose(tmp_path: Path) -> None:
    client = FakeClient({})
    assert store_of(options(), client) is None
    assert isinstance(store_of(options(commitOffsetsToGroup="g"), client), GroupStore)
    both = options(commitOffsetsToGroup="g", initialOffsetsLocation=str(tmp_path))
    assert isinstance(store_of(both, client), LocationStore)
