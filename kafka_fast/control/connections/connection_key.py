"""The name of a connection: which broker it leads to, and what it is for.

A broker answers the requests of a connection one after the other, and may hold a Fetch or a
JoinGroup for a long time. So requests that must not wait for each other have connections of their
own, even to the same broker. All of these count as the broker's in `metrics()`.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

__all__ = ["BOOTSTRAP", "SECOND_BOOTSTRAP", "UNKNOWN_NODE", "ConnectionKey", "Role"]

UNKNOWN_NODE = -1
"""The node id of a bootstrap server, which may be any broker."""


class Role(enum.Enum):
    """What a connection is for."""

    BOOTSTRAP = "bootstrap"
    """Metadata requests, to whichever of `bootstrap.servers` answers."""
    SECOND_BOOTSTRAP = "second bootstrap"
    """Metadata requests to another server, while the first one does not answer."""
    DATA = "data"
    """Produce and Fetch; and the control plane's requests, as long as there is no Fetch."""
    CONTROL = "control"
    """The control plane's requests to a broker whose data connection may be held by a Fetch."""
    SLOW = "slow"
    """Calls that a broker may work on for long: other requests do not wait behind them."""
    COORDINATOR = "coordinator"
    """A group member's requests to its coordinator, heartbeats above all."""

    __hash__ = object.__hash__  # Enum's is written in Python, and keys are looked up very often


class ConnectionKey(NamedTuple):
    """The identity of one of a client's connections. As text: its name in errors and the log."""

    role: Role
    node_id: int

    @property
    def is_bootstrap(self) -> bool:
        """True if it is not known which broker the connection leads to."""
        return self.node_id == UNKNOWN_NODE

    def __str__(self) -> str:
        match self.role:
            case Role.DATA:
                return f"node {self.node_id}"
            case Role.CONTROL:
                return f"node {self.node_id} (beside its fetches)"
            case Role.SLOW:
                return f"node {self.node_id} (for slow requests)"
            case Role.COORDINATOR:
                return f"coordinator (node {self.node_id})"
            case Role.BOOTSTRAP | Role.SECOND_BOOTSTRAP:
                return "bootstrap"


BOOTSTRAP = ConnectionKey(Role.BOOTSTRAP, UNKNOWN_NODE)
SECOND_BOOTSTRAP = ConnectionKey(Role.SECOND_BOOTSTRAP, UNKNOWN_NODE)
