"""Tries every step of connecting, in order, and keeps what each one shows: `kafka-fast check`.

    probe_cluster ─┬─► probe, of each bootstrap server ── Metadata ─► the brokers' addresses
                   └─► probe, of each broker

A probe is a client's own connection (`control/connections/connection.py`), driven here by calls
that block. So a probe fails as a client would, with the same error. Only TLS is spoken by Python's
`ssl` instead of the client's native one, because `ssl` shows what the broker sends in a handshake.
"""

from __future__ import annotations

from kafka_fast.net.probe.certificates import CertificateFacts
from kafka_fast.net.probe.cluster import ClusterProbe, probe_cluster
from kafka_fast.net.probe.findings import Probed, Step, TlsFacts
from kafka_fast.net.probe.release import Release

__all__ = [
    "CertificateFacts",
    "ClusterProbe",
    "Probed",
    "Release",
    "Step",
    "TlsFacts",
    "probe_cluster",
]
