"""An established connection, as the control plane's parts name it to each other."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_fast.control.negotiation import NodeVersions


@dataclass(frozen=True, slots=True)
class Link:
    """An established connection that has been negotiated."""

    id: int
    node_id: int
    versions: NodeVersions
