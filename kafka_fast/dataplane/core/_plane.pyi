"""The data plane as an object, a transport: links, raw requests, heartbeats, events, numbers."""

from typing import Any

WAIT_SLICE: float
"""Seconds between two looks for signals."""

EVENT_RESPONSE: int
EVENT_LINK_CLOSED: int
EVENT_THROTTLED: int
EVENT_DUMP: int
EVENT_BAD_ANSWER: int
EVENT_HEARTBEATS_ENDED: int
EVENT_GATE_SHUT: int
EVENT_UNKNOWN_COMMAND: int

class Environment: ...

class DataPlane:
    dead: bool
    inherited: bool
    def __init__(
        self,
        environment: Environment,
        *,
        max_frame: int,
        request_timeout: float,
        max_idle: float = 0.0,
    ) -> None: ...
    def set_alive_until(self, until: float) -> None: ...
    def check_owner(self) -> None: ...
    def mark_inherited(self) -> None: ...
    def shut_down(self) -> None: ...
    def take_events(self) -> list[tuple[Any, ...]]: ...
    def step(self, now: float) -> float: ...
    def stats(self) -> dict[str, Any]: ...
    def node_stats(self) -> dict[int, dict[str, Any]]: ...
