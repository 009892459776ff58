"""The calls of `aio.Admin` about quotas of users, clients and addresses.

Made of `admin/calls/client_quotas.py` by `python -m tests.shells`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls
from kafka_fast.control.admin.types.client_quotas import ClientQuotaFilter

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult
    from kafka_fast.control.admin.types.client_quotas import ClientQuotaEntity

ANY_QUOTA = ClientQuotaFilter()


class AsyncClientQuotaCalls(AdminCalls):
    """Quotas: describe and change how much users, clients and addresses may do."""

    async def describe_client_quotas(
        self, quota_filter: ClientQuotaFilter = ANY_QUOTA, *, timeout: float | None = None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Return the quotas that a filter matches, by whom they limit and by their names.

        DescribeClientQuotas; needs DESCRIBE_CONFIGS on the cluster, and Kafka 2.6. Names of quotas
        are Kafka's: producer_byte_rate, consumer_byte_rate, request_percentage, …

        Args:
            quota_filter: which quotas are returned; ClientQuotaFilter(): all of them.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: the filter has something that is no name.
        """
        from kafka_fast.control.admin.operations.client_quotas import DescribeClientQuotas

        return await self._driver.run(
            self._steps.run_one(DescribeClientQuotas(quota_filter), timeout)
        )

    async def alter_client_quotas(
        self,
        quotas: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> AdminResult[ClientQuotaEntity, None]:
        """Set and remove quotas.

        AlterClientQuotas; needs ALTER_CONFIGS on the cluster, and Kafka 2.6. When this returns, not
        all brokers may know the new quotas yet.

        Args:
            quotas: the new values by entity and by the quota's name; None: remove it. Quotas that
                are not named stay.
            validate_only: whether to check only whether they could be changed.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: an entity has no name or ANY, or a value is no number.
        """
        from kafka_fast.control.admin.operations.client_quotas import AlterClientQuotas

        operation = AlterClientQuotas(quotas, validate_only=validate_only)
        return await self._driver.run(self._steps.run_items(operation, timeout))
