"""What leaves the data plane for Python: events, and traces of links."""

from typing import TypeVar

from kafka_fast.dataplane.core.constructors import EventConstructors

_R = TypeVar("_R")

class PlaneEvent:
    def read(self, constructors: EventConstructors[_R]) -> _R: ...

def read_traces(ring: bytes) -> list[tuple[float, str]]: ...
