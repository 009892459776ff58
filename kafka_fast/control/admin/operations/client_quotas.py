"""Operations on quotas of users, clients and addresses: describe and change them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafka_fast.control.admin.operation import ONLY, Operation
from kafka_fast.control.admin.types.client_quotas import (
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaName,
    EntityName,
)
from kafka_fast.control.arguments import mapping_of
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.targets import AnyNode
from kafka_fast.errors import UsageError
from kafka_fast.protocol.apis.client_quotas.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    OpData,
)
from kafka_fast.protocol.apis.client_quotas.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

EXACT, DEFAULT, ANY = 0, 1, 2
"""Match types of DescribeClientQuotas."""

FIELDS = {"user": "user", "client-id": "client_id", "ip": "ip"}
"""Kafka's words for the types of entities, and the fields for them."""


def _check_name(what: str, name: EntityName) -> None:
    if not isinstance(name, (str, ClientQuotaName)):
        raise UsageError(f"{what} is a name, DEFAULT or ANY, not {name!r}")


def _entity(parts: Iterable[tuple[str, str | None]]) -> ClientQuotaEntity:
    """Return an entity of an answer: its types with their names, None for the default."""
    fields: dict[str, Any] = {}
    others: list[tuple[str, EntityName]] = []
    for kind, text in parts:
        name: EntityName = ClientQuotaName.DEFAULT if text is None else text
        if kind in FIELDS:
            fields[FIELDS[kind]] = name
        else:
            others.append((kind, name))
    return ClientQuotaEntity(**fields, others=tuple(sorted(others, key=lambda one: one[0])))


class DescribeClientQuotas(Operation[str, dict[ClientQuotaEntity, dict[str, float]]]):
    """DescribeClientQuotas."""

    name = "describe_client_quotas"
    permission = "DESCRIBE_CONFIGS on the cluster"
    since = "2.6"
    request_class = DescribeClientQuotasRequest
    response_class = DescribeClientQuotasResponse

    def __init__(self, quota_filter: ClientQuotaFilter) -> None:
        """Take which quotas are described.

        Raises:
            UsageError: the filter has something that is no name.
        """
        super().__init__(AnyNode(), [ONLY])
        if not isinstance(quota_filter, ClientQuotaFilter):
            raise UsageError(f"a ClientQuotaFilter says which quotas, not {quota_filter!r}")
        self._names: dict[str, EntityName] = {}
        for kind, field in FIELDS.items():
            name: EntityName = getattr(quota_filter, field)
            if name is not None:
                _check_name(f"{field} of a ClientQuotaFilter", name)
                self._names[kind] = name
        self._strict = quota_filter.strict

    def build(self, items: Sequence[str], version: int) -> DescribeClientQuotasRequest:
        """Ask for the quotas."""
        return DescribeClientQuotasRequest(
            components=[_component(kind, name) for kind, name in self._names.items()],
            strict=self._strict,
        )

    def outcomes(
        self, answer: DescribeClientQuotasResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[dict[ClientQuotaEntity, dict[str, float]]]]]:
        """Return the quotas by entity and by name."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code, answer.error_message)
            return
        quotas = {
            _entity((one.entity_type, one.entity_name) for one in entry.entity): {
                value.key: value.value for value in entry.values
            }
            for entry in answer.entries or ()
        }
        yield ONLY, Done(quotas)


def _component(kind: str, name: EntityName) -> ComponentData:
    if isinstance(name, ClientQuotaName):
        match_type = DEFAULT if name is ClientQuotaName.DEFAULT else ANY
        return ComponentData(entity_type=kind, match_type=match_type, match=None)
    return ComponentData(entity_type=kind, match_type=EXACT, match=name)


class AlterClientQuotas(Operation[ClientQuotaEntity, None]):
    """AlterClientQuotas."""

    name = "alter_client_quotas"
    permission = "ALTER_CONFIGS on the cluster"
    since = "2.6"
    request_class = AlterClientQuotasRequest
    response_class = AlterClientQuotasResponse

    def __init__(
        self,
        quotas: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool,
    ) -> None:
        """Take the changes.

        Args:
            quotas: the new values by entity and name; None: there is no such quota any more.
            validate_only: whether to check only whether they could be changed.

        Raises:
            UsageError: an entity has no name or ANY, or a value is no number.
        """
        quotas = mapping_of(quotas, "quotas")
        super().__init__(AnyNode(), quotas)
        self._quotas = {
            entity: mapping_of(values, "the values of quotas") for entity, values in quotas.items()
        }
        for entity, values in self._quotas.items():
            _check_entity(entity)
            _check_values(entity, values)
        self._validate_only = validate_only

    def build(self, items: Sequence[ClientQuotaEntity], version: int) -> AlterClientQuotasRequest:
        """Ask for the changes."""
        return AlterClientQuotasRequest(
            entries=[
                AlterClientQuotasRequestEntryData(
                    entity=[_entity_data(kind, name) for kind, name in item.parts().items()],
                    ops=[
                        OpData(
                            key=key,
                            value=0.0 if value is None else float(value),
                            remove=value is None,
                        )
                        for key, value in self._quotas[item].items()
                    ],
                )
                for item in items
            ],
            validate_only=self._validate_only,
        )

    def outcomes(
        self,
        answer: AlterClientQuotasResponse,
        items: Sequence[ClientQuotaEntity],
        source: AnswerSource,
    ) -> Iterator[tuple[ClientQuotaEntity, Meaning[None]]]:
        """Return which entities have their quotas."""
        keys = {_normal(item): item for item in items}
        for entry in answer.entries:
            named = _entity((one.entity_type, one.entity_name) for one in entry.entity)
            key = keys.get(named, named)
            yield key, self.done_or_refusal(key, entry.error_code, entry.error_message)


def _check_entity(entity: ClientQuotaEntity) -> None:
    if not isinstance(entity, ClientQuotaEntity):
        raise UsageError(f"a ClientQuotaEntity says whom a quota limits, not {entity!r}")
    parts = entity.parts()
    if not parts:
        raise UsageError("a ClientQuotaEntity has a user, a client_id or an ip")
    for kind, name in parts.items():
        _check_name(f"{kind} of a ClientQuotaEntity", name)
        if name is ClientQuotaName.ANY:
            raise UsageError(f"quota of {entity}: ANY is for filters")


def _check_values(entity: ClientQuotaEntity, values: Mapping[str, float | None]) -> None:
    for key, value in values.items():
        if value is not None and not isinstance(value, (int, float)):
            raise UsageError(f"quota of {entity}: {key} is a number or None, not {value!r}")


def _entity_data(kind: str, name: EntityName) -> AlterClientQuotasRequestEntityData:
    text = name if isinstance(name, str) else None
    return AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=text)


def _normal(entity: ClientQuotaEntity) -> ClientQuotaEntity:
    """Return an entity as answers have it: its other types in order."""
    return _entity(
        (kind, name if isinstance(name, str) else None) for kind, name in entity.parts().items()
    )
