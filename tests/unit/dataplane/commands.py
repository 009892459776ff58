"""What the rigs of the data plane tell it: each command by its name, as a call."""

from __future__ import annotations

from typing import Any

from kafka_fast.consumer import consumer_carrier as fetch_carrier
from kafka_fast.control import messages as transport
from kafka_fast.control.consumer import consumer_messages as fetch
from kafka_fast.control.producer import producer_messages as produce
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.net._transport_carrier import carry_transport
from kafka_fast.producer import producer_carrier as produce_carrier

SEED = 1


class TransportCalls:
    """Commands for the transport of `plane`."""

    plane: DataPlane

    def send_raw(self, *args: Any) -> None:
        carry_transport(transport.SendRaw(*args), self.plane)

    def open_gate(self, *args: Any) -> None:
        carry_transport(transport.OpenGate(*args), self.plane)

    def pause_link(self, *args: Any) -> None:
        carry_transport(transport.PauseLink(*args), self.plane)

    def close_link(self, *args: Any) -> None:
        carry_transport(transport.CloseLink(*args), self.plane)

    def start_heartbeats(self, *args: Any) -> None:
        carry_transport(transport.StartHeartbeats(*args), self.plane)

    def stop_heartbeats(self, *args: Any) -> None:
        carry_transport(transport.StopHeartbeats(*args), self.plane)

    def send_between(self, *args: Any) -> None:
        carry_transport(transport.SendBetween(*args), self.plane)


class ProduceCalls(TransportCalls):
    """Commands for the produce side, too."""

    queues: Queues

    def carry(self, command: produce.ProduceCommand) -> None:
        produce_carrier.carry_out(self.queues, command, SEED)

    def route(self, *args: Any) -> None:
        self.carry(produce.RouteQueue(*args))

    def set_producer_id(self, *args: Any) -> None:
        self.carry(produce.SetProducerId(*args))

    def limit_topic(self, *args: Any) -> None:
        self.carry(produce.LimitTopic(*args))

    def restart_topic(self, *args: Any) -> None:
        self.carry(produce.RestartTopic(*args))

    def renumber(self, *args: Any) -> None:
        self.carry(produce.RenumberQueue(*args))

    def fail_queue(self, *args: Any) -> None:
        self.carry(produce.FailQueue(*args))


class FetchCalls(TransportCalls):
    """Commands for the fetch side, too."""

    streams: Streams

    def carry(self, command: fetch.FetchCommand) -> None:
        fetch_carrier.carry_out(self.streams, command)

    def stop_stream(self, *args: Any) -> None:
        self.carry(fetch.StopStream(*args))

    def remove_stream(self, *args: Any) -> None:
        self.carry(fetch.RemoveStream(*args))
