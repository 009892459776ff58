"""What a consumer's user reads of the control plane, beyond what every client shows.

Reading takes no lock, as with every `View`: what is returned may be out of date by an event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast.control.consumer.consumer_messages import BrokerFailed
from kafka_fast.control.consumer.diagnosis import FetchStatus
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.diagnosis.waiting_reasons import reasons_of_several
from kafka_fast.control.view import View
from kafka_fast.logs import Waiting
from kafka_fast.types import TopicPartition

if TYPE_CHECKING:
    from kafka_fast.control.consumer.consumer_control import ConsumerControl


class ConsumerView(View):
    """One consumer's control plane, to be read by any thread."""

    def __init__(self, control: ConsumerControl) -> None:
        """Read from this control plane."""
        super().__init__(control)
        self._consumer = control

    def status_of(self, partition: TopicPartition, now: float) -> FetchStatus:
        """Return the state of a partition, for people."""
        return self._consumer.diagnosis.status(partition, now)

    def why_waiting_for_several(self, partitions: Iterable[TopicPartition], now: float) -> Reason:
        """Return why no records of the first few of these partitions come."""
        return reasons_of_several(
            (partition, self.why_waiting(partition, now)) for partition in partitions
        )

    def why_waiting(self, partition: TopicPartition, now: float) -> Reason:
        """Return why no records of a partition come."""
        return self._consumer.diagnosis.why_waiting(partition, now)

    def is_fetched(self, partition: TopicPartition, now: float) -> bool:
        """Tell whether a partition is fetched and nothing known is in the way."""
        return self._consumer.diagnosis.is_fetched(partition, now)

    def is_well(self, partition: TopicPartition, now: float) -> bool:
        """Tell whether what was wrong with a partition is over."""
        return self._consumer.diagnosis.is_well(partition, now)

    def is_over(self, failed: BrokerFailed) -> bool:
        """Tell whether what was wrong with a node is over."""
        return self._consumer.is_over(failed)

    def why_waiting_for_group(self) -> Waiting | None:
        """Return what a member without partitions waits for; None: nothing, or no group."""
        group = self._consumer.group
        return None if group is None else group.why_waiting()
