"""The probes of a cluster: its bootstrap servers, then the brokers that these name."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial

from kafka_fast.config import Address, CommonSettings
from kafka_fast.net.login import make_mechanism
from kafka_fast.net.probe.findings import Probed
from kafka_fast.net.probe.handshake import WatchedHandshakes
from kafka_fast.net.probe.probe import Probe
from kafka_fast.values import Value, replace

__all__ = ["ClusterProbe", "probe_cluster"]

AT_A_TIME = 8


class ClusterProbe(Value, kw_only=True):
    """The results of probing a cluster's servers and brokers."""

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

    servers = _together(
        partial(probe, address, None, None) for address in settings.bootstrap_servers
    )
    known = {server.address: server for server in servers}
    ids = _cluster_ids(servers)
    cluster_id = ids[0] if len(ids) == 1 else None

    def probe_broker(node_id: int, address: Address) -> Probed:
        if address in known:
            return replace(known[address], node_id=node_id)
        return probe(address, node_id, cluster_id)

    brokers = _together(partial(probe_broker, *broker) for broker in _brokers(servers))
    return ClusterProbe(servers=servers, brokers=brokers, cluster_ids=ids)


def _together(probes: Iterable[Callable[[], Probed]]) -> tuple[Probed, ...]:
    """Return what all find, a few at a time; Ctrl-C does not wait for those under way."""
    waiting: queue.SimpleQueue[tuple[Callable[[], Probed], Future[Probed]]] = queue.SimpleQueue()
    futures: list[Future[Probed]] = []
    for probe in probes:
        futures.append(Future())
        waiting.put((probe, futures[-1]))

    def work() -> None:
        while True:
            try:
                probe, future = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                future.set_result(probe())
            except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
                future.set_exception(error)

    for _ in range(min(AT_A_TIME, len(futures))):
        threading.Thread(target=work, name="kf-probe", daemon=True).start()
    return tuple(future.result() for future in futures)


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
    ids = [server.metadata.cluster_id for server in servers if server.metadata is not None]
    return tuple(dict.fromkeys(cluster_id for cluster_id in ids if cluster_id is not None))
