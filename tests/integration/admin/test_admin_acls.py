"""Access control by the admin client, on real Kafka: the rule of docs/admin.md, and others."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kafka_fast import Admin
from kafka_fast.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from kafka_fast.errors import ClusterAuthorizationFailed, InvalidRequest, SecurityDisabled
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.testing._kafka.secure_kafka import SecureKafka
from tests.waiting import eventually

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def secure_admin(secure_kafka: SecureKafka) -> Iterator[Admin]:
    with Admin(bootstrap_servers=secure_kafka.bootstrap) as made:
        yield made


@pytest.fixture
def name() -> str:
    return f"admin-acls-{uuid.uuid4().hex}"


def test_rules_are_created_described_and_deleted(secure_admin: Admin, name: str) -> None:
    user = f"User:{name}"
    reads = AclBinding(ResourceType.TOPIC, name, user, AclOperation.READ)
    writes = AclBinding(
        ResourceType.TOPIC,
        name[:-2],
        user,
        AclOperation.WRITE,
        AclPermissionType.DENY,
        "10.0.0.1",
        PatternType.PREFIXED,
    )
    everywhere = AclBinding(ResourceType.GROUP, "*", user, AclOperation.ALL)
    rules = {reads, writes, everywhere}
    for _ in range(2):  # a rule that is there already is no error
        assert secure_admin.create_acls(rules).errors == {}
    of_user = AclBindingFilter(principal=user)
    eventually(lambda: set(secure_admin.describe_acls(of_user)) == rules)
    matching = AclBindingFilter(ResourceType.TOPIC, name, user, pattern_type=PatternType.MATCH)
    assert set(secure_admin.describe_acls(matching)) == {reads, writes}
    assert secure_admin.describe_acls(AclBindingFilter(name=name)) == [reads]
    assert set(secure_admin.describe_acls()) >= rules

    by_host = AclBindingFilter(principal=user, host="10.0.0.1")
    nothing = AclBindingFilter(principal=f"{user}-nobody")
    deleted = secure_admin.delete_acls([by_host, nothing])
    assert [(one.binding, one.error) for one in deleted[by_host]] == [(writes, None)]
    assert deleted[nothing] == []
    rest = secure_admin.delete_acls([of_user])[of_user]
    assert {one.binding for one in rest} == {reads, everywhere}
    eventually(lambda: secure_admin.describe_acls(of_user) == [])


@pytest.mark.needs_kafka("3.9", "older brokers refuse all rules of a request")
def test_a_rule_that_is_none_is_refused_by_itself(secure_admin: Admin, name: str) -> None:
    good = AclBinding(ResourceType.TOPIC, name, f"User:{name}", AclOperation.READ)
    bad = AclBinding(ResourceType.TOPIC, name, "nobody", AclOperation.READ)
    other = AclBinding(ResourceType.CLUSTER, "mine", f"User:{name}", AclOperation.ALTER)
    result = secure_admin.create_acls([good, bad, other])
    assert list(result.succeeded) == [good]
    assert isinstance(result.errors[bad], InvalidRequest)
    assert isinstance(result.errors[other], InvalidRequest)
    secure_admin.delete_acls([AclBindingFilter(principal=f"User:{name}")]).raise_first()


@pytest.mark.needs_kafka("3.3", "users as resources (KIP-373)")
def test_rules_about_users(secure_admin: Admin, name: str) -> None:
    binding = AclBinding(ResourceType.USER, name, "User:bob", AclOperation.CREATE_TOKENS)
    secure_admin.create_acls([binding]).raise_first()
    of_users = AclBindingFilter(ResourceType.USER, name)
    eventually(lambda: secure_admin.describe_acls(of_users) == [binding])
    assert secure_admin.delete_acls([of_users])[of_users][0].binding == binding


def test_who_may_not_is_told_what_is_missing(secure_kafka: SecureKafka, name: str) -> None:
    rule = AclBinding(ResourceType.TOPIC, name, "User:bob", AclOperation.READ)
    with Admin(secure_kafka.client_properties("SASL_SSL", "PLAIN", user="bob")) as bob:
        error = bob.create_acls([rule]).errors[rule]
        assert isinstance(error, ClusterAuthorizationFailed)
        assert "needs ALTER on the cluster" in str(error)
        with pytest.raises(ClusterAuthorizationFailed, match="needs DESCRIBE on the cluster"):
            bob.describe_acls()


def test_brokers_without_rules_say_so(real_kafka: RealKafka, name: str) -> None:
    rule = AclBinding(ResourceType.TOPIC, name, "User:bob", AclOperation.READ)
    with Admin(bootstrap_servers=real_kafka.bootstrap) as admin:
        with pytest.raises(SecurityDisabled, match="No Authorizer"):
            admin.describe_acls()
        assert isinstance(admin.create_acls([rule]).errors[rule], SecurityDisabled)
