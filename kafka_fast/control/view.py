"""What users' threads read of one client's control plane.

    users' threads ── read ──► View ──► cluster, connections, troubles ◄── change ── kf-control
                   ── call, commands, steps that wait ─────────────────────────────►

Reading takes no lock. What is returned is one object that does not change any more, or a text for
people; both may be out of date by an event. Whatever changes the control plane goes over its
thread: see `net/calls.py`. `tests/layers.py` (`APART`) refuses other ways in for the modules of
users' threads. What only one kind of client has to show its own view shows (`ConsumerView`: why a
partition is not read), or its own parts do, in methods that say "any thread": positions, causes of
failed records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kafka_fast.control.connections.refusals import RefusalWatch
from kafka_fast.control.diagnosis import waiting_reasons
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.metadata.metadata import ListedTopic, partition_infos
from kafka_fast.errors import KafkaError
from kafka_fast.types import PartitionInfo, TopicPartition

if TYPE_CHECKING:
    from kafka_fast.control.client_control import ClientControl

__all__ = ["ListedTopic", "RefusalWatch", "View"]


class View:
    """One client's control plane, to be read by any thread."""

    def __init__(self, control: ClientControl[Any, Any, Any]) -> None:
        """Read from this control plane."""
        self._control = control

    # ---- the client ----

    @property
    def kind(self) -> str:
        """What errors and the log call such a client."""
        return self._control.kind

    @property
    def client_id(self) -> str:
        """The client's id."""
        return self._control.context.client_id

    @property
    def fatal(self) -> KafkaError | None:
        """Why the client cannot go on. Others keep this object too, so raise a copy."""
        return self._control.fatal

    def watch_refusals(self) -> RefusalWatch:
        """Return what looks out for refused logins and certificates from now on."""
        return self._control.connections.refusals.watch()

    def stats(self) -> dict[str, object]:
        """Return the counters of what went wrong, as `metrics()` has them."""
        return self._control.troubles.stats()

    def describe(self, now: float) -> str:
        """Return the state of things in a few lines, for people."""
        return self._control.describe(now)

    # ---- topics ----

    def partition_infos(self, topic: str) -> list[PartitionInfo]:
        """Return a topic's partitions as the user gets them; none if the topic is not known."""
        return partition_infos(self._control.cluster.topic(topic))

    def partition_count(self, topic: str) -> int | None:
        """Return the number of a topic's partitions; None if it is not known."""
        return self._control.cluster.partition_count(topic)

    def topic_error(self, topic: str) -> int:
        """Return the error code of the last answer for a topic; 0 for none."""
        return self._control.cluster.error(topic)

    def is_absent(self, topic: str) -> bool:
        """Tell whether the last answer for a topic was that it does not exist."""
        return self._control.cluster.is_absent(topic)

    @property
    def all_topics(self) -> frozenset[ListedTopic] | None:
        """All topics there are, while somebody wants them; None until the first such answer."""
        return self._control.cluster.all_topics

    # ---- why something has not come ----

    def around(self, now: float, since: float) -> list[Reason]:
        """Return the last trouble since a time, and what has been under way for long."""
        return waiting_reasons.around(self._control.connections, now, since)

    def why_waiting_for_topic(self, topic: str, now: float, since: float) -> list[Reason]:
        """Return why nothing is known of a topic that was asked for at `since`."""
        fatal = self.fatal
        if fatal is not None:
            return [Reason(str(fatal), fatal)]
        return waiting_reasons.why_waiting_for_topic(
            self._control.cluster, self._control.connections, topic, now, since
        )

    def describe_topic_wait(self, topic: str, now: float, since: float) -> str:
        """Return in a sentence why a topic is waited for."""
        cluster, connections = self._control.cluster, self._control.connections
        return waiting_reasons.describe_topic_wait(cluster, connections, topic, now, since)

    def why_throttled(self, partitions: Iterable[TopicPartition], now: float) -> Reason | None:
        """Return which leader of these partitions throttles this client; None: no leader does."""
        cluster, connections = self._control.cluster, self._control.connections
        return waiting_reasons.why_throttled(cluster, connections, partitions, now)
