"""What became of the records of ended batches, and who is told."""

from collections.abc import Callable

from kafka_fast.dataplane._plane import DataPlane
from kafka_fast.errors import DeliveryError

def collect(plane: DataPlane) -> bool: ...
def notify(plane: DataPlane, report: Callable[[object, BaseException], object]) -> None: ...
def take_lost(plane: DataPlane) -> tuple[int, DeliveryError | None]: ...
