"""Clusters whose brokers come back elsewhere, behind the same bootstrap address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.serving.server import LOOPBACK, EmbeddedKafka
from kafka_fast.testing.broker.serving.sockets import Listener
from tests.support.proxy import Proxy


@contextmanager
def front_of(kafka: EmbeddedKafka, node_id: int = 1) -> Iterator[Proxy]:
    """A bootstrap address of its own, which leads to a broker and is advertised by none."""
    with Proxy(LOOPBACK, _port(kafka, node_id)) as front:
        yield front


@contextmanager
def moved(kafka: EmbeddedKafka, front: Proxy, *, hangs: bool = False) -> Iterator[None]:
    """Stop all brokers at once, and start them at other ports, behind the same bootstrap address.

    The old ports stay taken until the end, so that no other program answers there.

    Args:
        kafka: the cluster.
        front: leads to node 1 from then on.
        hangs: the old ports take connections and say nothing; otherwise they refuse.
    """
    nodes = list(kafka._running_cluster.state.nodes)
    for node_id in nodes:
        kafka.kill(node_id)
    front.reset()
    server = kafka._running_server
    old = [server._listeners[node_id] for node_id in nodes]
    for listener in old if hangs else ():
        listener._sock.listen()

    def readdress(cluster: Cluster) -> None:
        for node_id in nodes:
            listener = server._listeners[node_id] = Listener(LOOPBACK, 0)
            cluster.state.nodes[node_id].port = listener.port

    kafka.on_cluster(readdress)
    front.lead_to(LOOPBACK, _port(kafka, 1))
    for node_id in nodes:
        kafka.restart(node_id)
    try:
        yield
    finally:
        for listener in old:
            listener.close()


def _port(kafka: EmbeddedKafka, node_id: int) -> int:
    return kafka.on_cluster(lambda cluster: cluster.state.nodes[node_id].port)
