"""What the probe of one address has found."""

from __future__ import annotations

import enum

from kafka_fast.config import Address
from kafka_fast.errors import KafkaError
from kafka_fast.instants import NEVER
from kafka_fast.net.probe.certificates import CertificateFacts
from kafka_fast.net.probe.release import Release
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse
from kafka_fast.values import Value, field

__all__ = ["Probed", "Step", "TlsFacts"]


class Step(enum.IntEnum):
    """The steps, in the order in which a client takes them."""

    DNS = 0
    TCP = 1
    TLS = 2
    API_VERSIONS = 3
    SASL = 4
    METADATA = 5

    @property
    def title(self) -> str:
        """The step as people call it."""
        return {Step.API_VERSIONS: "ApiVersions", Step.METADATA: "Metadata"}.get(self, self.name)


class TlsFacts(Value, kw_only=True):
    """What a TLS handshake has shown, whether it has succeeded or not."""

    version: str = ""
    """As "TLSv1.3"; "" if the handshake has failed."""
    cipher: str = ""
    chain: tuple[CertificateFacts, ...] = ()
    """What the broker has sent, its own certificate first."""
    asks_certificate: bool = False
    """Whether the broker has asked for a client certificate, as far as the handshake went."""


class Probed(Value, frozen=False, kw_only=True):
    """One address and how far the probe has come."""

    node_id: int | None
    """The broker that advertises the address; None: it is a bootstrap server."""
    address: Address
    reached: Step = Step.DNS
    """The last step that was begun."""
    error: KafkaError | None = None
    """Why `reached` has failed; None: everything is well."""
    ips: tuple[str, ...] = ()
    """What the host's name resolves to."""
    ip: str = ""
    """The one that was tried last."""
    unreachable: dict[str, str] = field(factory=dict)
    """IP addresses that failed -> why. The probe may have succeeded by another one."""
    connect_seconds: float = 0.0
    tls: TlsFacts | None = None
    api_count: int = 0
    release: Release | None = None
    """Which release of Kafka the broker is of, or is like; None: it has not named its APIs."""
    mechanisms: tuple[str, ...] = ()
    """Of SASL, as the broker offers them."""
    session_seconds: float = NEVER
    """How long the broker lets a login live; NEVER: as long as the connection."""
    metadata: MetadataResponse | None = None

    @property
    def is_well(self) -> bool:
        """Whether a client could use this address."""
        return self.error is None
