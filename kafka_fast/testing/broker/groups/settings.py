"""What is fixed for all groups of a cluster: Kafka's broker settings, with its defaults.

Only the first rebalance of a group does not wait for more members: a test would wait with it.
"""

from __future__ import annotations

from dataclasses import dataclass

OFFSETS_TOPIC = "__consumer_offsets"


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The settings that Kafka calls group.* and offsets.*."""

    offsets_partitions: int = 50
    """Of the topic whose leaders are the coordinators."""
    offset_metadata_max: int = 4096
    """Characters."""
    # Classic groups.
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 0
    """Kafka: 3000."""
    new_member_timeout_ms: int = 300_000
    """Of a first join that waits."""
    # Both.
    max_size: int = 2**31 - 1
    """Members."""
    # KIP-848.
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_assignment_interval_ms: int = 1_000
    """Least time between two assignments of a group."""
