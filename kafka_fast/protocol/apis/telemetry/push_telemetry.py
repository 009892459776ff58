"""PushTelemetry (72): deliver metrics to the broker (KIP-714)."""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, bool_, bytes_, int8, int16, int32, uuid


class PushTelemetryRequest(Request, api_key=72, versions="0", flexible="0+"):
    """Metrics in the format of OpenTelemetry, compressed."""

    client_instance_id: bytes = uuid("0+")
    subscription_id: int = int32("0+")
    terminating: bool = bool_("0+")
    compression_type: int = int8("0+")
    metrics: bytes = bytes_("0+")


class PushTelemetryResponse(Response, api_key=72, versions="0", flexible="0+"):
    """Whether the broker took them."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
