"""UnregisterController (94): remove a controller that is gone from the cluster's metadata."""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, int16, int32, string


class UnregisterControllerRequest(Request, api_key=94, versions="0", flexible="0+"):
    """The controller to remove."""

    controller_id: int = int32("0+")


class UnregisterControllerResponse(Response, api_key=94, versions="0", flexible="0+"):
    """Whether it was removed."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
