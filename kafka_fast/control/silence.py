"""Why a partition's leader says nothing: what whoever waited for it in vain is told.

Thread: any. What is read changes meanwhile, and that is well: it is for people.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from kafka_fast.control.cluster import Cluster
from kafka_fast.control.links import Links
from kafka_fast.control.metadata import NO_LEADER, node_name
from kafka_fast.errors import ERRORS
from kafka_fast.types import TopicPartition

NAMED = 5
"""Most partitions that one message names."""


def reason(cluster: Cluster, links: Links, partition: TopicPartition) -> str:
    """Return what stands between this client and a partition's leader, in a few words."""
    topic, number = partition
    if code := cluster.error(topic):
        known = ERRORS.get(code)
        return f"the brokers say {code if known is None else known.name} of its topic"
    partitions = cluster.partitions(topic)
    if not partitions:
        return "nothing is known of its topic yet"
    if number >= len(partitions):
        return f"its topic has {len(partitions)} partitions"
    leader_id = partitions[number].leader_id
    if leader_id == NO_LEADER:
        return "it has no leader"
    leader = node_name(leader_id)
    if cluster.node(leader_id) is None:
        return f"its leader, {leader}, is not there"
    if links.link_to(leader_id) is None and links.free_link_to(leader_id) is None:
        return f"no connection to its leader, {leader}"
    return f"its leader, {leader}, does not answer"


def some_of(things: Iterable[object]) -> str:
    """Return the first few of these as text, and how many more there are."""
    rest = iter(things)
    text = ", ".join(map(str, islice(rest, NAMED)))
    more = sum(1 for _ in rest)
    return f"{text} and {more} more" if more else text
