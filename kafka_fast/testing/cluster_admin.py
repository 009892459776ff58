"""The few administrative requests of the test harness, over one blocking connection.

A connection asks only its own broker, because the harness wants to know what that broker knows. It
uses versions that every broker from 2.1 to 4.4 understands, so it negotiates none.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

from kafka_fast.errors import ErrorCode, broker_error, error_name
from kafka_fast.protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_fast.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafka_fast.protocol.apis.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kafka_fast.protocol.frame import decode_response, encode_request
from kafka_fast.protocol.schema import Request, Response
from kafka_fast.testing.broker_jars import RealKafkaError

__all__ = ["ClusterAdmin", "PartitionState"]

R = TypeVar("R", bound=Response)

TIMEOUT = 15.0
METADATA_VERSION = 7
CREATE_TOPICS_VERSION = 3
DELETE_TOPICS_VERSION = 3
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition in a broker's metadata; `leader` is -1 while there is none."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class ClusterAdmin:
    """A connection to one broker; OSError means that the broker does not answer.

    Args:
        host: host on which the broker listens, without TLS and SASL.
        port: the broker's port.
    """

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=TIMEOUT)
        self._correlation_id = 0

    def __enter__(self) -> ClusterAdmin:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self._socket.close()

    def nodes(self) -> set[int]:
        """Return the ids of the brokers that this one knows."""
        return {broker.node_id for broker in self._metadata().brokers}

    def partitions(self, topic: str) -> dict[int, PartitionState]:
        """Return the partitions of `topic`; empty if this broker does not know it."""
        (found,) = self._metadata(topic).topics
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return {}
        if found.error_code not in (0, ErrorCode.LEADER_NOT_AVAILABLE):
            raise RealKafkaError(f"metadata of topic {topic}: {error_name(found.error_code)}")
        return {
            state.partition_index: PartitionState(
                -1 if state.error_code == ErrorCode.LEADER_NOT_AVAILABLE else state.leader_id,
                tuple(state.replica_nodes),
                tuple(state.isr_nodes),
            )
            for state in found.partitions
        }

    def create_topic(
        self, name: str, partitions: int, replication: int, configs: Mapping[str, str]
    ) -> None:
        """Create a topic. When this returns, not all brokers may know the topic yet.

        Raises:
            RealKafkaError: the broker refused; the message is the broker's.
        """
        wanted = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication,
            configs=[CreatableTopicConfig(name=key, value=configs[key]) for key in configs],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=int(TIMEOUT * 1000))
        (result,) = self._ask_controller(
            request, CREATE_TOPICS_VERSION, CreateTopicsResponse
        ).topics
        _refused("create", name, result.error_code, result.error_message)

    def delete_topic(self, name: str) -> None:
        """Delete a topic. When this returns, some brokers may still know the topic.

        Raises:
            RealKafkaError: the broker refused.
        """
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=int(TIMEOUT * 1000))
        answer = self._ask_controller(request, DELETE_TOPICS_VERSION, DeleteTopicsResponse)
        (result,) = answer.responses
        _refused("delete", name, result.error_code, None)

    def _metadata(self, topic: str | None = None) -> MetadataResponse:
        topics = [] if topic is None else [MetadataRequestTopic(name=topic)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        return self._ask(request, METADATA_VERSION, MetadataResponse)

    def _ask_controller(self, request: Request, version: int, response: type[R]) -> R:
        """Ask the controller, because brokers with ZooKeeper do not forward requests to it."""
        metadata = self._metadata()
        for broker in metadata.brokers:
            if broker.node_id == metadata.controller_id:
                with ClusterAdmin(broker.host, broker.port) as controller:
                    return controller._ask(request, version, response)
        raise ConnectionError(f"the cluster has no controller yet: {metadata.controller_id}")

    def _ask(self, request: Request, version: int, response: type[R]) -> R:
        """Send one request and return its answer."""
        self._correlation_id += 1
        self._socket.sendall(
            encode_request(request, version, self._correlation_id, "kafka-fast-harness")
        )
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        correlation_id, answer = decode_response(response, self._read(length), version)
        if correlation_id != self._correlation_id:
            raise RealKafkaError(
                f"an answer to request {correlation_id}, not {self._correlation_id}"
            )
        return answer

    def _read(self, count: int) -> bytes:
        """Read exactly `count` bytes."""
        data = bytearray()
        while len(data) < count:
            chunk = self._socket.recv(count - len(data))
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            data += chunk
        return bytes(data)


def _refused(verb: str, topic: str, code: int, message: str | None) -> None:
    """Raise if `code` is an error."""
    if code != 0:
        said = message or str(broker_error(code))
        raise RealKafkaError(f"cannot {verb} topic {topic}: {error_name(code)}: {said}")
