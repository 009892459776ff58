"""AlterClientQuotas (49): set and remove quotas (KIP-546).

Version 1 is flexible.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    float64,
    int16,
    int32,
    string,
)


class AlterClientQuotasRequestEntityData(Struct):
    """An entry of `AlterClientQuotasRequestEntryData.entity`."""

    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


class OpData(Struct):
    """An entry of `AlterClientQuotasRequestEntryData.ops`."""

    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = bool_("0+")


class AlterClientQuotasRequestEntryData(Struct):
    """An entry of `AlterClientQuotasRequest.entries`."""

    entity: list[AlterClientQuotasRequestEntityData] = array(
        AlterClientQuotasRequestEntityData, "0+"
    )
    ops: list[OpData] = array(OpData, "0+")


class AlterClientQuotasRequest(Request, api_key=49, versions="0-1", flexible="1+"):
    """The quotas of each entity; a null name is the default of its type."""

    entries: list[AlterClientQuotasRequestEntryData] = array(
        AlterClientQuotasRequestEntryData, "0+"
    )
    validate_only: bool = bool_("0+")


class AlterClientQuotasResponseEntityData(Struct):
    """An entry of `AlterClientQuotasResponseEntryData.entity`."""

    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


class AlterClientQuotasResponseEntryData(Struct):
    """An entry of `AlterClientQuotasResponse.entries`."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    entity: list[AlterClientQuotasResponseEntityData] = array(
        AlterClientQuotasResponseEntityData, "0+"
    )


class AlterClientQuotasResponse(Response, api_key=49, versions="0-1", flexible="1+"):
    """One error code per entity."""

    throttle_time_ms: int = int32("0+")
    entries: list[AlterClientQuotasResponseEntryData] = array(
        AlterClientQuotasResponseEntryData, "0+"
    )
