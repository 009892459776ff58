"""DescribeClientQuotas (48): the quotas of users, clients and addresses (KIP-546).

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
    int8,
    int16,
    int32,
    string,
)


class ComponentData(Struct):
    """An entry of `DescribeClientQuotasRequest.components`."""

    entity_type: str = string("0+")
    match_type: int = int8("0+")
    match: str | None = string("0+", nullable="0+")


class DescribeClientQuotasRequest(Request, api_key=48, versions="0-1", flexible="1+"):
    """Filters; `strict` leaves out entities that have other components, too."""

    components: list[ComponentData] = array(ComponentData, "0+")
    strict: bool = bool_("0+")


class EntityData(Struct):
    """An entry of `EntryData.entity`."""

    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


class ValueData(Struct):
    """An entry of `EntryData.values`."""

    key: str = string("0+")
    value: float = float64("0+")


class EntryData(Struct):
    """An entry of `DescribeClientQuotasResponse.entries`."""

    entity: list[EntityData] = array(EntityData, "0+")
    values: list[ValueData] = array(ValueData, "0+")


class DescribeClientQuotasResponse(Response, api_key=48, versions="0-1", flexible="1+"):
    """The quotas of each entity."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    entries: list[EntryData] | None = array(EntryData, "0+", nullable="0+")
