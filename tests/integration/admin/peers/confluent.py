"""confluent-kafka's admin client, in plain facts."""

from __future__ import annotations

from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    ElectionType,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.integration.admin.peers.contenders import TIMEOUT, Facts, Group, Setting, telling

told = telling(KafkaException, lambda error: error.args[0].code())

SPECS = {
    "EARLIEST": OffsetSpec.earliest(),
    "LATEST": OffsetSpec.latest(),
    "MAX_TIMESTAMP": OffsetSpec.max_timestamp(),
}


def only(futures: dict[Any, Any]) -> Any:
    """Return the result of the only future."""
    (future,) = futures.values()
    return future.result(TIMEOUT)


def states_name(state: Any) -> str:
    """Return the name of a group's state; librdkafka has an "ing" of its own in two of them."""
    return str(state.name).replace("_", "").replace("REBALANCING", "REBALANCE")


class Confluent:
    """Calls of `AdminClient`."""

    name = "confluent-kafka"

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def close(self) -> None:
        """Do nothing: it ends with its last reference."""

    # ---- topics ----

    @told
    def topics(self) -> Facts:
        return set(self._admin.list_topics(timeout=TIMEOUT).topics) - {"__consumer_offsets"}

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
        new_topic = NewTopic(name, partitions, replication, config=configs or {})
        only(self._admin.create_topics([new_topic], validate_only=validate_only))

    @told
    def delete_topic(self, name: str) -> Facts:
        return only(self._admin.delete_topics([name]))

    @told
    def describe_topic(self, name: str) -> Facts:
        topic = only(self._admin.describe_topics(TopicCollection([name])))
        return topic.is_internal, [
            (
                one.id,
                one.leader.id,
                [node.id for node in one.replicas],
                [node.id for node in one.isr],
            )
            for one in topic.partitions
        ]

    @told
    def topic_operations(self, name: str) -> Facts:
        asked = TopicCollection([name])
        topic = only(self._admin.describe_topics(asked, include_authorized_operations=True))
        return {operation.name for operation in topic.authorized_operations}

    @told
    def topic_id(self, name: str) -> Facts:
        topic_id = str(only(self._admin.describe_topics(TopicCollection([name]))).topic_id)
        return topic_id.translate(str.maketrans("+/", "-_"))  # Kafka's own tools write it so

    @told
    def create_partitions(self, name: str, count: int) -> Facts:
        return only(self._admin.create_partitions([NewPartitions(name, count)]))

    @told
    def delete_records(self, topic: str, partition: int, offset: int) -> Facts:
        before = [TopicPartition(topic, partition, offset)]
        return only(self._admin.delete_records(before)).low_watermark

    # ---- settings ----

    @told
    def settings(self, kind: str, name: str) -> Facts:
        resource = ConfigResource(ResourceType[kind], name)
        return {
            entry.name: Setting(
                entry.value, int(entry.source), entry.is_read_only, entry.is_sensitive
            )
            for entry in only(self._admin.describe_configs([resource])).values()
        }

    @told
    def alter_setting(self, kind: str, name: str, op: str, key: str, value: str | None) -> Facts:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType[op])
        resource = ConfigResource(ResourceType[kind], name, incremental_configs=[entry])
        return only(self._admin.incremental_alter_configs([resource]))

    @told
    def replace_settings(self, kind: str, name: str, configs: dict[str, str]) -> Facts:
        resource = ConfigResource(ResourceType[kind], name, set_config=configs)
        return only(self._admin.alter_configs([resource]))

    # ---- groups ----

    @told
    def groups(self) -> Facts:
        listed = self._admin.list_consumer_groups().result(TIMEOUT)
        assert not listed.errors
        return {
            group.group_id: (states_name(group.state), group.type.name) for group in listed.valid
        }

    @told
    def describe_group(self, group_id: str) -> Facts:
        group = only(self._admin.describe_consumer_groups([group_id]))
        assigned = [
            sorted(one.partition for one in member.assignment.topic_partitions)
            for member in group.members
        ]
        return Group(
            states_name(group.state),
            group.partition_assignor,
            group.is_simple_consumer_group,
            assigned,
        )

    @told
    def delete_group(self, group_id: str) -> Facts:
        return only(self._admin.delete_consumer_groups([group_id]))

    @told
    def committed(self, group_id: str, topic: str, partition: int) -> Facts:
        asked = ConsumerGroupTopicPartitions(group_id, [TopicPartition(topic, partition)])
        (one,) = only(self._admin.list_consumer_group_offsets([asked])).topic_partitions
        return max(one.offset, -1)

    @told
    def all_committed(self, group_id: str) -> Facts:
        asked = ConsumerGroupTopicPartitions(group_id)
        listed = only(self._admin.list_consumer_group_offsets([asked])).topic_partitions
        return {(one.topic, one.partition): one.offset for one in listed}

    @told
    def commit(self, group_id: str, topic: str, partition: int, offset: int) -> Facts:
        change = ConsumerGroupTopicPartitions(group_id, [TopicPartition(topic, partition, offset)])
        (one,) = only(self._admin.alter_consumer_group_offsets([change])).topic_partitions
        if one.error is not None:
            raise KafkaException(one.error)

    # ---- partitions ----

    @told
    def offset(self, topic: str, partition: int, spec: str | int) -> Facts:
        asked = SPECS[spec] if isinstance(spec, str) else OffsetSpec.for_timestamp(spec)
        return only(self._admin.list_offsets({TopicPartition(topic, partition): asked})).offset

    @told
    def elect(self, kind: str, topic: str, partition: int) -> Facts:
        asked = [TopicPartition(topic, partition)]
        elected = self._admin.elect_leaders(ElectionType[kind], asked).result(TIMEOUT)
        (error,) = elected.values()
        if error is not None:
            raise KafkaException(error)

    # ---- the cluster ----

    @told
    def cluster(self) -> Facts:
        cluster = self._admin.describe_cluster().result(TIMEOUT)
        nodes = [(node.id, node.host, node.port) for node in cluster.nodes]
        return cluster.cluster_id, cluster.controller.id, nodes

    # ---- access ----

    @told
    def acls(self) -> Facts:
        anything = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        return len(self._admin.describe_acls(anything).result(TIMEOUT))

    @told
    def create_acl(self, topic: str, principal: str) -> Facts:
        binding = AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            principal,
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        return only(self._admin.create_acls([binding]))

    @told
    def delete_acls(self, topic: str) -> Facts:
        acls = AclBindingFilter(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.ANY,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        return len(only(self._admin.delete_acls([acls])))

    @told
    def user(self, name: str) -> Facts:
        infos = only(self._admin.describe_user_scram_credentials([name])).scram_credential_infos
        return sorted((info.mechanism.value, info.iterations) for info in infos)

    @told
    def users(self) -> Facts:
        return set(self._admin.describe_user_scram_credentials().result(TIMEOUT))

    @told
    def set_password(self, name: str, mechanism: str, iterations: int) -> Facts:
        info = ScramCredentialInfo(ScramMechanism[mechanism], iterations)
        upsertion = UserScramCredentialUpsertion(name, info, b"a password")
        return only(self._admin.alter_user_scram_credentials([upsertion]))

    @told
    def delete_password(self, name: str, mechanism: str) -> Facts:
        deletion = UserScramCredentialDeletion(name, ScramMechanism[mechanism])
        return only(self._admin.alter_user_scram_credentials([deletion]))
