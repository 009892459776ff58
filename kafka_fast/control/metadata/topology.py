"""The nodes and topics of a cluster, and what each piece of news changes in them.

`Topology` holds the picture. `Cluster`, its only subclass, knows where news comes from and when to
ask for it. News comes in pieces: the nodes, one topic, or one leader. Each piece notes its effects
in the `ClusterChanges` of its answer.

The getters may be called from any thread: each reads one immutable record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.control.messages import TopicSettled
from kafka_fast.control.metadata.metadata import (
    NO_LEADER,
    NO_TOPIC_ID,
    ClusterChanges,
    LeaderChange,
    LeaderHint,
    Node,
    Partition,
    PartitionCountChange,
    Topic,
    TopicRecreated,
    known_topic_id,
    merge_topic,
    with_leaders,
)
from kafka_fast.errors import ERRORS, BrokerError, ErrorCode, broker_error
from kafka_fast.logs import get_logger
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponseTopic
from kafka_fast.values import replace

__all__ = ["Topology"]

logger = get_logger("kafka_fast.metadata")


class Topology:
    """Nodes, topics, partitions and leaders. Getters: any thread; the rest: control thread."""

    def __init__(self) -> None:
        self._nodes: dict[int, Node] = {}
        self._racks: dict[int, str] = {}  # of all nodes that were ever known and have one
        self._topics: dict[str, Topic] = {}
        self._names: dict[bytes, str] = {}  # topic id → name; the inverse of Topic.topic_id
        self._errors: dict[str, int] = {}  # topics whose last answer was an error
        self._lacks: dict[str, str] = {}  # topics with an error: what their last answer left out
        self._removed: set[str] = set()  # known topics that the brokers do not know any more
        self._left: dict[str, bytes] = {}  # topics of the cluster before this one, and their ids
        self._answers: Counter[str] = Counter()  # answers so far, by topic

    # ---- getters ----

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that can be addressed."""
        return tuple(self._nodes.values())

    def node(self, node_id: int) -> Node | None:
        """Return a node by its id."""
        return self._nodes.get(node_id)

    def racks(self) -> dict[int, str]:
        """Return the racks of the nodes that have one. A node keeps its rack while it is away."""
        return self._racks.copy()

    def topic(self, topic: str) -> Topic | None:
        """Return all that is known of a topic."""
        return self._topics.get(topic)

    def topic_id(self, topic: str) -> bytes | None:
        """Return a topic's id; None if it, or the id, is not known."""
        known = self._topics.get(topic)
        return None if known is None else known.topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with this id."""
        return self._names.get(topic_id)

    def partitions(self, topic: str) -> Sequence[Partition]:
        """Return a topic's partitions by index; empty if it is not known."""
        known = self._topics.get(topic)
        return () if known is None else known.partitions

    def partition_count(self, topic: str) -> int | None:
        """Return the number of a topic's partitions; None if it is not known."""
        known = self._topics.get(topic)
        return None if known is None else len(known.partitions)

    def leader(self, topic: str, partition: int) -> Node | None:
        """Return the node that leads a partition; None if no known node does."""
        partitions = self.partitions(topic)
        if not 0 <= partition < len(partitions):
            return None
        return self._nodes.get(partitions[partition].leader_id)

    def leader_epoch(self, topic: str, partition: int) -> int:
        """Return the epoch of a partition's leader; -1 if it is not known."""
        partitions = self.partitions(topic)
        return partitions[partition].leader_epoch if 0 <= partition < len(partitions) else -1

    def error(self, topic: str) -> int:
        """Return the error code of the last answer for a topic; 0 for none.

        A topic with an error may still have partitions: those known before the error.
        """
        return self._errors.get(topic, 0)

    def answers(self, topic: str) -> int:
        """Return how many answers for a topic there were, those that deny it included."""
        return self._answers[topic]

    def is_absent(self, topic: str) -> bool:
        """Tell whether the last answer for a topic was that it does not exist."""
        return self.error(topic) in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
        )

    def refusal(self, topic: str) -> BrokerError | None:
        """Return the error of the last answer for a topic; None if it had none. Any thread."""
        code = self.error(topic)
        if not code:
            return None
        lacks = self._lacks.get(topic)  # once: in another thread an answer may change it
        if lacks is not None:
            return broker_error(code, f"the answer to Metadata {lacks}")
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return broker_error(code, f"there is no topic {topic!r}")
        return broker_error(code, f"topic {topic!r}: {described(code, 'Metadata')}")

    def forget_error(self, topic: str) -> None:
        """Let the next error of a topic count as a change, even if its code is the same."""
        self._errors.pop(topic, None)

    def settled(self, topic: str) -> TopicSettled | None:
        """Return what to tell those who wait for a topic; None while there is nothing to tell."""
        if self.partition_count(topic):
            return TopicSettled(topic, None)
        code = self.error(topic)
        known = ERRORS.get(code)
        if code != 0 and (known is None or not known.retriable):
            return TopicSettled(topic, self.refusal(topic))
        return None

    # ---- news ----

    def _replace_nodes(self, nodes: dict[int, Node], changes: ClusterChanges) -> AbstractSet[int]:
        """Take the new list of nodes; return the ids of those that have come or gone."""
        before, self._nodes = self._nodes, nodes
        for node in nodes.values():
            if node.rack:
                self._racks[node.id] = node.rack
            else:
                self._racks.pop(node.id, None)
        for node_id in before.keys() | nodes.keys():
            old, new = before.get(node_id), nodes.get(node_id)
            if old is None and new is not None:
                changes.nodes_added.append(new)
            elif old is not None and new is None:
                changes.nodes_removed.append(old)
            elif old is not None and new is not None and old.address != new.address:
                changes.nodes_readdressed.append((old, new))
        return before.keys() ^ nodes.keys()

    def _note_flipped(
        self, topic: Topic, flipped: AbstractSet[int], changes: ClusterChanges
    ) -> None:
        """Note which partitions gained or lost their leader with nodes that have come or gone."""
        for partition in topic.partitions if flipped else ():
            if partition.leader_id in flipped:
                old_id, new_id = partition.leader_id, NO_LEADER
                if partition.leader_id in self._nodes:
                    old_id, new_id = new_id, old_id
                changes.note_leader(
                    LeaderChange(topic.name, partition.id, old_id, new_id, partition.leader_epoch)
                )

    def _take_topic(
        self,
        name: str,
        reported: MetadataResponseTopic | None,
        version: int,
        changes: ClusterChanges,
    ) -> None:
        """Take what an answer says of a topic; `reported` is None if it leaves the topic out."""
        changes.answered.append(name)
        self._answers[name] += 1
        self._lacks.pop(name, None)
        code: int
        if reported is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self._lacks[name] = f"leaves topic {name!r} out"
        elif not reported.error_code and not reported.partitions:
            code = ErrorCode.LEADER_NOT_AVAILABLE  # a topic that is still being made
            self._lacks[name] = f"names no partition of topic {name!r}"
        else:
            code = reported.error_code
        if code != self._errors.get(name, 0):
            changes.topic_errors[name] = code
        known = self._topics.get(name)
        if reported is None or code:
            self._errors[name] = code
            is_gone = code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
            if is_gone and known is not None and name not in self._removed:
                self._removed.add(name)
                changes.removed_topics.append(name)
            return
        self._errors.pop(name, None)
        topic_id = known_topic_id(reported.topic_id)
        left = self._left.pop(name, None)
        if left is not None:
            changes.recreated_topics.append(TopicRecreated(name, left, topic_id or NO_TOPIC_ID))
            self._put_topic(merge_topic(name, None, reported, version))
        elif known is None:
            changes.new_topics.append(name)
            self._put_topic(merge_topic(name, None, reported, version))
        elif known.topic_id and topic_id and known.topic_id != topic_id:
            changes.recreated_topics.append(TopicRecreated(name, known.topic_id, topic_id))
            changes.forget_leaders(known)
            self._put_topic(merge_topic(name, None, reported, version))
        else:
            was_removed = name in self._removed
            if was_removed:
                changes.returned_topics.append(name)
            # Without an id a recreated topic looks like the old one, but its epochs begin at 0
            # again. If the old epochs were kept, its leaders would never be taken.
            starts_over = was_removed and known.topic_id is None
            merged = merge_topic(name, None if starts_over else known, reported, version)
            if merged != known:
                self._note_leaders(known, merged, changes)
                self._put_topic(merged)
            if known.topic_id is None and self._topics[name].topic_id is not None:
                changes.identified_topics.append(name)
        self._removed.discard(name)

    def _take_leaders(
        self, topic: Topic, hints: Sequence[LeaderHint], changes: ClusterChanges
    ) -> None:
        """Take newer leaders of some partitions of a topic."""
        moved = with_leaders(topic, hints)
        for hint in hints:
            self._note_leader(topic.partitions[hint.partition], moved, changes)
        self._topics[topic.name] = moved

    def _forget_topic(self, name: str, changes: ClusterChanges) -> None:
        """Forget all that is known of a topic."""
        self._lacks.pop(name, None)
        self._left.pop(name, None)
        topic = self._topics.pop(name, None)
        if topic is not None:
            changes.forget_leaders(topic)
            if topic.topic_id is not None:
                del self._names[topic.topic_id]
        self._answers.pop(name, None)
        self._errors.pop(name, None)
        self._removed.discard(name)

    def _leave_topics(self) -> None:
        """Forget all topics but their names: those of another cluster are other topics."""
        self._left |= {name: topic.topic_id or NO_TOPIC_ID for name, topic in self._topics.items()}
        self._topics.clear()
        self._names.clear()
        self._errors.clear()
        self._removed.clear()

    def _is_unresolved(self, name: str) -> bool:
        """Tell whether a topic must be asked for again soon."""
        code = self._errors.get(name, 0)
        if code:
            # Asking does not help with missing rights and bad names. `want_topic` asks again.
            return code in ERRORS and ERRORS[code].retriable
        return any(partition.leader_id not in self._nodes for partition in self.partitions(name))

    def _put_topic(self, topic: Topic) -> None:
        """Store a topic. An id belongs to one name only."""
        old = self._topics.get(topic.name)
        if old is not None and old.topic_id is not None:
            del self._names[old.topic_id]
        if topic.topic_id is not None:
            other = self._names.setdefault(topic.topic_id, topic.name)
            if other != topic.name:
                logger.warning("topics %r and %r are said to have one id", other, topic.name)
                topic = replace(topic, topic_id=None)
        self._topics[topic.name] = topic

    def _note_leaders(self, known: Topic, merged: Topic, changes: ClusterChanges) -> None:
        """Note the partitions that were added, are gone, or have another leader than before."""
        old_count, count = len(known.partitions), len(merged.partitions)
        if count != old_count:
            changes.resized.append(PartitionCountChange(merged.name, old_count, count))
            changes.forget_leaders(known, count)
        for old in known.partitions[:count]:
            self._note_leader(old, merged, changes)

    def _note_leader(self, old: Partition, merged: Topic, changes: ClusterChanges) -> None:
        """Note that a partition has another leader than before, if it has."""
        new = merged.partitions[old.id]
        if (old.leader_id, old.leader_epoch) != (new.leader_id, new.leader_epoch):
            changes.note_leader(
                LeaderChange(
                    merged.name,
                    new.id,
                    self._reachable(old.leader_id),
                    self._reachable(new.leader_id),
                    new.leader_epoch,
                )
            )

    def _reachable(self, leader_id: int) -> int:
        """Return the leader's id, or -1 if it is not among the nodes."""
        return leader_id if leader_id in self._nodes else NO_LEADER
