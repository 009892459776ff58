"""Operations on access control: describe, create and delete rules."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from kafka_fast.control.admin.operation import ONLY, Operation
from kafka_fast.control.admin.types.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    DeletedAcl,
    PatternType,
    ResourceType,
)
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning, Refused
from kafka_fast.control.requests.targets import AnyNode
from kafka_fast.errors import (
    ErrorCode,
    KafkaError,
    ProtocolError,
    UnsupportedVersionError,
    UsageError,
)
from kafka_fast.protocol.apis.security.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kafka_fast.protocol.apis.security.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kafka_fast.protocol.apis.security.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResponse,
)

NO_AUTHORIZER: Mapping[int, str] = {
    ErrorCode.SECURITY_DISABLED: "the brokers have no authorizer (authorizer.class.name)",
}

FIRST_VERSION_WITH_USERS = 3

R = TypeVar("R")
Rule: TypeAlias = AclBinding | AclBindingFilter


def _check_kinds(rule: Rule) -> None:
    """Check the fields of a rule or filter that have numbers.

    Raises:
        UsageError: one of them is no such number, or has no meaning.
    """
    kinds: tuple[tuple[str, type[enum.Enum]], ...] = (
        ("resource_type", ResourceType),
        ("operation", AclOperation),
        ("permission", AclPermissionType),
        ("pattern_type", PatternType),
    )
    for name, kind in kinds:
        value = getattr(rule, name)
        if not isinstance(value, kind) or value.name == "UNKNOWN":
            raise UsageError(f"{type(rule).__name__}: {name} cannot be {value!r}")


def _check_binding(binding: AclBinding) -> None:
    if not isinstance(binding, AclBinding):
        raise UsageError(f"an AclBinding is a rule, not {binding!r}")
    _check_kinds(binding)
    for name in ("resource_type", "operation", "permission"):
        if getattr(binding, name).name == "ANY":
            raise UsageError(f"{binding}: ANY is for filters, not for a rule's {name}")
    if binding.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise UsageError(f"{binding}: the pattern_type of a rule is LITERAL or PREFIXED")


def _check_filter(acl_filter: AclBindingFilter) -> None:
    if not isinstance(acl_filter, AclBindingFilter):
        raise UsageError(f"an AclBindingFilter says which rules are meant, not {acl_filter!r}")
    _check_kinds(acl_filter)


def _unsupported(what: str, rule: Rule, version: int) -> KafkaError | None:
    """Return why a rule or filter cannot be sent; None: it can.

    Args:
        what: the request and its item.
        rule: the rule or filter.
        version: of the API.
    """
    if rule.resource_type != ResourceType.USER or version >= FIRST_VERSION_WITH_USERS:
        return None
    return UnsupportedVersionError(
        f"{what}: rules about resources of the type USER need Kafka 3.3 (KIP-373)"
    )


def _in_order(api: str, items: Sequence[R], count: int) -> Refused | None:
    """Return what is wrong with results that stand in the order of the items; None: nothing."""
    if count == len(items):
        return None
    return Refused(ProtocolError(f"the answer to {api} has {count} results for {len(items)} rules"))


class DescribeAcls(Operation[str, list[AclBinding]]):
    """DescribeAcls."""

    name = "describe_acls"
    permission = "DESCRIBE on the cluster"
    at_controllers = True
    words = NO_AUTHORIZER
    request_class = DescribeAclsRequest
    response_class = DescribeAclsResponse

    def __init__(self, acl_filter: AclBindingFilter) -> None:
        """Take which rules are described.

        Raises:
            UsageError: a field of the filter has no meaning.
        """
        _check_filter(acl_filter)
        super().__init__(AnyNode(), [ONLY])
        self._filter = acl_filter

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse what the broker would not understand."""
        return _unsupported(self.api, self._filter, version)

    def build(self, items: Sequence[str], version: int) -> DescribeAclsRequest:
        """Ask for the rules."""
        return DescribeAclsRequest(
            resource_type_filter=self._filter.resource_type,
            resource_name_filter=self._filter.name,
            pattern_type_filter=self._filter.pattern_type,
            principal_filter=self._filter.principal,
            host_filter=self._filter.host,
            operation=self._filter.operation,
            permission_type=self._filter.permission,
        )

    def outcomes(
        self, answer: DescribeAclsResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[list[AclBinding]]]]:
        """Return the rules, as the broker orders them."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code, answer.error_message)
            return
        bindings = [
            AclBinding(
                ResourceType(resource.resource_type),
                resource.resource_name,
                acl.principal,
                AclOperation(acl.operation),
                AclPermissionType(acl.permission_type),
                acl.host,
                PatternType(resource.pattern_type),
            )
            for resource in answer.resources
            for acl in resource.acls
        ]
        yield ONLY, Done(bindings)


class CreateAcls(Operation[AclBinding, None]):
    """CreateAcls. A rule that is there already is created again, without an error."""

    name = "create_acls"
    permission = "ALTER on the cluster"
    at_controllers = True
    words = NO_AUTHORIZER
    request_class = CreateAclsRequest
    response_class = CreateAclsResponse

    def __init__(self, bindings: Iterable[AclBinding]) -> None:
        """Take the rules.

        Raises:
            UsageError: a rule has a field that is for filters.
        """
        bindings = list(bindings)
        for binding in bindings:
            _check_binding(binding)
        super().__init__(AnyNode(), bindings)

    def unsupported(self, item: AclBinding, version: int) -> KafkaError | None:
        """Refuse what the broker would not understand."""
        return _unsupported(self.describe(item), item, version)

    def build(self, items: Sequence[AclBinding], version: int) -> CreateAclsRequest:
        """Ask for the rules."""
        return CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=item.resource_type,
                    resource_name=item.name,
                    resource_pattern_type=item.pattern_type,
                    principal=item.principal,
                    host=item.host,
                    operation=item.operation,
                    permission_type=item.permission,
                )
                for item in items
            ]
        )

    def outcomes(
        self, answer: CreateAclsResponse, items: Sequence[AclBinding], source: AnswerSource
    ) -> Iterator[tuple[AclBinding, Meaning[None]]]:
        """Return which rules there are now. The answer names none: it has the request's order."""
        misfit = _in_order(self.api, items, len(answer.results))
        if misfit is not None:
            yield from ((item, misfit) for item in items)
            return
        for item, result in zip(items, answer.results, strict=True):
            yield item, self.done_or_refusal(item, result.error_code, result.error_message)


