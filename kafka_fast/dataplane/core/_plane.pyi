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
    def send_raw(
        self, link_id: int, token: int, frame: bytes, timeout: float, of_login: bool = False
    ) -> None: ...
    def open_gate(self, link_id: int, until: float) -> None: ...
    def close_link(self, link_id: int) -> None: ...
    def start_heartbeats(
        self,
        link_id: int,
        token: int,
        frame: bytes,
        period: float,
        expected_body: bytes,
        timeout: float,
        delay: float = 0.0,
        epoch_pos: int = 0,
    ) -> None: ...
    def stop_heartbeats(self, token: int) -> None: ...
    def send_between(
        self, token: int, own_token: int, heard: int, frame: bytes, timeout: float
    ) -> None: ...
    def set_alive_until(self, until: float) -> None: ...
    def check_owner(self) -> None: ...
    def request_dump(self, token: int) -> None: ...
    def mark_inherited(self) -> None: ...
    def shut_down(self) -> None: ...
    def take_events(self) -> list[tuple[Any, ...]]: ...
    def step(self, now: float) -> float: ...
    def stats(self) -> dict[str, Any]: ...
    def node_stats(self) -> dict[int, dict[str, Any]]: ...
