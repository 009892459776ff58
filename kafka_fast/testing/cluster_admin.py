"""The few administrative requests of the test harness, over one blocking connection.

Asks one given broker, never another one, because the harness wants to know what that one knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType

from confluent_kafka.admin import AdminClient, NewTopic
import confluent_kafka

from kafka_fast.testing.broker_jars import RealKafkaError

__all__ = ["ClusterAdmin", "PartitionState"]

TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What a broker knows of one partition; `leader` is -1 while there is none."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class ClusterAdmin:
    """A connection to one broker; OSError means that the broker does not answer."""

    def __init__(self, host: str, port: int) -> None:
        self._client = AdminClient({"bootstrap.servers": f"{host}:{port}", "log_level": 0})

    def __enter__(self) -> ClusterAdmin:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def nodes(self) -> set[int]:
        """Return the ids of the brokers that this one knows."""
        return set(self._metadata().brokers)

    def partitions(self, topic: str) -> dict[int, PartitionState]:
        """Return the partitions of `topic`; empty if this broker does not know it."""
        found = self._metadata().topics.get(topic)
        if found is None or found.error is not None:
            return {}
        return {
            index: PartitionState(state.leader, tuple(state.replicas), tuple(state.isrs))
            for index, state in found.partitions.items()
        }

    def create_topic(
        self, name: str, partitions: int, replication: int, configs: Mapping[str, str]
    ) -> None:
        """Create a topic; it is not everywhere yet when this returns."""
        topic = NewTopic(name, partitions, replication, config=dict(configs))
        self._run(self._client.create_topics([topic], request_timeout=TIMEOUT)[name])

    def delete_topic(self, name: str) -> None:
        """Delete a topic; it is not gone everywhere when this returns."""
        self._run(self._client.delete_topics([name], request_timeout=TIMEOUT)[name])

    def _run(self, future) -> None:
        try:
            future.result()
        except confluent_kafka.KafkaException as error:
            raise RealKafkaError(str(error)) from error

    def _metadata(self):
        try:
            return self._client.list_topics(timeout=TIMEOUT)
        except confluent_kafka.KafkaException as error:
            raise ConnectionError(str(error)) from error
