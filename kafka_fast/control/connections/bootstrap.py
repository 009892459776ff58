"""Where one connection may lead: endpoints in order, each with all its IP addresses.

A connection to a node has one endpoint. A bootstrap connection has those of `bootstrap.servers`, in
a new random order each round, so that the clients of a cluster do not all connect to its first
broker. Every address of a name is tried before the next backoff
(`client.dns.lookup=use_all_dns_ips`). A name is resolved again in each round, because it may have
moved.

Nothing here resolves a name or opens a socket. `Candidates.next` says which of the two comes next,
and `Connection`, its caller, makes that a command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafka_fast.config import Address
from kafka_fast.values import Value

__all__ = ["Candidate", "Candidates"]

MAX_ADDRESSES = 16
"""Addresses of one name that one round tries. The next round goes on with the others."""


class Candidate(Value):
    """One place to open a link to."""

    endpoint: Address
    """As advertised or configured."""
    ip: str
    """One address of its host."""

    def __str__(self) -> str:
        if self.ip == self.endpoint.host:
            return str(self.endpoint)
        return f"{self.endpoint} [{self.ip}]"


class Candidates:
    """The endpoints and addresses that are left to try in this round."""

    def __init__(self, endpoints: Sequence[Address], random: Callable[[], float]) -> None:
        """Take the endpoints that lead to the same goal.

        Args:
            endpoints: at least one.
            random: returns a float in [0, 1), for their order.
        """
        self._all = list(endpoints)
        self._random = random
        self._rounds = 0
        self._endpoints: list[Address] = []  # not yet resolved, the next one last
        self._resolving: Address | None = None
        self._candidates: list[Candidate] = []  # of the endpoint resolved last, the next one last

    def __str__(self) -> str:
        return ", ".join(map(str, self._all))

    @property
    def resolving(self) -> Address | None:
        """The endpoint whose addresses are awaited."""
        return self._resolving

    def begin_round(self) -> None:
        """Start again with all endpoints."""
        self._rounds += 1
        self._candidates.clear()
        self._resolving = None
        self._endpoints = list(self._all)
        # Fisher and Yates: the random source has only floats.
        for i in range(len(self._endpoints) - 1, 0, -1):
            j = int(self._random() * (i + 1))
            self._endpoints[i], self._endpoints[j] = self._endpoints[j], self._endpoints[i]

    def next(self) -> Candidate | Address | None:
        """Return a candidate to try, or an endpoint to resolve first; None at the round's end."""
        if self._candidates:
            return self._candidates.pop()
        if not self._endpoints:
            return None
        endpoint = self._endpoints.pop()
        if _is_literal(endpoint.host):
            return Candidate(endpoint, endpoint.host)
        self._resolving = endpoint
        return endpoint

    def handle_resolved(self, ips: Sequence[str]) -> None:
        """Take the addresses of the endpoint that is being resolved; empty if that failed."""
        endpoint, self._resolving = self._resolving, None
        if endpoint is None:
            return
        unique = list(dict.fromkeys(ips))
        if len(unique) > MAX_ADDRESSES:
            first = (self._rounds - 1) * MAX_ADDRESSES % len(unique)
            unique = (unique[first:] + unique[:first])[:MAX_ADDRESSES]
        self._candidates = [Candidate(endpoint, ip) for ip in reversed(unique)]


def _is_literal(host: str) -> bool:
    """Tell whether `host` is an IP address already."""
    import ipaddress  # not before something is to be connected

    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
