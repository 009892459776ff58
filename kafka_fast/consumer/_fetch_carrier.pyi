"""Packs the commands of the fetch side; the module is made by a build."""

from kafka_fast.control.consumer.consumer_messages import FetchCommand
from kafka_fast.dataplane.fetch._streams import Streams

def carry_fetch(message: FetchCommand, streams: Streams) -> None: ...
