"""Where a new stream keeps its first offsets until its first micro-batch is committed.

Spark's offset log holds only the *end* of micro-batch 0. If the query stops before that batch is
committed, Spark asks a Python source for its first offset again after the restart. An answer that
has moved on meanwhile, as `latest` does, would skip the records in between, in silence. (Spark's
own source keeps its first offsets in the checkpoint, which a Python source does not get to know.)

    initialOffsetsLocation    a file, best below the checkpoint, so that both are deleted together
    commitOffsetsToGroup      the group's offsets, with a note that they are the first ones
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from kafka_fast.errors import UsageError
from kafka_fast.logs import get_logger
from kafka_fast.spark.source.offsets import Offsets, describe, from_plain, to_plain
from kafka_fast.spark.source.options import SourceOptions
from kafka_fast.spark.source.planning.subscription import SourceSubscription
from kafka_fast.types import OffsetAndMetadata, TopicPartition

logger = get_logger(__name__)

NOTE = "kafka_fast: the first offsets of a query"
"""Metadata of committed offsets from which a query starts; the commit of a batch has none."""

LOGIN = re.compile(r"(?<=://)[^/@]*@")
"""Name and password in a URI."""

UNSAFE = (
    "a new stream that begins at 'latest' could lose records: if it stops before its first "
    "micro-batch is committed, Spark asks for the latest offsets again. Give "
    "option('initialOffsetsLocation', a file in the checkpoint's directory), or "
    "option('commitOffsetsToGroup', a group of this query alone), or begin at 'earliest', at "
    "offsets or at a time; or accept the loss with option('allowUnsafeLatest', 'true')"
)


class InitialOffsets(Protocol):
    """A place for the first offsets of a stream."""

    def load(self) -> Offsets | None:
        """Return what was kept; None: nothing."""

    def save(self, offsets: Offsets) -> None:
        """Keep the offsets, before anything is read from them."""


class GroupClient(Protocol):
    """The part of a consumer with a group that is used here."""

    def committed(
        self, partitions: None = None
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        """Return all offsets that the group has committed."""

    def commit(self, upto: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets for the group."""


def check_location(options: SourceOptions) -> None:
    """Refuse an initialOffsetsLocation that cannot be a file.

    Spark asks for first offsets once the query runs. This look comes before, on the same machine.

    Raises:
        UsageError: it is a directory, or its file system cannot be reached.
    """
    if options.initial_offsets_location is not None:
        LocationStore(options.initial_offsets_location, options.subscription).check()


def store_of(options: SourceOptions, client: GroupClient) -> InitialOffsets | None:
    """Return where the query keeps its first offsets; None: nowhere.

    Args:
        options: the query's.
        client: a consumer, of the query's group if it has one.
    """
    if options.initial_offsets_location is not None:
        return LocationStore(options.initial_offsets_location, options.subscription)
    return GroupStore(client, options.subscription) if options.group is not None else None


class LocationStore:
    """Keeps the offsets in a file, on any file system that pyarrow knows.

    Args:
        location: path or URI of the file.
        wanted: what the query reads; another query's file is refused.
    """

    def __init__(self, location: str, wanted: SourceSubscription) -> None:
        self._location = location
        self._shown = f"initialOffsetsLocation {LOGIN.sub('****@', location)}"
        self._reads = [
            [str(partition) for partition in wanted.partitions],
            list(wanted.topics),
            wanted.pattern,
        ]

    def check(self) -> None:
        """Refuse what can be no file.

        Raises:
            UsageError: it is a directory, or its file system cannot be reached.
        """
        from pyarrow.fs import FileType

        with self._opened() as (files, path):
            kind = files.get_file_info(path).type
        if kind == FileType.Directory or self._location.endswith("/"):
            raise UsageError(
                f"{self._shown} is a directory: name a file in it, such as first-offsets"
            )

    def load(self) -> Offsets | None:
        """Return the offsets in the file; None: there is no file.

        Raises:
            UsageError: the file is another query's, or none of ours, or cannot be read.
        """
        from pyarrow.fs import FileType

        self.check()
        with self._opened() as (files, path):
            if files.get_file_info(path).type == FileType.NotFound:
                return None
            with files.open_input_stream(path) as stream:
                text: bytes = stream.read()
        try:
            document = json.loads(text)
            reads, offsets = document["reads"], from_plain(document["offsets"])
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"{self._shown} is not a file of first offsets") from None
        if reads != self._reads:
            raise UsageError(
                f"{self._shown} belongs to a query that reads {reads}, not "
                f" {self._reads}: give each source of a query a file of its own"
            )
        return offsets

    def save(self, offsets: Offsets) -> None:
        """Write the file in one step: a driver that is killed leaves all of it or nothing.

        Raises:
            UsageError: the file cannot be written.
        """
        text = json.dumps({"reads": self._reads, "offsets": to_plain(offsets)})
        with self._opened() as (files, path):
            folder = path.rpartition("/")[0]
            if folder:
                files.create_dir(folder, recursive=True)
            with files.open_output_stream(f"{path}.tmp") as stream:
                stream.write(text.encode())
            files.move(f"{path}.tmp", path)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, str]]:
        """Lend the file system and the path in it; its errors name the option and the machine."""
        from pyarrow.fs import FileSystem, LocalFileSystem

        try:
            if "://" in self._location or self._location.startswith("file:"):
                yield FileSystem.from_uri(self._location)
            else:
                yield LocalFileSystem(), self._location
        except (OSError, ValueError, NotImplementedError) as error:  # pyarrow's are among these
            raise UsageError(
                f"{self._shown} cannot be used on {platform.node()}: {error}"
            ) from error


class GroupStore:
    """Keeps the offsets as those of the query's group, until a batch commits others.

    Args:
        client: a consumer of the group.
        wanted: what the query reads.
    """

    def __init__(self, client: GroupClient, wanted: SourceSubscription) -> None:
        self._client = client
        self._wanted = wanted

    def load(self) -> Offsets | None:
        """Return the offsets from which a query has started that has committed no batch yet."""
        committed = {
            partition: at for partition, at in self._client.committed().items() if at is not None
        }
        topics = set(self._wanted.topics_of({partition.topic for partition in committed}))
        own = {
            partition: at
            for partition, at in committed.items()
            if partition.topic in topics and self._wants(partition)
        }
        if not own or any(at.metadata != NOTE for at in own.values()):
            return None
        logger.info("the group has the first offsets of %s", describe(own))
        return {partition: at.offset for partition, at in own.items()}

    def save(self, offsets: Offsets) -> None:
        """Commit the offsets, with the note."""
        self._client.commit(
            {partition: OffsetAndMetadata(at, metadata=NOTE) for partition, at in offsets.items()}
        )

    def _wants(self, partition: TopicPartition) -> bool:
        return self._wanted.wants(partition)
