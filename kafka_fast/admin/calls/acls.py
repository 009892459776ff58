"""The calls of `Admin` about access control."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls
from kafka_fast.control.admin.types.acls import AclBindingFilter

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult
    from kafka_fast.control.admin.types.acls import AclBinding, DeletedAcl

ANY_ACL = AclBindingFilter()


class AclCalls(AdminCalls):
    """Access control: describe, create and delete the rules of who may do what."""

    def describe_acls(
        self, acl_filter: AclBindingFilter = ANY_ACL, *, timeout: float | None = None
    ) -> list[AclBinding]:
        """Return the rules that a filter matches.

        DescribeAcls; needs DESCRIBE on the cluster.

        Args:
            acl_filter: which rules are returned; AclBindingFilter(): all of them.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            SecurityDisabled: the brokers have no authorizer.
            UsageError: a field of the filter has no meaning.
        """
        from kafka_fast.control.admin.operations.acls import DescribeAcls

        return self._core.driver.run(self._steps.run_one(DescribeAcls(acl_filter), timeout))

    def create_acls(
        self, bindings: Iterable[AclBinding], *, timeout: float | None = None
    ) -> AdminResult[AclBinding, None]:
        """Create rules. One that is there already is no error.

        CreateAcls; needs ALTER on the cluster. When this returns, not all brokers may know the
        rules yet.

        Args:
            bindings: the rules.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: a rule has a field that is for filters, such as ANY.
        """
        from kafka_fast.control.admin.operations.acls import CreateAcls

        return self._core.driver.run(self._steps.run_items(CreateAcls(bindings), timeout))

    def delete_acls(
        self, filters: Iterable[AclBindingFilter], *, timeout: float | None = None
    ) -> AdminResult[AclBindingFilter, list[DeletedAcl]]:
        """Delete the rules that filters match, and return these rules.

        DeleteAcls; needs ALTER on the cluster. A rule that could not be deleted is returned with
        its error. If a connection breaks, rules that an earlier try has deleted are left out.

        Args:
            filters: which rules are deleted; AclBindingFilter(): all of them.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: a field of a filter has no meaning.
        """
        from kafka_fast.control.admin.operations.acls import DeleteAcls

        return self._core.driver.run(self._steps.run_items(DeleteAcls(filters), timeout))
