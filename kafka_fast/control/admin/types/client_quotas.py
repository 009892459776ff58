"""How much users, clients and addresses may do."""

from __future__ import annotations

import enum
from typing import TypeAlias

from kafka_fast.values import Value


class ClientQuotaName(enum.Enum):
    """What stands in place of the name of a user, a client or an address."""

    DEFAULT = "<default>"
    """All that have no quota of their own."""
    ANY = "<any>"
    """In filters only: whatever the name, the default included."""


EntityName: TypeAlias = "str | ClientQuotaName | None"


class ClientQuotaEntity(Value):
    """Whom a quota limits: a user, a client, a client of a user, or an address."""

    user: EntityName = None
    """Name of the principal, without "User:"; None: whoever it is."""
    client_id: EntityName = None
    """None: whatever its client.id is."""
    ip: EntityName = None
    """Address or host name from which connections come. It stands alone, and needs Kafka 2.8."""
    others: tuple[tuple[str, EntityName], ...] = ()
    """Types that newer brokers have, each with its name."""

    def parts(self) -> dict[str, EntityName]:
        """Return the names by Kafka's words for their types."""
        parts = {"user": self.user, "client-id": self.client_id, "ip": self.ip}
        parts = {kind: name for kind, name in parts.items() if name is not None}
        return {**parts, **dict(self.others)}

    def __str__(self) -> str:
        """Return the entity in words: "user 'alice', client-id <default>"."""
        return ", ".join(f"{kind} {_shown(name)}" for kind, name in self.parts().items())


def _shown(name: EntityName) -> str:
    return name.value if isinstance(name, ClientQuotaName) else repr(name)


class ClientQuotaFilter(Value):
    """Quotas to describe: those whose entity has all of these names. Without names all match."""

    user: EntityName = None
    """A name, DEFAULT or ANY; None: not looked at."""
    client_id: EntityName = None
    """As above."""
    ip: EntityName = None
    """As above."""
    strict: bool = False
    """Leave out entities that have a name more: with user ANY, clients of users."""
