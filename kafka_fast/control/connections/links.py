"""The links of one client that may be used now, and over which of them a request goes.

A broker answers one request of a connection after the other, and may hold a Fetch back until there
is something to read. So a link that carries Fetch requests is *held*: the control plane's requests
to its node go over a connection of `Role.CONTROL`, which the first such request opens. As long as
a node's data connection carries no Fetch, it carries those requests too.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.negotiation import NodeVersions
from kafka_fast.values import Value


class Link(Value):
    """An established connection that has been negotiated."""

    id: int
    key: ConnectionKey
    versions: NodeVersions


class Links:
    """The ready links. Control thread only; `Connections` adds and removes them."""

    def __init__(self) -> None:
        self._by_id: dict[int, Link] = {}
        self._by_key: dict[ConnectionKey, Link] = {}
        self._held: set[int] = set()  # ids

    @property
    def ready(self) -> Iterable[Link]:
        """All links that may be used now."""
        return self._by_id.values()

    @property
    def has_any(self) -> bool:
        """Whether any link may be used now. Any thread."""
        return bool(self._by_id)

    @property
    def free(self) -> Iterable[Link]:
        """The links on which a request does not wait for what the node holds back."""
        return (
            link
            for link in self._by_id.values()
            if link.id not in self._held and link.key.role is not Role.SLOW
        )

    def link(self, link_id: int) -> Link | None:
        """Return the link with this id, or None."""
        return self._by_id.get(link_id)

    def link_to(self, key: ConnectionKey) -> Link | None:
        """Return the link of a connection, or None."""
        return self._by_key.get(key)

    def request_link(self, node_id: int) -> Link | None:
        """Return the link for the control plane's requests to a node, or None."""
        return self.link_to(self.request_key(node_id))

    def request_key(self, node_id: int) -> ConnectionKey:
        """Return which connection is for the control plane's requests to a node."""
        data = ConnectionKey(Role.DATA, node_id)
        control = ConnectionKey(Role.CONTROL, node_id)
        link = self.link_to(data)
        if link is None:
            return data if self.link_to(control) is None else control
        return control if link.id in self._held else data

    def is_spare(self, key: ConnectionKey) -> bool:
        """Tell whether a connection has a link that nobody needs: to bootstrap, beside others."""
        is_linked = key.is_bootstrap and key in self._by_key
        return is_linked and any(not link.key.is_bootstrap for link in self.ready)

    def hold(self, link: Link) -> None:
        """From now on the node may keep this link waiting: requests go over another link."""
        self._held.add(link.id)

    def add(self, link: Link) -> None:
        """Take a link that may be used from now on."""
        self._by_id[link.id] = self._by_key[link.key] = link

    def remove(self, link: Link) -> bool:
        """Forget a link that is gone; return whether it was there."""
        if self._by_id.pop(link.id, None) is None:
            return False
        self._held.discard(link.id)
        if self._by_key.get(link.key) is link:
            del self._by_key[link.key]
        return True
