"""The public class `aio.Admin`: the admin client for tasks of asyncio's event loops."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminBase
from kafka_fast.aio.admin.calls.acls import AsyncAclCalls
from kafka_fast.aio.admin.calls.client_quotas import AsyncClientQuotaCalls
from kafka_fast.aio.admin.calls.cluster import AsyncClusterCalls
from kafka_fast.aio.admin.calls.configs import AsyncConfigCalls
from kafka_fast.aio.admin.calls.delegation_tokens import AsyncDelegationTokenCalls
from kafka_fast.aio.admin.calls.group_offsets import AsyncGroupOffsetCalls
from kafka_fast.aio.admin.calls.groups import AsyncGroupCalls
from kafka_fast.aio.admin.calls.lag import AsyncLagCalls
from kafka_fast.aio.admin.calls.log_dirs import AsyncLogDirCalls
from kafka_fast.aio.admin.calls.offsets import AsyncOffsetCalls
from kafka_fast.aio.admin.calls.partitions import AsyncPartitionCalls
from kafka_fast.aio.admin.calls.topics import AsyncTopicCalls
from kafka_fast.aio.admin.calls.transactions import AsyncTransactionCalls
from kafka_fast.aio.admin.calls.users import AsyncUserCalls

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from kafka_fast.admin.admin_core import AdminCore
    from kafka_fast.config import AdminSettings
    from kafka_fast.config.properties import AdminProperties


class Admin(
    AsyncAclCalls,
    AsyncClientQuotaCalls,
    AsyncClusterCalls,
    AsyncConfigCalls,
    AsyncDelegationTokenCalls,
    AsyncGroupCalls,
    AsyncGroupOffsetCalls,
    AsyncLagCalls,
    AsyncLogDirCalls,
    AsyncOffsetCalls,
    AsyncPartitionCalls,
    AsyncTopicCalls,
    AsyncTransactionCalls,
    AsyncUserCalls,
    AdminBase,
):
    """Describes and changes a cluster. Any number of tasks and event loops may share it.

    A call about several things returns an AdminResult: a value or an error for each of them. A call
    about one thing returns its value, or raises. Names are those of Kafka's Java client, in
    snake_case.

    Examples:
        >>> async with Admin({"bootstrap.servers": "localhost:9092"}) as admin:
        ...     (await admin.create_topics([NewTopic("orders", 6)])).raise_first()
        ...     print(sorted(await admin.list_topics()))

    Args:
        config: Java's property names, dotted or with underscores; see the configuration page.
        **properties: the same properties as keywords, such as `client_id=...`.

    Raises:
        ConfigError: a property is unknown, out of range or contradicts another.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        **properties: Unpack[AdminProperties],
    ) -> None:
        try:
            super().__init__(config, properties)
        finally:
            del config, properties  # a traceback that has this frame shows no secret

    def _make_core(self, settings: AdminSettings) -> AdminCore:
        from kafka_fast.admin.admin_core import AdminCore
        from kafka_fast.net.threaded_host import ThreadedHost
        from kafka_fast.net.waiting.looping import TaskCallers

        host = ThreadedHost(settings, TaskCallers())
        core = AdminCore(settings, self.client_id, host)
        self._driver = host.make_loop_driver(core.plane)
        return core

    # ---- the end ----

    async def debug_dump(self, timeout: float = 5.0) -> str:
        """Return what this client waits for and did lately, as text for a bug report.

        Connections that do not answer within `timeout` seconds are missing.
        """
        return await self._driver.run(self._core.debug_dump(timeout))

    async def close(self) -> None:
        """Stop. Calls that wait end with a WakeupError. A second call does nothing."""
        self._finalizer.detach()
        await self._driver.run(self._steps.close())

    async def __aenter__(self) -> Self:
        """Return the client itself; leaving the block closes it."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()
