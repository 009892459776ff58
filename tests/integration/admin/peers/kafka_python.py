"""kafka-python's admin client, in plain facts."""

from __future__ import annotations

import base64
import re
import uuid
import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python warns when it is imported
    from kafka import KafkaAdminClient, TopicPartition, errors
    from kafka.admin import (
        ACL,
        ACLFilter,
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        AlterConfigOp,
        ConfigResource,
        ConfigResourceType,
        ConfigSourceType,
        OffsetSpec,
        ResourcePattern,
        ResourcePatternFilter,
        ResourceType,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )
    from kafka.structs import OffsetAndMetadata

from tests.integration.admin.peers.contenders import (
    OK,
    Facts,
    Group,
    Setting,
    error_name,
    telling,
)

told = telling(errors.KafkaError, lambda error: error.errno)


def outcome(text: str) -> str:
    """Return what a text says that has an error's code in it."""
    code = re.match(r"\[Error (\d+)\]", text)
    return text if code is None else error_name(int(code[1]))


class KafkaPython:
    """Calls of `KafkaAdminClient`."""

    name = "kafka-python"

    def __init__(self, bootstrap: str) -> None:
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def close(self) -> None:
        """Close its connections."""
        self._admin.close()

    # ---- topics ----

    @told
    def topics(self) -> Facts:
        return set(self._admin.list_topics()) - {"__consumer_offsets"}

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
        new_topic = {
            "num_partitions": partitions,
            "replication_factor": replication,
            "configs": configs or {},
        }
        self._admin.create_topics({name: new_topic}, validate_only=validate_only)

    @told
    def delete_topic(self, name: str) -> Facts:
        self._admin.delete_topics([name])

    def _topic(self, name: str) -> dict[str, Any]:
        (topic,) = self._admin.describe_topics([name])
        if topic["error_code"]:
            raise errors.for_code(topic["error_code"])
        return dict(topic)

    @told
    def describe_topic(self, name: str) -> Facts:
        topic = self._topic(name)
        partitions = [
            (one["partition_index"], one["leader_id"], one["replica_nodes"], one["isr_nodes"])
            for one in topic["partitions"]
        ]
        return topic["is_internal"], sorted(partitions)

    @told
    def topic_operations(self, name: str) -> Facts:
        return set(self._topic(name)["authorized_operations"])

    @told
    def topic_id(self, name: str) -> Facts:
        topic_id = uuid.UUID(str(self._topic(name)["topic_id"]))
        return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")

    @told
    def create_partitions(self, name: str, count: int) -> Facts:
        self._admin.create_partitions({name: count})

    @told
    def delete_records(self, topic: str, partition: int, offset: int) -> Facts:
        number = TopicPartition(topic, partition)
        return self._admin.delete_records({number: offset})[number]["low_watermark"]

    # ---- settings ----

    @told
    def settings(self, kind: str, name: str) -> Facts:
        asked = [ConfigResource(ConfigResourceType[kind], name)]
        described = self._admin.describe_configs(asked, config_filter="all")
        return {
            key: Setting(
                entry["value"],
                ConfigSourceType[entry["config_source"]].value,
                entry["read_only"],
                entry["is_sensitive"],
            )
            for key, entry in described[kind.lower()][name].items()
        }

    @told
    def alter_setting(self, kind: str, name: str, op: str, key: str, value: str | None) -> Facts:
        change = ConfigResource(
            ConfigResourceType[kind], name, configs={key: (AlterConfigOp[op], value)}
        )
        altered = self._admin.alter_configs([change], raise_on_unknown=False)
        return outcome(altered[kind.lower()][name])

    @told
    def resources(self, kind: str) -> Facts:
        return set(self._admin.list_config_resources([kind]).get(kind.lower(), ()))

    # ---- groups ----

    @told
    def groups(self) -> Facts:
        return {
            group["group_id"]: (group["group_state"].upper(), group["group_type"].upper())
            for group in self._admin.list_groups()
        }

    @told
    def describe_group(self, group_id: str) -> Facts:
        group = self._admin.describe_groups([group_id])[group_id]
        if group["error"]:
            return outcome(group["error"])
        assigned = [
            sorted(
                number
                for topic in member["member_assignment"]["assigned_partitions"]
                for number in topic["partitions"]
            )
            for member in group["members"]
        ]
        state, protocol = group["group_state"].upper(), group["protocol_data"]
        return Group(state, protocol, group["protocol_type"] == "", assigned)

    @told
    def delete_group(self, group_id: str) -> Facts:
        told_of = self._admin.delete_groups([group_id])[group_id]
        if told_of != OK:
            raise getattr(errors, told_of)

    @told
    def committed(self, group_id: str, topic: str, partition: int) -> Facts:
        number = TopicPartition(topic, partition)
        return self._admin.list_group_offsets({group_id: [number]})[group_id][number].offset

    @told
    def all_committed(self, group_id: str) -> Facts:
        listed = self._admin.list_group_offsets({group_id: None})[group_id]
        return {tuple(number): committed.offset for number, committed in listed.items()}

    @told
    def commit(self, group_id: str, topic: str, partition: int, offset: int) -> Facts:
        number = TopicPartition(topic, partition)
        change = {number: OffsetAndMetadata(offset, "", -1)}
        raise self._admin.alter_group_offsets(group_id, change)[number]

    @told
    def delete_offset(self, group_id: str, topic: str, partition: int) -> Facts:
        number = TopicPartition(topic, partition)
        raise self._admin.delete_group_offsets(group_id, [number])[number]

    # ---- partitions ----

    @told
    def offset(self, topic: str, partition: int, spec: str | int) -> Facts:
        number = TopicPartition(topic, partition)
        asked = OffsetSpec[spec] if isinstance(spec, str) else spec
        return self._admin.list_partition_offsets({number: asked})[number].offset

    @told
    def elect(self, kind: str, topic: str, partition: int) -> Facts:
        election_type = {"PREFERRED": 0, "UNCLEAN": 1}[kind]
        answer = self._admin.elect_leaders(election_type, {topic: [partition]}, raise_errors=False)
        ((result,),) = [one.partition_result for one in answer.replica_election_results]
        return error_name(result.error_code)

    @told
    def reassignments(self, topic: str, partition: int) -> Facts:
        return len(self._admin.list_partition_reassignments({topic: [partition]}))

    @told
    def reassign(self, topic: str, partition: int, replicas: list[int] | None) -> Facts:
        number = TopicPartition(topic, partition)
        error = self._admin.alter_partition_reassignments({number: replicas})[number]
        if error is not None:
            raise error

    @told
    def producers(self, topic: str, partition: int) -> Facts:
        number = TopicPartition(topic, partition)
        producers = self._admin.describe_producers([number])[number].active_producers
        return [(one.producer_id, one.producer_epoch, one.last_sequence) for one in producers]

    @told
    def size_on_disk(self, topic: str, partition: int) -> Facts:
        return [
            (node["broker"], log_dir["log_dir"], one["partition_size"])
            for node in self._admin.describe_log_dirs({topic: [partition]})
            for log_dir in node["log_dirs"]
            for described in log_dir["topics"]
            for one in described["partitions"]
        ]

    # ---- the cluster ----

    @told
    def cluster(self) -> Facts:
        cluster = self._admin.describe_cluster()
        nodes = [(node["broker_id"], node["host"], node["port"]) for node in cluster["brokers"]]
        return cluster["cluster_id"], cluster["controller_id"], nodes

    @told
    def features(self) -> Facts:
        features = self._admin.describe_features()
        return tuple(
            {name: told_of[kind] for name, told_of in features.items() if kind in told_of}
            for kind in ("finalized", "supported")
        )

    @told
    def quorum(self) -> Facts:
        ((log,),) = [one["partitions"] for one in self._admin.describe_metadata_quorum()["topics"]]
        voters = [one["replica_id"] for one in log["current_voters"]]
        return log["leader_id"], log["leader_epoch"], voters

    @told
    def transactions(self) -> Facts:
        listed = self._admin.list_transactions().values()
        return sorted(one.transactional_id for listings in listed for one in listings)

    # ---- access ----

    @told
    def acls(self) -> Facts:
        return len(self._admin.describe_acls(acls_of(ResourceType.ANY, None))[0])

    @told
    def create_acl(self, topic: str, principal: str) -> Facts:
        pattern = ResourcePattern(ResourceType.TOPIC, topic)
        acl = ACL(principal, "*", ACLOperation.READ, ACLPermissionType.ALLOW, pattern)
        for error in self._admin.create_acls([acl])["failed"]:
            raise error

    @told
    def delete_acls(self, topic: str) -> Facts:
        ((_, acls, error),) = self._admin.delete_acls([acls_of(ResourceType.TOPIC, topic)])
        if error.errno:
            raise error
        return len(acls)

    @told
    def user(self, name: str) -> Facts:
        described = self._admin.describe_user_scram_credentials([name])[name]
        infos = described["credential_infos"]
        return sorted((int(info["mechanism"]), info["iterations"]) for info in infos)

    @told
    def users(self) -> Facts:
        return set(self._admin.describe_user_scram_credentials())

    @told
    def set_password(self, name: str, mechanism: str, iterations: int) -> Facts:
        upsertion = UserScramCredentialUpsertion(name, mechanism, "a password", iterations)
        return self._admin.alter_user_scram_credentials([upsertion])[name]

    @told
    def delete_password(self, name: str, mechanism: str) -> Facts:
        deletion = UserScramCredentialDeletion(name, mechanism)
        return self._admin.alter_user_scram_credentials([deletion])[name]


def acls_of(kind: ResourceType, name: str | None) -> ACLFilter:
    """Return a filter of all access to something."""
    pattern = ResourcePatternFilter(kind, name, ACLResourcePatternType.ANY)
    return ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)
