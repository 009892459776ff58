"""A cluster: its nodes, its features, and the quorum that keeps its metadata."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from kafka_fast.control.admin.types.acls import AclOperation
from kafka_fast.control.admin.types.topic_ids import topic_id_bytes
from kafka_fast.errors import UsageError
from kafka_fast.values import Value


class EndpointType(enum.IntEnum):
    """What the nodes of a cluster are to a client; the numbers are Kafka's."""

    BROKER = 1
    CONTROLLER = 2


class ClusterNode(Value):
    """A broker of the cluster, or a controller."""

    id: int
    host: str
    """The address that it advertises to clients."""
    port: int
    rack: str | None = None
    """broker.rack of the broker; None if it has none."""
    is_fenced: bool = False
    """It is registered, but takes no part: it has stopped, or is still starting. Such brokers are
    told only to who asks for them (`include_fenced_brokers`)."""


class ClusterDescription(Value):
    """A cluster as one of its brokers sees it, or one of its controllers."""

    cluster_id: str | None
    controller: int | None
    """Id of the broker to which requests for the controller go; None if there is none. With KRaft
    any broker forwards them, so this is one of them: `describe_metadata_quorum` has the leader. A
    controller names the active one."""
    nodes: tuple[ClusterNode, ...]
    """In the order of their ids."""
    authorized_operations: frozenset[AclOperation] | None = None
    """What this client may do with the cluster; None: not asked for."""
    endpoint_type: EndpointType = EndpointType.BROKER
    """What the nodes are. A client with bootstrap.controllers is told controllers."""


# ---- features ----


class FinalizedVersionRange(Value):
    """The levels of a feature that the cluster has agreed on."""

    min_version_level: int
    max_version_level: int


class SupportedVersionRange(Value):
    """The levels of a feature that a broker can have."""

    min_version: int
    max_version: int


class FeatureMetadata(Value):
    """The features of a cluster, and those of the broker that has answered."""

    finalized: Mapping[str, FinalizedVersionRange]
    """By the feature's name."""
    finalized_epoch: int | None
    """Grows with each change; with KRaft an offset of the metadata log. None: nothing is
    finalized."""
    supported: Mapping[str, SupportedVersionRange]
    """By the feature's name: what the broker that has answered can do."""


class UpgradeType(enum.IntEnum):
    """Which changes of a feature's level are allowed."""

    UPGRADE = 1
    """To a higher level."""
    SAFE_DOWNGRADE = 2
    """Also to a lower one, if no metadata are lost."""
    UNSAFE_DOWNGRADE = 3
    """Also to a lower one that loses metadata."""


class FeatureUpdate(Value):
    """The level that a feature is to have."""

    max_version_level: int
    """0: the feature is switched off, which is a downgrade."""
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


# ---- the quorum ----


class RaftVoterEndpoint(Value):
    """A listener of a controller."""

    name: str
    """The listener's name: "CONTROLLER"."""
    host: str
    port: int


class QuorumReplica(Value):
    """A node that replicates the cluster's metadata."""

    replica_id: int
    """Its node id."""
    directory_id: str | None
    """Id of its metadata directory, as text; None: not told, or the quorum is a static one."""
    log_end_offset: int
    """Where its copy of the log ends; -1: the leader does not know."""
    last_fetch_ms: int | None
    """When it last fetched, as Unix time in ms; None: not told, or it never has."""
    last_caught_up_ms: int | None
    """When it last had the whole log, as Unix time in ms; None as above."""


class QuorumInfo(Value):
    """The quorum of controllers that keeps the cluster's metadata (KRaft)."""

    leader_id: int | None
    """Node id of the controller that leads; None while there is none."""
    leader_epoch: int
    high_watermark: int
    """Up to which offset of its log the metadata are safe; -1: not known."""
    voters: tuple[QuorumReplica, ...]
    """The controllers that elect the leader."""
    observers: tuple[QuorumReplica, ...]
    """Brokers, and controllers without a vote."""
    endpoints: Mapping[int, tuple[RaftVoterEndpoint, ...]] = {}
    """How voters are reached, by node id; empty if the brokers are older than 3.9."""


def directory_id_bytes(text: str) -> bytes:
    """Return a directory id from its text.

    Raises:
        UsageError: it is none.
    """
    try:
        return topic_id_bytes(text)
    except UsageError:
        raise UsageError(
            f"{text!r} is no directory id, as describe_metadata_quorum returns it, and as "
            "meta.properties has it"
        ) from None
