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
        "servers": [_of_address(probed, settings) for probed in found.servers],
        "brokers": [_of_address(probed, settings) for probed in found.brokers],
    }


def _of_address(probed: Probed, settings: CommonSettings) -> dict[str, Any]:
    sasl = settings.sasl
    return {
        "address": str(probed.address),
        "node_id": probed.node_id,
        "ok": probed.is_well,
        "failed_step": None if probed.is_well else probed.reached.title,
        "error": None if probed.error is None else str(probed.error),
        "error_class": None if probed.error is None else type(probed.error).__name__,
        "advice": None if probed.is_well else advice(probed, settings),
        "warnings": warnings_of(probed),
        "ips": list(probed.ips),
        "ip": probed.ip or None,
        "unreachable": dict(probed.unreachable),
        "connect_ms": round(1000 * probed.connect_seconds, 3) or None,
        "tls": None if probed.tls is None else _of_tls(probed.tls),
        "api_count": probed.api_count or None,
        "kafka_release": None if probed.release is None else probed.release.name,
        "kafka_release_is_told": probed.release is not None and probed.release.is_told,
        "sasl": None
        if sasl is None
        else {
            "mechanism": sasl.mechanism,
            "user": user_of(settings) or None,
            "offered": list(probed.mechanisms),
            "session_seconds": None if probed.session_seconds == NEVER else probed.session_seconds,
        },
    }


def _of_tls(tls: TlsFacts) -> dict[str, Any]:
    return {
        "version": tls.version or None,
        "cipher": tls.cipher or None,
        "asks_client_certificate": tls.asks_certificate,
        "chain": [
            {
                "subject": certificate.subject,
                "issuer": certificate.issuer,
                "names": list(certificate.names),
                "not_before": certificate.not_before,
                "not_after": certificate.not_after,
            }
            for certificate in tls.chain
        ],
    }
