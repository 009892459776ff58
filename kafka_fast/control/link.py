"""A link: one established connection, as the parts of the control plane see it."""

from __future__ import annotations

from kafka_fast.control.connection_key import ConnectionKey
from kafka_fast.control.negotiation import NodeVersions
from kafka_fast.values import Value


class Link(Value):
    """An established connection that has been negotiated."""

    id: int
    key: ConnectionKey
    versions: NodeVersions
