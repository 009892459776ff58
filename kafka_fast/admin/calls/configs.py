"""The calls of `Admin` about what topics, brokers and other resources are set to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult
    from kafka_fast.control.admin.types.configs import (
        AlterConfigOp,
        ConfigEntry,
        ConfigResource,
        ConfigResourceType,
    )
    from kafka_fast.secret import Secret


class ConfigCalls(AdminCalls):
    """Settings: describe and change them; list what has some."""

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> AdminResult[ConfigResource, dict[str, ConfigEntry]]:
        """Return all settings of topics, brokers and other resources, by name.

        DescribeConfigs; needs DESCRIBE_CONFIGS on the topic or group, or else on the cluster.
        Documentation needs Kafka 2.6. A broker tells its own settings and log levels itself.

        Args:
            resources: a topic, a broker, … The broker "" has what is set for all brokers.
            include_synonyms: whether to tell where each value may come from.
            include_documentation: whether to tell what each setting is for.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: a resource has no known type, or the name of a broker is not its id.
        """
        from kafka_fast.control.admin.operations.configs import DescribeConfigs

        operation = DescribeConfigs(
            resources,
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        )
        return self._core.driver.run(self._steps.run_items(operation, timeout))

    def incremental_alter_configs(
        self,
        configs: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> AdminResult[ConfigResource, None]:
        """Change single settings: set, delete, append to or subtract from a list.

        IncrementalAlterConfigs; needs ALTER_CONFIGS on the topic or group, or else on the cluster.
        Needs Kafka 2.3. When this returns, not all brokers may know the new values yet.

        Args:
            configs: what becomes of single settings, by resource. Other settings stay.
            validate_only: whether to check only whether they could be changed.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: as in `describe_configs`; or a value is missing, or is no text.
        """
        from kafka_fast.admin.workflows import configs as workflows
        from kafka_fast.control.admin.operations.configs import IncrementalAlterConfigs

        operation = IncrementalAlterConfigs(configs, validate_only=validate_only)
        return self._core.driver.run(workflows.alter_configs(self._steps, operation, timeout))

    def alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str | Secret | None]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> AdminResult[ConfigResource, None]:
        """Replace all settings of resources: what is not named here goes back to its default.

        AlterConfigs, for brokers older than Kafka 2.3. Newer ones change single settings, with
        `incremental_alter_configs`. Needs ALTER_CONFIGS on the topic or group, or else on the
        cluster.

        Args:
            configs: all settings of each resource, by name.
            validate_only: whether to check only whether they could be set.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: as in `describe_configs`; or a value is no text.
        """
        from kafka_fast.admin.workflows import configs as workflows
        from kafka_fast.control.admin.operations.configs import AlterConfigs

        try:
            operation = AlterConfigs(configs, validate_only=validate_only)
        finally:
            del configs  # a traceback that has this frame shows no secret
        return self._core.driver.run(workflows.alter_configs(self._steps, operation, timeout))

    def list_config_resources(
        self, types: Iterable[ConfigResourceType] = (), *, timeout: float | None = None
    ) -> list[ConfigResource]:
        """Return what there are settings of, in the order of types and names.

        ListConfigResources; needs DESCRIBE_CONFIGS on the cluster, and Kafka 4.1. Kafka 3.7 to 4.0
        list the type CLIENT_METRICS only.

        Args:
            types: which types of resources are listed; none: all of them.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.configs import ListConfigResources

        return self._core.driver.run(self._steps.run_one(ListConfigResources(types), timeout))
