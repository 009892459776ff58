"""Carries the messages of the fetch side between the planes; the module is made by a build."""

from kafka_fast.control.consumer.consumer_messages import ConsumerEvent, FetchCommand
from kafka_fast.control.messages import DumpEvent
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.dataplane.fetch._streams import Streams

def carry_fetch(message: FetchCommand, streams: Streams) -> None: ...
def read_fetch(carried: PlaneEvent) -> ConsumerEvent | DumpEvent: ...
