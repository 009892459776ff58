"""Why something has not come: texts and causes for the error of a wait that timed out.

Thread: any. State is read without a lock: the text is a diagnosis for people, and may be out of
date by an event.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat

from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.connections import Connections
from kafka_fast.control.diagnosis.troubles import About, Reason, Subject, last_trouble
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import NO_LEADER, Node
from kafka_fast.errors import KafkaError
from kafka_fast.logs import count_of, in_seconds, some_of
from kafka_fast.types import TopicPartition

REASONS = 5
"""Most partitions for which one message says what each of them waits for."""

WORTH_A_WORD = 0.05
"""Seconds. What has been under way for less did not make a wait time out."""


def why_waiting_for_leader(
    cluster: Cluster, connections: Connections, partition: TopicPartition
) -> Reason:
    """Return what stands between this client and a partition's leader."""
    topic, number = partition
    refusal = cluster.refusal(topic)
    if refusal is not None:
        return Reason(f"the brokers answer {refusal}", refusal)
    partitions = cluster.partitions(topic)
    if not partitions:
        return Reason("nothing is known of its topic yet")
    if number >= len(partitions):
        return Reason(f"its topic has {count_of(len(partitions), 'partition')}")
    leader_id = partitions[number].leader_id
    if leader_id == NO_LEADER:
        return Reason("it has no leader")
    node = cluster.node(leader_id)
    if node is None:
        known = some_of(broker.id for broker in cluster.nodes)
        return Reason(
            f"its leader, node {leader_id}, is not among the brokers that Metadata names ({known})"
        )
    return why_waiting_for_node(connections, node, "its leader")


def why_waiting_for_node(connections: Connections, node: Node, role: str) -> Reason:
    """Return what stands between this client and a node; `role` says what the node is, or ""."""
    who = f"{role}, {node}," if role else str(node)
    key = ConnectionKey(Role.DATA, node.id)
    if connections.links.link_to(key) is None and connections.links.request_link(node.id) is None:
        trouble = connections.troubles.now(key)
        if trouble is None:
            return Reason(f"no connection to {who} yet")
        return Reason(f"no connection to {role or node}: {trouble}", trouble.error)
    return Reason(f"{who} does not answer")


def why_throttled(
    cluster: Cluster, connections: Connections, partitions: Iterable[TopicPartition], now: float
) -> Reason | None:
    """Return which leader of these partitions throttles this client; None: no leader does."""
    for partition in partitions:
        leader = cluster.leader(*partition)
        why = None if leader is None else why_leader_throttles(connections, leader, now, now)
        if why is not None:
            return Reason(f"{partition}: {why.text}")
    return None


def why_leader_throttles(
    connections: Connections, leader: Node, since: float, until: float
) -> Reason | None:
    """Return how a leader throttled this client between these times; None: it did not."""
    pause = connections.pause(ConnectionKey(Role.DATA, leader.id), since, until)
    if pause is None:
        return None
    return Reason(f"its leader, {leader}, has this client wait for {in_seconds(pause)}: a quota")


def around(
    connections: Connections, now: float, since: float, subjects: Iterable[Subject] | None = None
) -> list[Reason]:
    """Return the last trouble since a time, and what has been under way for long.

    Args:
        connections: the client's.
        now: the time.
        since: troubles before this time are left out.
        subjects: the subjects of troubles that count; None: all connections.
    """
    trouble = last_trouble(connections.troubles.last(since, subjects))
    least = max(WORTH_A_WORD, min(1.0, (now - since) / 4))
    candidates = [trouble, connections.under_way(now, least)]
    return [candidate for candidate in candidates if candidate is not None]


def why_waiting_for_topic(
    cluster: Cluster, connections: Connections, topic: str, now: float, since: float
) -> list[Reason]:
    """Return why nothing is known of a topic."""
    refusal: KafkaError | None = cluster.refusal(topic)
    if refusal is not None:
        return [Reason(f"the brokers answer {refusal}", refusal)]
    trouble = last_trouble(connections.troubles.last_of(About.METADATA, since))
    return ([] if trouble is None else [trouble]) or around(connections, now, since)


def describe_topic_wait(
    cluster: Cluster, connections: Connections, topic: str, now: float, since: float
) -> str:
    """Return in a sentence why a topic is waited for."""
    if cluster.is_absent(topic):
        return f"there is no topic {topic!r} (yet)"
    reasons = why_waiting_for_topic(cluster, connections, topic, now, since)
    return "; ".join([f"no metadata of topic {topic!r} yet", *(reason.text for reason in reasons)])


def reasons_of_several(named: Iterable[tuple[object, Reason]], *, more: int = 0) -> Reason:
    """Return the reasons of several partitions or others as one: a few, and the first cause.

    Args:
        named: names with reasons.
        more: how many others there are, which nobody has looked at.
    """
    reasons = list(named)
    texts = (f"{name} ({reason.text})" for name, reason in reasons)
    return Reason(
        some_of(chain(texts, repeat("", more if len(reasons) >= REASONS else 0)), REASONS),
        next((reason.cause for _, reason in reasons if reason.cause is not None), None),
    )
