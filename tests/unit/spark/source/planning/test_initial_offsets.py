"""Where a stream keeps its first offsets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from platform import node

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark.source.planning.initial_offsets import (
    NOTE,
    GroupStore,
    LocationStore,
    check_location,
    store_of,
)
from kafka_fast.spark.source.planning.subscription import SourceSubscription
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
    LocationStore(location, TOPIC).save(OFFSETS)
    assert LocationStore(location, TOPIC).load() == OFFSETS
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["offsets"]


def test_another_querys_file_is_refused(location: str) -> None:
    LocationStore(location, TOPIC).save(OFFSETS)
    with pytest.raises(UsageError, match="belongs to a query that reads"):
        LocationStore(location, SourceSubscription(topics=("s",))).load()


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"reads": [], "offsets": 1}'])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "offsets").write_text(content)
    with pytest.raises(UsageError, match="is not a file of first offsets"):
        LocationStore(str(tmp_path / "offsets"), TOPIC).load()


@pytest.mark.parametrize("shape", ["{}", "file://{}", "{}/none/"])
def test_a_directory_is_no_file(tmp_path: Path, shape: str) -> None:
    """Regression: it was an OSError of pyarrow's, once the query ran."""
    location = shape.format(tmp_path)
    with pytest.raises(UsageError) as raised:
        check_location(options(initialOffsetsLocation=location))
    assert str(raised.value) == (
        f"initialOffsetsLocation {location} is a directory: name a file in it, such as "
        "first-offsets"
    )
    with pytest.raises(UsageError, match="is a directory"):
        LocationStore(location, TOPIC).load()


def test_a_location_that_may_be_a_file(location: str) -> None:
    check_location(options())
    check_location(options(initialOffsetsLocation=location))
    LocationStore(location, TOPIC).save(OFFSETS)
    check_location(options(initialOffsetsLocation=location))


@pytest.mark.parametrize("use", [LocationStore.check, LocationStore.load])
def test_a_file_system_that_is_not_there(use: Callable[[LocationStore], object]) -> None:
    with pytest.raises(UsageError) as raised:
        use(LocationStore("nowhere://me:hush@host/offsets", TOPIC))
    said = f"initialOffsetsLocation nowhere://****@host/offsets cannot be used on {node()}: "
    assert str(raised.value).startswith(said)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot be used on .*directory"):
        LocationStore(str(tmp_path / "file" / "offsets"), TOPIC).save(OFFSETS)


def test_a_group() -> None:
    client = FakeClient({})
    store = GroupStore(client, TOPIC)
    assert store.load() is None
    store.save(OFFSETS)
    assert client.group[A] == OffsetAndMetadata(3, metadata=NOTE)
    assert GroupStore(client, TOPIC).load() == OFFSETS
    assert GroupStore(client, SourceSubscription(topics=("s",))).load() is None
    assert GroupStore(client, SourceSubscription(partitions=(A,))).load() == {A: 3}
    assert GroupStore(client, SourceSubscription(pattern="t")).load() == OFFSETS


def test_a_groups_progress_is_no_start() -> None:
    """Once a batch is committed, Spark asks for first offsets only for a new checkpoint."""
    client = FakeClient({})
    store = GroupStore(client, TOPIC)
    store.save(OFFSETS)
    client.commit({A: OffsetAndMetadata(5)})
    client.commit({TopicPartition("s", 0): OffsetAndMetadata(5, metadata=NOTE)})
    assert store.load() is None


def test_options_choose(tmp_path: Path) -> None:
    client = FakeClient({})
    assert store_of(options(), client) is None
    assert isinstance(store_of(options(commitOffsetsToGroup="g"), client), GroupStore)
    both = options(commitOffsetsToGroup="g", initialOffsetsLocation=str(tmp_path))
    assert isinstance(store_of(both, client), LocationStore)
