"""GetTelemetrySubscriptions (71): which metrics the broker wants (KIP-714)."""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    array,
    bool_,
    int8,
    int16,
    int32,
    string,
    uuid,
)


class GetTelemetrySubscriptionsRequest(Request, api_key=71, versions="0", flexible="0+"):
    """The client's instance id, or zeros to be given one."""

    client_instance_id: bytes = uuid("0+")


class GetTelemetrySubscriptionsResponse(Response, api_key=71, versions="0", flexible="0+"):
    """Metrics wanted, how often, and how compressed."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    client_instance_id: bytes = uuid("0+")
    subscription_id: int = int32("0+")
    accepted_compression_types: list[int] = array(int8, "0+")
    push_interval_ms: int = int32("0+")
    telemetry_max_bytes: int = int32("0+")
    delta_temporality: bool = bool_("0+")
    requested_metrics: list[str] = array(string, "0+")