class DeleteAcls(Operation[AclBindingFilter, list[DeletedAcl]]):
    """DeleteAcls."""

    name = "delete_acls"
    permission = "ALTER on the cluster"
    at_controllers = True
    words = NO_AUTHORIZER
    request_class = DeleteAclsRequest
    response_class = DeleteAclsResponse

    def __init__(self, filters: Iterable[AclBindingFilter]) -> None:
        """Take which rules are deleted.

        Raises:
            UsageError: a field of a filter has no meaning.
        """
        filters = list(filters)
        for acl_filter in filters:
            _check_filter(acl_filter)
        super().__init__(AnyNode(), filters)

    def unsupported(self, item: AclBindingFilter, version: int) -> KafkaError | None:
        """Refuse what the broker would not understand."""
        return _unsupported(self.describe(item), item, version)

    def build(self, items: Sequence[AclBindingFilter], version: int) -> DeleteAclsRequest:
        """Ask for the end of the rules."""
        return DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    resource_type_filter=item.resource_type,
                    resource_name_filter=item.name,
                    pattern_type_filter=item.pattern_type,
                    principal_filter=item.principal,
                    host_filter=item.host,
                    operation=item.operation,
                    permission_type=item.permission,
                )
                for item in items
            ]
        )

    def outcomes(
        self, answer: DeleteAclsResponse, items: Sequence[AclBindingFilter], source: AnswerSource
    ) -> Iterator[tuple[AclBindingFilter, Meaning[list[DeletedAcl]]]]:
        """Return the rules that matched. The answer has the order of the request."""
        results: list[DeleteAclsFilterResult] = answer.filter_results
        misfit = _in_order(self.api, items, len(results))
        if misfit is not None:
            yield from ((item, misfit) for item in items)
            return
        for item, result in zip(items, results, strict=True):
            if result.error_code:
                yield item, self.refusal(item, result.error_code, result.error_message)
            else:
                yield item, Done([self._deleted(item, acl) for acl in result.matching_acls])

    def _deleted(self, item: AclBindingFilter, acl: DeleteAclsMatchingAcl) -> DeletedAcl:
        binding = AclBinding(
            ResourceType(acl.resource_type),
            acl.resource_name,
            acl.principal,
            AclOperation(acl.operation),
            AclPermissionType(acl.permission_type),
            acl.host,
            PatternType(acl.pattern_type),
        )
        if not acl.error_code:
            return DeletedAcl(binding)
        said = acl.error_message or None
        text = f"{binding} is still there" + (f": {said}" if said else "")
        return DeletedAcl(binding, self.refusal(item, acl.error_code, text).error)
