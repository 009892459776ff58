"""A producer that does what a test tells it, with the bulk calls' results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafka_fast.errors import DeliveryError, KafkaTimeoutError, Outcome
from kafka_fast.types import BatchResult, PartitionResult, TopicPartition


def refused(topic: str, partition: int | None = 0, text: str = "refused") -> DeliveryError:
    error = DeliveryError(text, outcome=Outcome.REJECTED, first=ValueError(text))
    error.topic = topic
    error.partition = partition
    return error


class FakeFuture:
    """What became of a bulk call, once the test has said it is known."""

    def __init__(
        self, topic: str, count: int, base_offset: int, errors: Sequence[DeliveryError] = ()
    ) -> None:
        self.topic = topic
        self.count = count
        self.base_offset = base_offset
        self.errors = errors
        self.known = True
        self.waited: list[float | None] = []

    def __len__(self) -> int:
        return self.count

    def done(self) -> bool:
        return self.known

    def result(self, timeout: float | None = None) -> BatchResult:
        self.waited.append(timeout)
        if not self.known:
            raise KafkaTimeoutError(f"not known after {timeout} s")
        delivered = self.count - len(self.errors)
        last = self.base_offset + delivered - 1
        result = PartitionResult(delivered, self.base_offset, last, 10 * delivered)
        partitions = {TopicPartition(self.topic, 0): result} if delivered else {}
        return BatchResult(self.count, len(self.errors), partitions)

    def failed(self, timeout: float | None = None) -> list[tuple[int, DeliveryError]]:
        return list(enumerate(self.errors))


class FakeProducer:
    """Keeps what it is given; `outcome` makes the future of each call."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        self.config = config
        self.calls: list[tuple[str, list[Any], dict[str, Any]]] = []
        self.closed: list[float | None] = []
        self.written = 0
        self.outcome: Callable[[str, int], FakeFuture] = self.deliver

    def deliver(self, topic: str, count: int) -> FakeFuture:
        base_offset = self.written
        self.written += count
        return FakeFuture(topic, count, base_offset)

    def send_many(self, topic: str, values: Sequence[Any], **columns: Any) -> FakeFuture:
        self.calls.append((topic, list(values), columns))
        return self.outcome(topic, len(values))

    def close(self, timeout: float | None = None) -> None:
        self.closed.append(timeout)
