"""A consumer that describes a group without joining it. For the command line only."""

from __future__ import annotations

from kafka_fast.consumer.client import Consumer
from kafka_fast.control.group.descriptions import GroupDescription


class GroupObserver(Consumer):
    """A consumer that never subscribes, so it is no member of its group and changes nothing."""

    def description(self, timeout: float | None = None) -> GroupDescription:
        """Return the group's state, and its members' subscriptions.

        Args:
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            BrokerError: the group, or a topic of its members, may not be seen.
            KafkaTimeoutError: no answer in time.
        """
        with self._caller_lock:
            deadline = self._calls.deadline(timeout)
            return self._core.driver.run(self._core.queries.description(deadline))
