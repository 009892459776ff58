"""The few administrative requests of the test harness, over one blocking connection.

A connection asks only its own broker, because the harness wants to know what that broker knows. It
uses versions that every broker from 2.1 to 4.4 understands, so it negotiates none.
"""

from __future__ import annotations

import base64
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

from kafka_fast.errors import ErrorCode, broker_error, error_name
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kafka_fast.protocol.apis.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from kafka_fast.protocol.apis.security.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kafka_fast.protocol.apis.security.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from kafka_fast.protocol.apis.security.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafka_fast.protocol.apis.security.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_fast.protocol.apis.topics.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_fast.protocol.apis.topics.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafka_fast.protocol.frame import decode_response, encode_request
from kafka_fast.protocol.schema import Request, Response
from kafka_fast.testing._kafka.broker_jars import RealKafkaError
from kafka_fast.testing.broker.acls import AclRule, Operation, ResourceType

__all__ = ["ClusterAdmin", "PartitionState"]

R = TypeVar("R", bound=Response)

TIMEOUT = 15.0
METADATA_VERSION = 7
CREATE_TOPICS_VERSION = 3
DELETE_TOPICS_VERSION = 3
ACLS_VERSION = 1
SCRAM_VERSION = 0
HANDSHAKE_VERSION = 1
AUTHENTICATE_VERSION = 0
_ANY = 1  # of the filters of DescribeAcls
_DENY, _ALLOW = 2, 3
_LITERAL, _PREFIXED = 3, 4
_ANY_HOST = "*"
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
        host: host on which the broker listens, without TLS, and without SASL for all but
            `scram_salt`.
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
        (metadata,) = self._metadata(topic).topics
        if metadata.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return {}
        if metadata.error_code not in (0, ErrorCode.LEADER_NOT_AVAILABLE):
            raise RealKafkaError(f"metadata of topic {topic}: {error_name(metadata.error_code)}")
        return {
            state.partition_index: PartitionState(
                -1 if state.error_code == ErrorCode.LEADER_NOT_AVAILABLE else state.leader_id,
                tuple(state.replica_nodes),
                tuple(state.isr_nodes),
            )
            for state in metadata.partitions
        }

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication: int,
        configs: Mapping[str, str],
        replicas: Sequence[Sequence[int]] = (),
    ) -> None:
        """Create a topic. When this returns, not all brokers may know the topic yet.

        Args:
            name: name of the topic.
            partitions: number of partitions; -1 with `replicas`.
            replication: number of replicas of each partition; -1 with `replicas`.
            configs: topic configuration.
            replicas: the nodes of each partition, its leader first; empty: the broker chooses.

        Raises:
            RealKafkaError: the broker refused; the message is the broker's.
        """
        new_topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=list(nodes))
                for index, nodes in enumerate(replicas)
            ],
            configs=[CreatableTopicConfig(name=key, value=configs[key]) for key in configs],
        )
        request = CreateTopicsRequest(topics=[new_topic], timeout_ms=int(TIMEOUT * 1000))
        (result,) = self._ask_controller(
            request, CREATE_TOPICS_VERSION, CreateTopicsResponse
        ).topics
        _refused("create", f"topic {name}", result.error_code, result.error_message)

    def delete_topic(self, name: str) -> None:
        """Delete a topic. When this returns, some brokers may still know the topic.

        Raises:
            RealKafkaError: the broker refused.
        """
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=int(TIMEOUT * 1000))
        answer = self._ask_controller(request, DELETE_TOPICS_VERSION, DeleteTopicsResponse)
        (result,) = answer.responses
        _refused("delete", f"topic {name}", result.error_code, None)

    def create_acls(self, rules: Sequence[AclRule]) -> None:
        """Add rules. When this returns, not all brokers may know them yet.

        Raises:
            RealKafkaError: the broker refused; the message is the broker's.
        """
        creations = [
            AclCreation(
                resource_type=rule.resource,
                resource_name=rule.name,
                resource_pattern_type=_PREFIXED if rule.prefixed else _LITERAL,
                principal=f"User:{rule.user}",
                host=_ANY_HOST,
                operation=rule.operation,
                permission_type=_ALLOW if rule.allows else _DENY,
            )
            for rule in rules
        ]
        answer = self._ask(CreateAclsRequest(creations=creations), ACLS_VERSION, CreateAclsResponse)
        for rule, result in zip(rules, answer.results, strict=True):
            _refused("create", f"rule {rule}", result.error_code, result.error_message)

    def acls(self, user: str) -> set[AclRule]:
        """Return the rules of a user that this broker knows."""
        request = DescribeAclsRequest(
            resource_type_filter=_ANY,
            resource_name_filter=None,
            pattern_type_filter=_ANY,
            principal_filter=f"User:{user}",
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        )
        answer = self._ask(request, ACLS_VERSION, DescribeAclsResponse)
        _refused("describe", f"rules of {user}", answer.error_code, answer.error_message)
        return {
            AclRule(
                user,
                Operation(one.operation),
                ResourceType(resource.resource_type),
                resource.resource_name,
                resource.pattern_type == _PREFIXED,
                one.permission_type == _ALLOW,
            )
            for resource in answer.resources
            for one in resource.acls
        }

    def set_scram(self, credential: ScramCredentialUpsertion) -> None:
        """Set what is kept of a user's password. Not all brokers may know it at once.

        Raises:
            RealKafkaError: the broker refused; the message is the broker's.
        """
        request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[credential])
        answer = self._ask(request, SCRAM_VERSION, AlterUserScramCredentialsResponse)
        (result,) = answer.results
        _refused("set", f"password of {result.user}", result.error_code, result.error_message)

    def scram_salt(self, mechanism: str, user: str) -> bytes | None:
        """Return the salt of a user's password as this broker has it; None: it has none.

        This begins to log in, so it is the only question to a connection of its own.
        """
        self._ask(
            SaslHandshakeRequest(mechanism=mechanism), HANDSHAKE_VERSION, SaslHandshakeResponse
        )
        answer = self._ask(
            SaslAuthenticateRequest(auth_bytes=f"n,,n={user},r=harness".encode()),
            AUTHENTICATE_VERSION,
            SaslAuthenticateResponse,
        )
        fields = dict(part.split("=", 1) for part in answer.auth_bytes.decode().split(",") if part)
        return base64.b64decode(fields["s"]) if "s" in fields else None

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


def _refused(verb: str, what: str, code: int, message: str | None) -> None:
    """Raise if `code` is an error."""
    if code != 0:
        said = message or str(broker_error(code))
        raise RealKafkaError(f"cannot {verb} {what}: {error_name(code)}: {said}")
