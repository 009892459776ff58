"""Quotas: what is asked for, and what is made of the answers."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafka_fast.control.admin.operation import ONLY
from kafka_fast.control.admin.operations.client_quotas import (
    AlterClientQuotas,
    DescribeClientQuotas,
)
from kafka_fast.control.admin.types.client_quotas import (
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaName,
)
from kafka_fast.errors import ErrorCode, UsageError
from kafka_fast.protocol.apis.client_quotas.alter_client_quotas import (
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from kafka_fast.protocol.apis.client_quotas.describe_client_quotas import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from tests.unit.control.admin.operations.rounds import (
    all_versions_of,
    meanings,
    refusals,
    sent,
)

DEFAULT, ANY = ClientQuotaName.DEFAULT, ClientQuotaName.ANY
ALICE = ClientQuotaEntity("alice")
EVERY_APP = ClientQuotaEntity(DEFAULT, "app")
NEWER = ClientQuotaEntity(others=(("planet", "mars"), ("star", DEFAULT)))


def alter(quotas: Any, *, validate_only: bool = False) -> AlterClientQuotas:
    return AlterClientQuotas(quotas, validate_only=validate_only)


@pytest.mark.parametrize("version", all_versions_of(DescribeClientQuotas))
def test_a_filter_names_what_it_looks_at(version: int) -> None:
    quota_filter = ClientQuotaFilter(user="alice", client_id=ANY, ip=DEFAULT, strict=True)
    request = sent(DescribeClientQuotas(quota_filter), version)
    assert [(one.entity_type, one.match_type, one.match) for one in request.components] == [
        ("user", 0, "alice"),
        ("client-id", 2, None),
        ("ip", 1, None),
    ]
    assert request.strict
    request = sent(DescribeClientQuotas(ClientQuotaFilter()), version)
    assert (request.components, request.strict) == ([], False)


@pytest.mark.parametrize("version", all_versions_of(AlterClientQuotas))
def test_quotas_are_set_and_removed(version: int) -> None:
    quotas = {
        ALICE: {"producer_byte_rate": 1000, "consumer_byte_rate": None},
        EVERY_APP: {"request_percentage": 12.5},
        NEWER: {},
    }
    request = sent(alter(quotas, validate_only=True), version)
    shown = [
        (
            [(part.entity_type, part.entity_name) for part in entry.entity],
            [(op.key, op.value, op.remove) for op in entry.ops],
        )
        for entry in request.entries
    ]
    assert shown == [
        (
            [("user", "alice")],
            [("producer_byte_rate", 1000.0, False), ("consumer_byte_rate", 0.0, True)],
        ),
        ([("user", None), ("client-id", "app")], [("request_percentage", 12.5, False)]),
        ([("planet", "mars"), ("star", None)], []),
    ]
    assert request.validate_only


@pytest.mark.parametrize(
    ("quotas", "text"),
    [
        ({ClientQuotaEntity(): {}}, "has a user, a client_id or an ip"),
        ({ClientQuotaEntity(ANY): {}}, "quota of user <any>: ANY is for filters"),
        ({ClientQuotaEntity(7): {}}, "not 7"),  # type: ignore[arg-type]
        ({ALICE: {"producer_byte_rate": "1"}}, "quota of user 'alice': producer_byte_rate is a"),
        ({"alice": {}}, "not 'alice'"),
    ],
)
def test_what_is_no_quota_is_refused(quotas: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        alter(quotas)


@pytest.mark.parametrize("quota_filter", [ClientQuotaFilter(b"alice"), ALICE])  # type: ignore[arg-type]
def test_what_is_no_filter_is_refused(quota_filter: Any) -> None:
    with pytest.raises(UsageError):
        DescribeClientQuotas(quota_filter)


def test_entities_are_shown_in_words() -> None:
    assert str(ClientQuotaEntity("alice", DEFAULT)) == "user 'alice', client-id <default>"
    assert str(NEWER) == "planet 'mars', star <default>"
    assert pickle.loads(pickle.dumps(EVERY_APP)) == EVERY_APP
    assert pickle.loads(pickle.dumps(EVERY_APP)).user is DEFAULT


@pytest.mark.parametrize("version", all_versions_of(DescribeClientQuotas))
def test_quotas_come_by_entity(version: int) -> None:
    answer = DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[EntityData(entity_type="user", entity_name="alice")],
                values=[ValueData(key="producer_byte_rate", value=1000.0)],
            ),
            EntryData(
                entity=[
                    EntityData(entity_type="client-id", entity_name="app"),
                    EntityData(entity_type="user", entity_name=None),
                ],
                values=[],
            ),
            EntryData(
                entity=[
                    EntityData(entity_type="star", entity_name=None),
                    EntityData(entity_type="planet", entity_name="mars"),
                ],
                values=[ValueData(key="rings", value=0.5)],
            ),
        ]
    )
    operation = DescribeClientQuotas(ClientQuotaFilter())
    assert meanings(operation, answer, version)[ONLY] == {
        ALICE: {"producer_byte_rate": 1000.0},
        EVERY_APP: {},
        NEWER: {"rings": 0.5},
    }
    none = DescribeClientQuotasResponse(entries=None)
    assert meanings(operation, none, version)[ONLY] == {}
    refused = DescribeClientQuotasResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=None, entries=None
    )
    text = refusals(operation, refused, version)[ONLY]
    assert text.endswith("(needs DESCRIBE_CONFIGS on the cluster)")


@pytest.mark.parametrize("version", all_versions_of(AlterClientQuotas))
def test_changes_are_answered_by_entity(version: int) -> None:
    part = AlterClientQuotasResponseEntityData
    answer = AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message="Invalid configuration key",
                entity=[
                    part(entity_type="client-id", entity_name="app"),
                    part(entity_type="user", entity_name=None),
                ],
            ),
            AlterClientQuotasResponseEntryData(
                entity=[part(entity_type="user", entity_name="alice")]
            ),
            AlterClientQuotasResponseEntryData(
                entity=[part(entity_type="user", entity_name="nobody asked")]
            ),
            AlterClientQuotasResponseEntryData(
                entity=[
                    part(entity_type="planet", entity_name="mars"),
                    part(entity_type="star", entity_name=None),
                ]
            ),
        ]
    )
    other_order = ClientQuotaEntity(others=(("star", DEFAULT), ("planet", "mars")))
    outcome = meanings(alter({ALICE: {}, EVERY_APP: {}, other_order: {}}), answer, version)
    assert outcome[ALICE] is None
    assert outcome[other_order] is None
    text = str(outcome[EVERY_APP].error)
    assert "of user <default>, client-id 'app': Invalid configuration key" in text
