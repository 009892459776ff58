"""What was found, for programs: the object that `--output json` prints."""

from __future__ import annotations

from typing import Any

from kafka_fast.cli.check.verdict import advice, is_well, user_of, warnings_of
from kafka_fast.config import CommonSettings
from kafka_fast.instants import NEVER
from kafka_fast.net.probe import ClusterProbe, Probed, TlsFacts

__all__ = ["as_facts"]


def as_facts(found: ClusterProbe, settings: CommonSettings) -> dict[str, Any]:
    """Return an object that JSON can hold."""
    return {
        "ok": is_well(found),
        "security_protocol": settings.security_protocol,
        "cluster_ids": list(found.cluster_ids),
        "servers": [_of_address(it, settings) for it in found.servers],
        "brokers": [_of_address(it, settings) for it in found.brokers],
    }


def _of_address(found: Probed, settings: CommonSettings) -> dict[str, Any]:
    sasl = settings.sasl
    return {
        "address": str(found.address),
        "node_id": found.node_id,
        "ok": found.is_well,
        "failed_step": None if found.is_well else found.reached.title,
        "error": None if found.error is None else str(found.error),
        "error_class": None if found.error is None else type(found.error).__name__,
        "advice": None if found.is_well else advice(found, settings),
        "warnings": warnings_of(found),
        "ips": list(found.ips),
        "ip": found.ip or None,
        "unreachable": dict(found.unreachable),
        "connect_ms": round(1000 * found.connect_seconds, 3) or None,
        "tls": None if found.tls is None else _of_tls(found.tls),
        "api_count": found.api_count or None,
        "kafka_release": None if found.release is None else found.release.name,
        "kafka_release_is_told": found.release is not None and found.release.is_told,
        "sasl": None
        if sasl is None
        else {
            "mechanism": sasl.mechanism,
            "user": user_of(settings) or None,
            "offered": list(found.mechanisms),
            "session_seconds": None if found.session_seconds == NEVER else found.session_seconds,
        },
    }


def _of_tls(tls: TlsFacts) -> dict[str, Any]:
    return {
        "version": tls.version or None,
        "cipher": tls.cipher or None,
        "asks_client_certificate": tls.asks_certificate,
        "chain": [
            {
                "subject": it.subject,
                "issuer": it.issuer,
                "names": list(it.names),
                "not_before": it.not_before,
                "not_after": it.not_after,
            }
            for it in tls.chain
        ],
    }
