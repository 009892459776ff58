"""Carries the messages of the transport between the planes; the module is made by a build."""

from kafka_fast.control.messages import DumpEvent, TransportCommand, TransportEvent
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.dataplane.core._plane import DataPlane

def carry_transport(message: TransportCommand, plane: DataPlane) -> None: ...
def read_transport(carried: PlaneEvent) -> TransportEvent | DumpEvent: ...
