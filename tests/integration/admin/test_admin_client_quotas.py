"""Quotas by the admin client, on real Kafka."""

from __future__ import annotations

import uuid

import pytest

from kafka_fast import Admin
from kafka_fast.admin import ClientQuotaEntity, ClientQuotaFilter, ClientQuotaName
from kafka_fast.errors import InvalidRequest
from tests.integration.admin.admin_clients import admin
from tests.waiting import eventually

__all__ = ["admin"]

pytestmark = pytest.mark.broker

ANY, DEFAULT = ClientQuotaName.ANY, ClientQuotaName.DEFAULT


@pytest.mark.needs_kafka("2.8", "quotas of addresses (KIP-612)")
def test_quotas_are_set_described_and_removed(admin: Admin) -> None:
    name = f"quota-{uuid.uuid4().hex}"
    user, client = ClientQuotaEntity(name), ClientQuotaEntity(client_id=name)
    both = ClientQuotaEntity(name, name)
    users_default = ClientQuotaEntity(name, DEFAULT)
    address = ClientQuotaEntity(ip="203.0.113.9")
    quotas: dict[ClientQuotaEntity, dict[str, float | None]] = {
        user: {"producer_byte_rate": 1e6, "consumer_byte_rate": 2_000_000},
        client: {"request_percentage": 12.5},
        both: {"producer_byte_rate": 5e5},
        users_default: {"producer_byte_rate": 4e5},
        address: {"connection_creation_rate": 1000},
    }
    admin.alter_client_quotas(quotas, validate_only=True).raise_first()
    assert admin.describe_client_quotas(ClientQuotaFilter(user=name)) == {}
    assert admin.alter_client_quotas(quotas).errors == {}
    eventually(lambda: quotas.items() <= admin.describe_client_quotas().items())

    of_user = {one: quotas[one] for one in (user, both, users_default)}
    assert admin.describe_client_quotas(ClientQuotaFilter(user=name)) == of_user
    only_user = ClientQuotaFilter(user=name, strict=True)
    assert admin.describe_client_quotas(only_user) == {user: quotas[user]}
    its_clients = ClientQuotaFilter(user=name, client_id=ANY)
    assert admin.describe_client_quotas(its_clients).keys() == {both, users_default}
    its_default = ClientQuotaFilter(user=name, client_id=DEFAULT)
    assert admin.describe_client_quotas(its_default).keys() == {users_default}
    assert address in admin.describe_client_quotas(ClientQuotaFilter(ip=ANY))

    removed: dict[ClientQuotaEntity, dict[str, float | None]] = {
        entity: dict.fromkeys(values) for entity, values in quotas.items()
    }
    removed[user].pop("consumer_byte_rate")
    assert admin.alter_client_quotas(removed).errors == {}
    rest = {user: {"consumer_byte_rate": 2_000_000.0}}
    eventually(lambda: admin.describe_client_quotas(ClientQuotaFilter(user=name)) == rest)
    admin.alter_client_quotas({user: {"consumer_byte_rate": None}}).raise_first()
    eventually(lambda: not admin.describe_client_quotas().keys() & quotas.keys())


@pytest.mark.needs_kafka("2.6", "quotas by requests (KIP-546)")
def test_each_entity_is_refused_by_itself(admin: Admin) -> None:
    name = f"quota-{uuid.uuid4().hex}"
    good, bad = ClientQuotaEntity(name), ClientQuotaEntity(client_id=name)
    mixed = ClientQuotaEntity(user=name, ip="203.0.113.9")
    result = admin.alter_client_quotas(
        {good: {"producer_byte_rate": 1e9}, bad: {"odd": 1.0}, mixed: {"producer_byte_rate": 1.0}}
    )
    assert list(result.succeeded) == [good]
    assert isinstance(result.errors[bad], InvalidRequest)
    assert isinstance(result.errors[mixed], InvalidRequest)
    admin.alter_client_quotas({good: {"producer_byte_rate": None}}).raise_first()
