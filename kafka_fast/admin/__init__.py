"""The admin client: describes and changes a cluster's topics, groups, access, and so on."""

from __future__ import annotations

from kafka_fast.admin.client import Admin
from kafka_fast.admin.result import AdminResult, NodesResult
from kafka_fast.control.admin.types.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    DeletedAcl,
    PatternType,
    ResourceType,
)
from kafka_fast.control.admin.types.client_quotas import (
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaName,
)
from kafka_fast.control.admin.types.cluster import (
    ClusterDescription,
    ClusterNode,
    FeatureMetadata,
    FeatureUpdate,
    FinalizedVersionRange,
    QuorumInfo,
    QuorumReplica,
    RaftVoterEndpoint,
    SupportedVersionRange,
    UpgradeType,
)
from kafka_fast.control.admin.types.configs import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from kafka_fast.control.admin.types.delegation_tokens import DelegationToken
from kafka_fast.control.admin.types.groups.descriptions import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
    MemberDescription,
    ShareGroupDescription,
)
from kafka_fast.control.admin.types.groups.lag import GroupLag, PartitionLag
from kafka_fast.control.admin.types.groups.listings import GroupListing, GroupState, GroupType
from kafka_fast.control.admin.types.groups.resets import (
    PartitionReset,
    ResetKind,
    ResetPlan,
    ResetTo,
)
from kafka_fast.control.admin.types.groups.streams import (
    StreamsGroupDescription,
    StreamsInternalTopic,
    StreamsMemberDescription,
    StreamsSubtopology,
    StreamsTask,
    StreamsTasks,
)
from kafka_fast.control.admin.types.log_dirs import (
    LogDir,
    ReplicaInfo,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from kafka_fast.control.admin.types.offsets import (
    IsolationLevel,
    ListedOffset,
    OffsetSpec,
    ShareGroupOffset,
)
from kafka_fast.control.admin.types.partitions import ElectionType, PartitionReassignment
from kafka_fast.control.admin.types.topics import (
    CreatedTopic,
    NewPartitions,
    NewTopic,
    TopicDescription,
    TopicListing,
    TopicPartitionInfo,
)
from kafka_fast.control.admin.types.transactions import (
    HangingTransaction,
    ProducerIdAndEpoch,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafka_fast.control.admin.types.users import (
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    UserScramMechanism,
)
from kafka_fast.secret import Secret

__all__ = [
    "CLUSTER_NAME",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "Admin",
    "AdminResult",
    "AlterConfigOp",
    "AlterConfigOpType",
    "ClassicGroupDescription",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClientQuotaName",
    "ClusterDescription",
    "ClusterNode",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "ConsumerGroupDescription",
    "CreatedTopic",
    "DelegationToken",
    "DeletedAcl",
    "ElectionType",
    "FeatureMetadata",
    "FeatureUpdate",
    "FinalizedVersionRange",
    "GroupLag",
    "GroupListing",
    "GroupState",
    "GroupType",
    "HangingTransaction",
    "IsolationLevel",
    "ListedOffset",
    "LogDir",
    "MemberDescription",
    "NewPartitions",
    "NewTopic",
    "NodesResult",
    "OffsetSpec",
    "PartitionLag",
    "PartitionReassignment",
    "PartitionReset",
    "PatternType",
    "ProducerIdAndEpoch",
    "ProducerState",
    "QuorumInfo",
    "QuorumReplica",
    "RaftVoterEndpoint",
    "ReplicaInfo",
    "ReplicaLogDirInfo",
    "ResetKind",
    "ResetPlan",
    "ResetTo",
    "ResourceType",
    "ScramCredentialInfo",
    "Secret",
    "ShareGroupDescription",
    "ShareGroupOffset",
    "StreamsGroupDescription",
    "StreamsInternalTopic",
    "StreamsMemberDescription",
    "StreamsSubtopology",
    "StreamsTask",
    "StreamsTasks",
    "SupportedVersionRange",
    "TopicDescription",
    "TopicListing",
    "TopicPartitionInfo",
    "TopicPartitionReplica",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
    "UpgradeType",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "UserScramMechanism",
]
