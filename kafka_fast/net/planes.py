"""Makes the data plane that a client's settings ask for."""

from __future__ import annotations

from kafka_fast.config import ConsumerSettings, ProducerSettings
from kafka_fast.dataplane._plane import DataPlane, Environment

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def producer_plane(
    environment: Environment, settings: ProducerSettings, client_id: str
) -> DataPlane:
    """Return a data plane that sends records."""
    return DataPlane(
        environment,
        buffer_memory=settings.buffer_memory,
        batch_size=settings.batch_size,
        max_request_size=settings.max_request_size,
        coalesce_bytes=settings.request_coalesce_bytes,
        max_frame=settings.receive_message_max_bytes,
        linger=settings.linger,
        delivery_timeout=settings.delivery_timeout,
        request_timeout=settings.request_timeout,
        max_in_flight=settings.max_in_flight_requests_per_connection,
        max_idle=max(settings.connections_max_idle_ms, 0) / 1000,  # -1 is for ever, 0 here
        availability_timeout=settings.partitioner_availability_timeout,
        codec=CODECS[settings.compression_type],
        idempotent=settings.enable_idempotence,
        acks_zero=settings.acks == 0,
        client_id=client_id,
    )


def consumer_plane(environment: Environment, settings: ConsumerSettings) -> DataPlane:
    """Return a data plane that sends none."""
    return DataPlane(
        environment,
        buffer_memory=0,
        batch_size=0,
        max_request_size=0,
        coalesce_bytes=0,
        max_frame=settings.receive_message_max_bytes,
        linger=0.0,
        delivery_timeout=0.0,
        request_timeout=settings.fetch_timeout,
        max_in_flight=0,
        max_idle=max(settings.connections_max_idle_ms, 0) / 1000,
        idempotent=False,
    )


def fetch_limits(settings: ConsumerSettings) -> dict[str, int]:
    """Return what bounds the fetch side of a plane."""
    return {
        "buffer_bytes": settings.fetch_buffer_bytes,
        "max_bytes": settings.fetch_max_bytes,
        "partition_max_bytes": settings.max_partition_fetch_bytes,
    }
