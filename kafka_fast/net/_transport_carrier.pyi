"""Packs the commands of the transport; the module is made by a build."""

from kafka_fast.control.messages import TransportCommand
from kafka_fast.dataplane.core._plane import DataPlane

def carry_transport(message: TransportCommand, plane: DataPlane) -> None: ...
