"""Packs the commands of the produce side; the module is made by a build."""

from kafka_fast.control.producer.producer_messages import ProduceCommand
from kafka_fast.dataplane.produce._queues import Queues

def carry_produce(message: ProduceCommand, queues: Queues, seed: int) -> None: ...
