"""Properties of admin clients only."""

from __future__ import annotations

from kafka_fast.config._key import ADMIN, Key, ValueKind

ADMIN_ONLY: tuple[Key, ...] = (
    Key(
        name="bootstrap.controllers",
        kind=ValueKind.ADDRESSES,
        default=(),
        clients=(ADMIN,),
        doc="Controllers to ask in place of brokers (KIP-919), as `bootstrap.servers` has brokers: "
        "for clusters whose brokers cannot be reached. The address is that of a listener in "
        "`controller.listener.names`. Needs Kafka 3.7.",
    ),
)
