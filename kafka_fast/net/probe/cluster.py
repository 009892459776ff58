"""The probes of a cluster: its bootstrap servers, then the brokers that these name."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from kafka_fast.config import Address, CommonSettings
from kafka_fast.net.login import make_mechanism
from kafka_fast.net.probe.findings import Probed
from kafka_fast.net.probe.handshake import WatchedHandshakes
from kafka_fast.net.probe.probe import Probe
from kafka_fast.values import Value, replace

__all__ = ["ClusterProbe", "probe_cluster"]

AT_A_TIME = 8


class ClusterProbe(Value, kw_only=True):
    """What was found of a cluster."""

    servers: tuple[Probed, ...]
    """The bootstrap servers, in the order of the configuration."""
    brokers: tuple[Probed, ...]
    """The brokers that the servers name, by id. One whose address is a server's shares what was
    found there."""
    cluster_ids: tuple[str, ...]
    """Of the servers that say so; more than one: the servers belong to different clusters."""


def probe_cluster(settings: CommonSettings, timeout: float) -> ClusterProbe:
    """Try to connect to every server and every broker. Blocks, for `timeout` a step and address.

    Args:
        settings: a client's.
        timeout: seconds for each step.

    Raises:
        ConfigError: a certificate, a key or a mechanism cannot be used.
    """
    limit = max(1, round(1000 * timeout))
    settings = replace(
        settings,
        socket_connection_setup_timeout_ms=limit,
        socket_connection_setup_timeout_max_ms=limit,
    )
    handshakes = None
    if settings.tls is not None:
        handshakes = WatchedHandshakes(settings.tls, settings.security_protocol)

    def probe(address: Address, node_id: int | None, cluster_id: str | None) -> Probed:
        # A mechanism each, because the probes' threads must not share one.
        mechanism = None if settings.sasl is None else make_mechanism(settings.sasl)
        return Probe(
            address, settings, handshakes, mechanism, node_id=node_id, cluster_id=cluster_id
        ).run()

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        servers = tuple(
            pool.map(lambda address: probe(address, None, None), settings.bootstrap_servers)
        )
        known = {it.address: it for it in servers}
        ids = _cluster_ids(servers)
        cluster_id = ids[0] if len(ids) == 1 else None

        def probe_broker(node: tuple[int, Address]) -> Probed:
            node_id, address = node
            if address in known:
                return replace(known[address], node_id=node_id)
            return probe(address, node_id, cluster_id)

        brokers = tuple(pool.map(probe_broker, _brokers(servers)))
    return ClusterProbe(servers=servers, brokers=brokers, cluster_ids=ids)


def _brokers(servers: Iterable[Probed]) -> list[tuple[int, Address]]:
    """Return the brokers with their advertised addresses, without repetitions."""
    named = {
        (broker.node_id, Address(broker.host, broker.port))
        for server in servers
        if server.metadata is not None
        for broker in server.metadata.brokers
    }
    return sorted(named)


def _cluster_ids(servers: Iterable[Probed]) -> tuple[str, ...]:
    found = [it.metadata.cluster_id for it in servers if it.metadata is not None]
    return tuple(dict.fromkeys(it for it in found if it is not None))
