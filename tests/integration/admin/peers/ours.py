"""Our admin client, in plain facts."""

from __future__ import annotations

from kafka_fast import Admin, TopicPartition
from kafka_fast.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AlterConfigOp,
    AlterConfigOpType,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    UserScramMechanism,
)
from kafka_fast.errors import KafkaError
from tests.integration.admin.peers.contenders import Facts, Group, Setting, telling

told = telling(KafkaError, lambda error: error.code)


class Ours:
    """Calls of `Admin`."""

    name = "kafka_fast"

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    # ---- topics ----

    @told
    def topics(self) -> Facts:
        return set(self._admin.list_topics())

    @told
    def create_topic(
        self,
        name: str,
        partitions: int,
        *,
        replication: int = 1,
        configs: dict[str, str] | None = None,
        validate_only: bool = False,
    ) -> Facts:
        new_topic = NewTopic(name, partitions, replication, configs=configs or {})
        self._admin.create_topics([new_topic], validate_only=validate_only).raise_first()

    @told
    def delete_topic(self, name: str) -> Facts:
        return self._admin.delete_topics([name])[name]

    @told
    def describe_topic(self, name: str) -> Facts:
        topic = self._admin.describe_topics([name])[name]
        return topic.is_internal, [
            (one.partition, one.leader, list(one.replicas), list(one.isr))
            for one in topic.partitions
        ]

    @told
    def topic_operations(self, name: str) -> Facts:
        described = self._admin.describe_topics([name], include_authorized_operations=True)
        return {operation.name for operation in described[name].authorized_operations or ()}

    @told
    def topic_id(self, name: str) -> Facts:
        return self._admin.describe_topics([name])[name].topic_id

    @told
    def create_partitions(self, name: str, count: int) -> Facts:
        return self._admin.create_partitions({name: NewPartitions(count)})[name]

    @told
    def delete_records(self, topic: str, partition: int, offset: int) -> Facts:
        number = TopicPartition(topic, partition)
        return self._admin.delete_records({number: offset})[number]

    # ---- settings ----

    @told
    def settings(self, kind: str, name: str) -> Facts:
        resource = ConfigResource(ConfigResourceType[kind], name)
        return {
            entry.name: Setting(
                entry.value, int(entry.source), entry.is_read_only, entry.is_sensitive
            )
            for entry in self._admin.describe_configs([resource])[resource].values()
        }

    @told
    def alter_setting(self, kind: str, name: str, op: str, key: str, value: str | None) -> Facts:
        resource = ConfigResource(ConfigResourceType[kind], name)
        change = AlterConfigOp(key, value, AlterConfigOpType[op])
        return self._admin.incremental_alter_configs({resource: [change]})[resource]

    @told
    def replace_settings(self, kind: str, name: str, configs: dict[str, str]) -> Facts:
        resource = ConfigResource(ConfigResourceType[kind], name)
        return self._admin.alter_configs({resource: configs})[resource]

    @told
    def resources(self, kind: str) -> Facts:
        listed = self._admin.list_config_resources([ConfigResourceType[kind]])
        return {resource.name for resource in listed}

    # ---- groups ----

    @told
    def groups(self) -> Facts:
        return {
            group.group_id: (group.state.name.replace("_", ""), group.type.name)
            for group in self._admin.list_groups().values()
        }

    @told
    def describe_group(self, group_id: str) -> Facts:
        group = self._admin.describe_consumer_groups([group_id])[group_id]
        assigned = [sorted(one.partition for one in member.assignment) for member in group.members]
        return Group(group.state.name.replace("_", ""), group.assignor, group.is_simple, assigned)

    @told
    def delete_group(self, group_id: str) -> Facts:
        return self._admin.delete_groups([group_id])[group_id]

    @told
    def committed(self, group_id: str, topic: str, partition: int) -> Facts:
        number = TopicPartition(topic, partition)
        committed = self._admin.list_consumer_group_offsets({group_id: [number]})[group_id][number]
        return -1 if committed is None else committed.offset

    @told
    def all_committed(self, group_id: str) -> Facts:
        listed = self._admin.list_consumer_group_offsets({group_id: None})[group_id]
        return {tuple(number): committed.offset for number, committed in listed.items()}

    @told
    def commit(self, group_id: str, topic: str, partition: int, offset: int) -> Facts:
        number = TopicPartition(topic, partition)
        return self._admin.alter_consumer_group_offsets(group_id, {number: offset})[number]

    @told
    def delete_offset(self, group_id: str, topic: str, partition: int) -> Facts:
        number = TopicPartition(topic, partition)
        return self._admin.delete_consumer_group_offsets(group_id, [number])[number]

    # ---- partitions ----

    @told
    def offset(self, topic: str, partition: int, spec: str | int) -> Facts:
        number = TopicPartition(topic, partition)
        asked = OffsetSpec[spec] if isinstance(spec, str) else spec
        return self._admin.list_offsets({number: asked})[number].offset

    @told
    def elect(self, kind: str, topic: str, partition: int) -> Facts:
        number = TopicPartition(topic, partition)
        elected = self._admin.elect_leaders(ElectionType[kind], partitions=[number])
        return elected[number]

    @told
    def reassignments(self, topic: str, partition: int) -> Facts:
        return len(self._admin.list_partition_reassignments([TopicPartition(topic, partition)]))

    @told
    def reassign(self, topic: str, partition: int, replicas: list[int] | None) -> Facts:
        number = TopicPartition(topic, partition)
        return self._admin.alter_partition_reassignments({number: replicas})[number]

    @told
    def producers(self, topic: str, partition: int) -> Facts:
        number = TopicPartition(topic, partition)
        producers = self._admin.describe_producers([number])[number]
        return [(one.producer_id, one.producer_epoch, one.last_sequence) for one in producers]

    @told
    def size_on_disk(self, topic: str, partition: int) -> Facts:
        return [
            (node, path, log_dir.replicas[TopicPartition(topic, partition)].size)
            for node, log_dirs in self._admin.describe_log_dirs().items()
            for path, log_dir in log_dirs.items()
        ]

    # ---- the cluster ----

    @told
    def cluster(self) -> Facts:
        cluster = self._admin.describe_cluster()
        nodes = [(node.id, node.host, node.port) for node in cluster.nodes]
        return cluster.cluster_id, cluster.controller, nodes

    @told
    def features(self) -> Facts:
        features = self._admin.describe_features()
        finalized = {
            name: (levels.min_version_level, levels.max_version_level)
            for name, levels in features.finalized.items()
        }
        supported = {
            name: (levels.min_version, levels.max_version)
            for name, levels in features.supported.items()
        }
        return finalized, supported

    @told
    def quorum(self) -> Facts:
        quorum = self._admin.describe_metadata_quorum()
        return quorum.leader_id, quorum.leader_epoch, [one.replica_id for one in quorum.voters]

    @told
    def transactions(self) -> Facts:
        return sorted(self._admin.list_transactions())

    # ---- access ----

    @told
    def acls(self) -> Facts:
        return len(self._admin.describe_acls())

    @told
    def create_acl(self, topic: str, principal: str) -> Facts:
        binding = AclBinding(ResourceType.TOPIC, topic, principal, AclOperation.READ)
        return self._admin.create_acls([binding])[binding]

    @told
    def delete_acls(self, topic: str) -> Facts:
        acls = AclBindingFilter(ResourceType.TOPIC, topic)
        return len(self._admin.delete_acls([acls])[acls])

    @told
    def user(self, name: str) -> Facts:
        infos = self._admin.describe_user_scram_credentials([name])[name]
        return sorted((int(info.mechanism), info.iterations) for info in infos)

    @told
    def users(self) -> Facts:
        return set(self._admin.describe_user_scram_credentials().succeeded)

    @told
    def set_password(self, name: str, mechanism: str, iterations: int) -> Facts:
        upsertion = UserScramCredentialUpsertion(
            name, UserScramMechanism[mechanism], "a password", iterations
        )
        return self._admin.alter_user_scram_credentials([upsertion])[name]

    @told
    def delete_password(self, name: str, mechanism: str) -> Facts:
        deletion = UserScramCredentialDeletion(name, UserScramMechanism[mechanism])
        return self._admin.alter_user_scram_credentials(deletions=[deletion])[name]
