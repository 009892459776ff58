"""Makes a client's data plane and its sides from the client's settings."""

from __future__ import annotations

from kafka_fast.config import (
    AdminSettings,
    CommonSettings,
    ConsumerSettings,
    ProducerSettings,
)
from kafka_fast.dataplane.core._plane import DataPlane, Environment
from kafka_fast.dataplane.produce._queues import Queues

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def producer_plane(environment: Environment, settings: ProducerSettings) -> DataPlane:
    """Return a transport for a producer."""
    return _plane(environment, settings, settings.request_timeout)


def admin_plane(environment: Environment, settings: AdminSettings) -> DataPlane:
    """Return a transport for an admin client."""
    return _plane(environment, settings, settings.request_timeout)


def make_queues(plane: DataPlane, settings: ProducerSettings, client_id: str) -> Queues:
    """Return the plane's produce side."""
    return Queues(
        plane,
        buffer_memory=settings.buffer_memory,
        batch_size=settings.batch_size,
        max_request_size=settings.max_request_size,
        coalesce_bytes=settings.request_coalesce_bytes,
        linger=settings.linger,
        delivery_timeout=settings.delivery_timeout,
        max_in_flight=settings.max_in_flight_requests_per_connection,
        availability_timeout=settings.partitioner_availability_timeout,
        codec=CODECS[settings.compression_type],
        idempotent=settings.enable_idempotence,
        transactional=settings.transactional_id is not None,
        acks_zero=settings.acks == 0,
        client_id=client_id,
        exit_status=settings.exit_status_on_loss,
    )


def consumer_plane(environment: Environment, settings: ConsumerSettings) -> DataPlane:
    """Return a transport for a consumer."""
    return _plane(environment, settings, settings.fetch_timeout)


def _plane(environment: Environment, settings: CommonSettings, timeout: float) -> DataPlane:
    return DataPlane(
        environment,
        max_frame=settings.receive_message_max_bytes,
        request_timeout=timeout,
        max_idle=max(settings.connections_max_idle_ms, 0) / 1000,  # no limit: -1 in Kafka, 0 here
    )


def fetch_limits(settings: ConsumerSettings) -> dict[str, int]:
    """Return the limits of a plane's fetch side."""
    return {
        "buffer_bytes": settings.fetch_buffer_bytes,
        "max_bytes": settings.fetch_max_bytes,
        "partition_max_bytes": settings.max_partition_fetch_bytes,
    }
