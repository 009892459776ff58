"""Carries the messages of the produce side between the planes; the module is made by a build."""

from kafka_fast.control.messages import DumpEvent
from kafka_fast.control.producer.producer_messages import ProduceCommand, ProducerEvent
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.dataplane.produce._queues import Queues

def carry_produce(message: ProduceCommand, queues: Queues, seed: int) -> None: ...
def read_produce(carried: PlaneEvent) -> ProducerEvent | DumpEvent: ...
