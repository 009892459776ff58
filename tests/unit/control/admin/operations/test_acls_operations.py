"""Access control: what is asked for, and what is made of the answers."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafka_fast.control.admin.operation import ONLY
from kafka_fast.control.admin.operations.acls import CreateAcls, DeleteAcls, DescribeAcls
from kafka_fast.control.admin.types.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    DeletedAcl,
    PatternType,
    ResourceType,
)
from kafka_fast.errors import ErrorCode, UnsupportedVersionError, UsageError
from kafka_fast.protocol.apis.security.create_acls import AclCreationResult, CreateAclsResponse
from kafka_fast.protocol.apis.security.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from kafka_fast.protocol.apis.security.describe_acls import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kafka_fast.values import replace
from tests.unit.control.admin.operations.rounds import (
    all_versions_of,
    meanings,
    refusals,
    sent,
)

READS = AclBinding(ResourceType.TOPIC, "orders", "User:alice", AclOperation.READ)
NO_LOGS = AclBinding(
    ResourceType.GROUP,
    "logs-",
    "User:*",
    AclOperation.ALL,
    AclPermissionType.DENY,
    "10.0.0.1",
    PatternType.PREFIXED,
)
EVERYTHING = AclBindingFilter()
OF_ALICE = AclBindingFilter(
    ResourceType.TOPIC, "orders", "User:alice", host="*", pattern_type=PatternType.MATCH
)


# ---- what is asked for ----


@pytest.mark.parametrize("version", all_versions_of(DescribeAcls))
def test_a_filter_is_sent_as_it_is(version: int) -> None:
    request = sent(DescribeAcls(OF_ALICE), version)
    assert (request.resource_type_filter, request.resource_name_filter) == (2, "orders")
    assert (request.pattern_type_filter, request.operation, request.permission_type) == (2, 1, 1)
    assert (request.principal_filter, request.host_filter) == ("User:alice", "*")
    request = sent(DescribeAcls(EVERYTHING), version)
    assert (request.resource_type_filter, request.resource_name_filter) == (1, None)
    assert (request.pattern_type_filter, request.operation, request.permission_type) == (1, 1, 1)
    assert (request.principal_filter, request.host_filter) == (None, None)


@pytest.mark.parametrize("version", all_versions_of(CreateAcls))
def test_rules_are_sent_in_order(version: int) -> None:
    creations = sent(CreateAcls([READS, NO_LOGS, READS]), version).creations
    assert [
        (
            one.resource_type,
            one.resource_name,
            one.resource_pattern_type,
            one.principal,
            one.host,
            one.operation,
            one.permission_type,
        )
        for one in creations
    ] == [
        (2, "orders", 3, "User:alice", "*", 3, 3),
        (3, "logs-", 4, "User:*", "10.0.0.1", 2, 2),
    ]


@pytest.mark.parametrize("version", all_versions_of(DeleteAcls))
def test_filters_are_sent_in_order(version: int) -> None:
    filters = sent(DeleteAcls([OF_ALICE, EVERYTHING]), version).filters
    assert [(one.resource_name_filter, one.pattern_type_filter) for one in filters] == [
        ("orders", 2),
        (None, 1),
    ]


def test_users_as_resources_need_a_broker_that_knows_them() -> None:
    binding = AclBinding(ResourceType.USER, "bob", "User:alice", AclOperation.CREATE_TOKENS)
    of_users = AclBindingFilter(ResourceType.USER)
    for operation, item in (
        (CreateAcls([binding]), binding),
        (DeleteAcls([of_users]), of_users),
        (DescribeAcls(of_users), ONLY),
    ):
        asked: Any = operation
        error = asked.unsupported(item, 2)
        assert isinstance(error, UnsupportedVersionError)
        assert "need Kafka 3.3" in str(error)
        assert asked.unsupported(item, 3) is None
    assert CreateAcls([READS]).unsupported(READS, 1) is None


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"resource_type": ResourceType.ANY}, "ANY is for filters, not for a rule's resource_type"),
        ({"operation": AclOperation.ANY}, "not for a rule's operation"),
        ({"permission": AclPermissionType.ANY}, "not for a rule's permission"),
        ({"pattern_type": PatternType.MATCH}, "is LITERAL or PREFIXED"),
        ({"operation": AclOperation.UNKNOWN}, "operation cannot be <AclOperation.UNKNOWN: 0>"),
        ({"permission": 3}, "permission cannot be 3"),
    ],
)
def test_a_rule_has_no_fields_of_filters(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        CreateAcls([replace(READS, **changes)])


def test_filters_are_checked() -> None:
    unknown = AclBindingFilter(pattern_type=PatternType.UNKNOWN)
    makers: list[Any] = [DescribeAcls, lambda one: DeleteAcls([one])]
    for make in makers:
        with pytest.raises(UsageError, match="AclBindingFilter: pattern_type cannot be"):
            make(unknown)
        with pytest.raises(UsageError, match="which rules are meant"):
            make(READS)
    with pytest.raises(UsageError, match="is a rule"):
        CreateAcls([OF_ALICE])  # type: ignore[list-item]


def test_rules_and_filters_are_shown_in_words() -> None:
    assert str(READS) == "ALLOW READ of topic 'orders' to User:alice from *"
    assert str(NO_LOGS) == "DENY ALL of group 'logs-' (PREFIXED) to User:* from 10.0.0.1"
    assert str(EVERYTHING) == "ANY ANY of any"
    assert str(OF_ALICE) == "ANY ANY of topic 'orders' (MATCH) to User:alice from *"
    assert pickle.loads(pickle.dumps([NO_LOGS, OF_ALICE])) == [NO_LOGS, OF_ALICE]


# ---- what is made of answers ----


@pytest.mark.parametrize("version", all_versions_of(DescribeAcls))
def test_rules_are_described(version: int) -> None:
    answer = DescribeAclsResponse(
        resources=[
            DescribeAclsResource(
                resource_type=2,
                resource_name="orders",
                pattern_type=3,
                acls=[
                    AclDescription(
                        principal="User:alice", host="*", operation=3, permission_type=3
                    ),
                    AclDescription(
                        principal="User:eve", host="*", operation=99, permission_type=77
                    ),
                ],
            ),
            DescribeAclsResource(
                resource_type=3,
                resource_name="logs-",
                pattern_type=4,
                acls=[
                    AclDescription(
                        principal="User:*", host="10.0.0.1", operation=2, permission_type=2
                    )
                ],
            ),
            DescribeAclsResource(resource_type=55, resource_name="odd", pattern_type=66),
        ]
    )
    bindings = meanings(DescribeAcls(EVERYTHING), answer, version)[ONLY]
    odd = AclBinding(
        ResourceType.TOPIC,
        "orders",
        "User:eve",
        AclOperation.UNKNOWN,
        AclPermissionType.UNKNOWN,
    )
    assert bindings == [READS, odd, NO_LOGS]


def test_a_refusal_says_what_is_missing() -> None:
    answer = DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=None)
    text = refusals(DescribeAcls(EVERYTHING), answer, 3)[ONLY]
    assert text.endswith("DescribeAcls: the brokers have no authorizer (authorizer.class.name)")
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    refused = CreateAclsResponse(results=[AclCreationResult(error_code=code)])
    text = refusals(CreateAcls([READS]), refused, 3)[READS]
    assert "CreateAcls of ALLOW READ of topic 'orders' to User:alice from *" in text
    assert text.endswith("(needs ALTER on the cluster)")


@pytest.mark.parametrize("version", all_versions_of(CreateAcls))
def test_results_of_rules_have_their_order(version: int) -> None:
    refused = AclCreationResult(
        error_code=ErrorCode.INVALID_REQUEST, error_message="Could not parse principal"
    )
    operation = CreateAcls([READS, NO_LOGS])
    outcome = meanings(operation, CreateAclsResponse(results=[AclCreationResult(), refused]), 1)
    assert outcome[READS] is None
    assert "Could not parse principal" in str(outcome[NO_LOGS].error)
    for count in (0, 1, 3):
        answer = CreateAclsResponse(results=[AclCreationResult()] * count)
        texts = refusals(operation, answer, version)
        assert texts.keys() == {READS, NO_LOGS}
        assert f"has {count} results for 2 rules" in texts[READS]


@pytest.mark.parametrize("version", all_versions_of(DeleteAcls))
def test_deleted_rules_are_told(version: int) -> None:
    matching: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": "orders",
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    kept = DeleteAclsMatchingAcl(
        error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message="disk full", **matching
    )
    answer = DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(matching_acls=[DeleteAclsMatchingAcl(**matching), kept]),
            DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message="no"),
        ]
    )
    operation = DeleteAcls([OF_ALICE, EVERYTHING])
    outcome = meanings(operation, answer, version)
    deleted, still_there = outcome[OF_ALICE]
    assert deleted == DeletedAcl(READS)
    assert still_there.binding == READS
    assert str(still_there.error).endswith(f"{READS} is still there: disk full")
    assert "DeleteAcls of ANY ANY of any: no" in str(outcome[EVERYTHING].error)
    assert refusals(operation, DeleteAclsResponse(), version).keys() == {OF_ALICE, EVERYTHING}


def test_the_one_name_of_the_cluster() -> None:
    binding = AclBinding(ResourceType.CLUSTER, CLUSTER_NAME, "User:a", AclOperation.ALTER)
    assert sent(CreateAcls([binding]), 3).creations[0].resource_name == "kafka-cluster"
