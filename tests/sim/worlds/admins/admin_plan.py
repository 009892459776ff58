"""What a seed decides before a world with an admin client begins."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.sim.worlds.plan import NetworkPlan, TopicPlan, make_network

TOPICS_EACH = 3
"""How many topics a user has, of which not all exist."""

NO_SUCH_NAME = "no good"
"""The end of a name that no broker takes."""


@dataclass(frozen=True, slots=True)
class AdminPlan:
    """One world."""

    seed: int
    nodes: int
    version: str
    topics: tuple[TopicPlan, ...]
    """All that users create, each again and again."""
    config: dict[str, Any]
    network: NetworkPlan
    users: int
    calls: int
    """How many each user makes before all is healed."""
    duration: float
    """Seconds over which the users call, and the faults strike."""
    faults: int
    """How many strike."""
    storm: float
    """Of all requests, how many go wrong besides; 0: no storm."""
    cancels: float
    """Of all calls, how many are cancelled."""
    closes_early: bool
    """The client is closed while calls wait."""

    @property
    def request_timeout(self) -> float:
        """Seconds that a node has for one try."""
        return float(self.config["request.timeout.ms"]) / 1000

    @property
    def recovery(self) -> float:
        """Seconds after which the client has noticed what was broken, and gone on.

        An answer may be missing, then a connection that is made for the next try.
        """
        setup = float(self.config["socket.connection.setup.timeout.ms"]) / 1000
        return 2 * (self.request_timeout + setup) + 10.0


def make_admin_plan(seed: int) -> AdminPlan:
    """Return the plan of a seed."""
    source = random.Random(f"admin/plan/{seed}")
    nodes = source.choice((1, 2, 3, 3))
    calm = source.random() < 0.1
    users = source.choice((1, 2, 3))
    return AdminPlan(
        seed=seed,
        nodes=nodes,
        version=source.choice(("newest", "newest", "newest", "2.1", "2.8", "3.9")),
        topics=tuple(
            TopicPlan(
                name=f"user-{user}.{number}",
                partitions=source.choice((1, 1, 2, 4)),
                replication_factor=source.randint(1, nodes),
                max_message_bytes=1_000_000,
            )
            for user in range(users)
            for number in range(TOPICS_EACH)
        ),
        config=_config(source, nodes),
        network=make_network(source, calm=calm),
        users=users,
        calls=source.choice((8, 16, 24)),
        duration=source.choice((0.3, 1.0, 4.0)),
        faults=0 if calm else source.choice((0, 2, 4, 8, 12)),
        storm=0.0 if calm else source.choice((0.0, 0.0, 0.05, 0.2)),
        cancels=source.choice((0.0, 0.1, 0.3)),
        closes_early=source.random() < 0.08,
    )


def _config(source: random.Random, nodes: int) -> dict[str, Any]:
    listed = source.sample(range(1, nodes + 1), source.randint(1, nodes))
    request_timeout_ms = source.choice((400, 1_000, 5_000))
    return {
        "bootstrap.servers": ",".join(f"node-{node}:{9000 + node}" for node in listed),
        "request.timeout.ms": request_timeout_ms,
        "default.api.timeout.ms": request_timeout_ms * source.choice((1, 4, 12)),
        "retry.backoff.ms": source.choice((5, 20, 100)),
        "retry.backoff.max.ms": 1_000,
        "reconnect.backoff.ms": source.choice((0, 50)),
        "reconnect.backoff.max.ms": 1_000,
        "socket.connection.setup.timeout.ms": source.choice((500, 5_000)),
        "metadata.max.age.ms": source.choice((500, 300_000)),
        "connections.max.idle.ms": source.choice((200, 5_000, 540_000)),
    }
