"""The public class `Admin`: the admin client for callers that block."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminBase
from kafka_fast.admin.calls.acls import AclCalls
from kafka_fast.admin.calls.client_quotas import ClientQuotaCalls
from kafka_fast.admin.calls.cluster import ClusterCalls
from kafka_fast.admin.calls.configs import ConfigCalls
from kafka_fast.admin.calls.delegation_tokens import DelegationTokenCalls
from kafka_fast.admin.calls.group_offsets import GroupOffsetCalls
from kafka_fast.admin.calls.groups import GroupCalls
from kafka_fast.admin.calls.lag import LagCalls
from kafka_fast.admin.calls.log_dirs import LogDirCalls
from kafka_fast.admin.calls.offsets import OffsetCalls
from kafka_fast.admin.calls.partitions import PartitionCalls
from kafka_fast.admin.calls.topics import TopicCalls
from kafka_fast.admin.calls.transactions import TransactionCalls
from kafka_fast.admin.calls.users import UserCalls

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from kafka_fast.admin.admin_core import AdminCore
    from kafka_fast.config import AdminSettings
    from kafka_fast.config.properties import AdminProperties


class Admin(
    AclCalls,
    ClientQuotaCalls,
    ClusterCalls,
    ConfigCalls,
    DelegationTokenCalls,
    GroupCalls,
    GroupOffsetCalls,
    LagCalls,
    LogDirCalls,
    OffsetCalls,
    PartitionCalls,
    TopicCalls,
    TransactionCalls,
    UserCalls,
    AdminBase,
):
    """Describes and changes a cluster. Thread-safe.

    A call about several things returns an AdminResult: a value or an error for each of them. A call
    about one thing returns its value, or raises. Names are those of Kafka's Java client, in
    snake_case.

    Examples:
        >>> with Admin({"bootstrap.servers": "localhost:9092"}) as admin:
        ...     admin.create_topics([NewTopic("orders", 6)]).raise_first()
        ...     print(sorted(admin.list_topics()))

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
        """Return the core; the simulation overrides this to give it another host."""
        from kafka_fast.admin.admin_core import AdminCore
        from kafka_fast.net.threaded_host import ThreadedHost

        return AdminCore(settings, self.client_id, ThreadedHost(settings))

    # ---- the end ----

    def debug_dump(self, timeout: float = 5.0) -> str:
        """Return what this client waits for and did lately, as text for a bug report.

        Connections that do not answer within `timeout` seconds are missing.
        """
        return self._core.driver.run(self._core.debug_dump(timeout))

    def close(self) -> None:
        """Stop. Calls that wait end with a WakeupError. A second call does nothing."""
        self._finalizer.detach()
        self._core.driver.run(self._steps.close())

    def __enter__(self) -> Self:
        """Return the client itself; leaving the block closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()
