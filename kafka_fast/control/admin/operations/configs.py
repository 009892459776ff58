"""Operations on what topics, brokers and other resources are set to: describe, change, list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_fast.control.admin.arguments import told_secret
from kafka_fast.control.admin.operation import NO_SUCH_TOPIC, ONLY, Operation
from kafka_fast.control.admin.types.configs import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from kafka_fast.control.arguments import (
    LAST_NUMBER,
    checked_choice,
    checked_name,
    checked_number,
    mapping_of,
    several,
)
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.targets import AnyNode, NodeTarget, Target
from kafka_fast.errors import KafkaError, UnsupportedVersionError, UsageError
from kafka_fast.protocol.apis.configs import (
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from kafka_fast.secret import Secret

if TYPE_CHECKING:
    from kafka_fast.control.connections.connections import Connections
    from kafka_fast.control.metadata.cluster import Cluster

OF_ONE_BROKER = frozenset({ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER})

FIRST_DESCRIBE_WITH_DOCUMENTATION = 3
FIRST_LIST_WITH_TYPES = 1
RESOURCES_PER_REQUEST = 100
"""Each has some forty settings. More would make an answer that keeps the control thread from other
work."""


class ConfigNodes(NodeTarget[ConfigResource]):
    """The broker whose own settings or loggers an item is; other items go to the controller.

    Any broker answers for the others. The controller that metadata name is one that runs.
    """

    role = "its broker"
    is_found_again = True

    def node(self, cluster: Cluster, key: ConfigResource) -> int | None:
        """Return the broker's id, whether the metadata name it or not."""
        broker_id = _broker_of(key)
        if broker_id is not None:
            return broker_id
        return cluster.controller_id if cluster.controller_id >= 0 else None

    def why_waiting(
        self, cluster: Cluster, connections: Connections, key: ConfigResource
    ) -> Reason | None:
        """Return what is in the way of an item; None: nothing is known. Any thread."""
        broker_id = _broker_of(key)
        if broker_id is not None and cluster.node(broker_id) is None:
            return Reason(f"the metadata name no broker {broker_id}")
        return super().why_waiting(cluster, connections, key)


def _broker_of(resource: ConfigResource) -> int | None:
    """Return the id of the one broker that answers for a resource; None: any broker does."""
    return int(resource.name) if resource.type in OF_ONE_BROKER and resource.name else None


def _target_of(resources: Iterable[ConfigResource]) -> Target[ConfigResource]:
    """Return where resources go.

    Raises:
        UsageError: a resource cannot be one.
    """
    resources = list(resources)
    for resource in resources:
        _check_resource(resource)
    has_own_broker = any(_broker_of(resource) is not None for resource in resources)
    return ConfigNodes() if has_own_broker else AnyNode()


def _check_resource(resource: ConfigResource) -> None:
    if not isinstance(resource, ConfigResource):
        raise UsageError(f"a ConfigResource says what is configured, not {resource!r}")
    if not isinstance(resource.type, ConfigResourceType) or not isinstance(resource.name, str):
        raise UsageError(f"a ConfigResource has a ConfigResourceType and a text, not {resource!r}")
    if resource.type == ConfigResourceType.UNKNOWN:
        raise UsageError(f"{resource}: the type of what is configured must be known")
    name, kind = resource.name, resource.type
    is_broker_id = name.isascii() and name.isdecimal()
    is_all_brokers = kind == ConfigResourceType.BROKER and not name
    if kind in OF_ONE_BROKER and not is_broker_id and not is_all_brokers:
        raise UsageError(f"{resource}: the name of a broker is its id, as text")
    if kind in OF_ONE_BROKER and len(name) > len(str(LAST_NUMBER)):
        raise UsageError(f"{resource}: brokers have no such id")
    if kind in OF_ONE_BROKER and name:
        checked_number(int(name), "the id of a broker")
    checked_name(name, "the name of a resource")


def _resource(resource_type: int, name: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType(resource_type), name)


class DescribeConfigs(Operation[ConfigResource, dict[str, ConfigEntry]]):
    """DescribeConfigs."""

    name = "describe_configs"
    permission = "DESCRIBE_CONFIGS on the topic or group, or else on the cluster"
    at_controllers = True
    final = frozenset(NO_SUCH_TOPIC)
    words = NO_SUCH_TOPIC
    request_class = describe_configs.DescribeConfigsRequest
    response_class = describe_configs.DescribeConfigsResponse

    def __init__(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool,
        include_documentation: bool,
    ) -> None:
        """Take the resources.

        Args:
            resources: whose settings are told.
            include_synonyms: whether to tell where each value may come from.
            include_documentation: whether to tell what each setting is for.

        Raises:
            UsageError: a resource cannot be one.
        """
        resources = several(resources, "resources")
        super().__init__(_target_of(resources), resources)
        self._include_synonyms = include_synonyms
        self._include_documentation = include_documentation

    def unsupported(self, item: ConfigResource, version: int) -> KafkaError | None:
        """Refuse to ask for documentation where brokers have none."""
        if self._include_documentation and version < FIRST_DESCRIBE_WITH_DOCUMENTATION:
            return UnsupportedVersionError(
                f"{self.describe(item)}: brokers tell what settings are for since Kafka 2.6 "
                "(KIP-569)"
            )
        return None

    def max_items(self, version: int) -> int:
        """Return how many resources one answer may describe."""
        return RESOURCES_PER_REQUEST

    def build(
        self, items: Sequence[ConfigResource], version: int
    ) -> describe_configs.DescribeConfigsRequest:
        """Ask for all settings of the resources."""
        return describe_configs.DescribeConfigsRequest(
            resources=[
                describe_configs.DescribeConfigsResource(
                    resource_type=item.type, resource_name=item.name, configuration_keys=None
                )
                for item in items
            ],
            include_synonyms=self._include_synonyms,
            include_documentation=self._include_documentation,
        )

    def outcomes(
        self,
        answer: describe_configs.DescribeConfigsResponse,
        items: Sequence[ConfigResource],
        source: AnswerSource,
    ) -> Iterator[tuple[ConfigResource, Meaning[dict[str, ConfigEntry]]]]:
        """Return the settings of each resource by name, or why they are not told."""
        named = {_resource(one.resource_type, one.resource_name) for one in answer.results}
        for result in answer.results:
            key = _resource(result.resource_type, result.resource_name)
            if key.type == ConfigResourceType.UNKNOWN:
                # Brokers older than 2.3 call what they do not know so: it is what else was asked.
                others = (one for one in items if one.name == key.name and one not in named)
                key = next(others, key)
            if result.error_code:
                yield key, self.refusal(key, result.error_code, result.error_message)
            else:
                yield key, Done({config.name: _entry(config) for config in result.configs})


def _entry(config: describe_configs.DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        None if config.is_sensitive else config.value,
        ConfigSource(config.config_source),
        config.read_only,
        config.is_sensitive,
        tuple(
            ConfigSynonym(
                synonym.name,
                None if config.is_sensitive else synonym.value,
                ConfigSource(synonym.source),
            )
            for synonym in config.synonyms
        ),
        ConfigType(config.config_type),
        config.documentation or None,
    )


class IncrementalAlterConfigs(Operation[ConfigResource, None]):
    """IncrementalAlterConfigs: change single settings."""

    name = "incremental_alter_configs"
    permission = "ALTER_CONFIGS on the topic or group, or else on the cluster"
    since = "2.3"
    at_controllers = True
    final = frozenset(NO_SUCH_TOPIC)
    words = NO_SUCH_TOPIC
    request_class = incremental_alter_configs.IncrementalAlterConfigsRequest
    response_class = incremental_alter_configs.IncrementalAlterConfigsResponse

    def __init__(
        self,
        configs: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool,
    ) -> None:
        """Take the changes.

        Args:
            configs: what becomes of single settings, by resource.
            validate_only: whether to check only whether they could be changed.

        Raises:
            UsageError: a resource cannot be one, or a value is missing or no text.
        """
        configs = mapping_of(configs, "changes")
        super().__init__(_target_of(configs), configs)
        self._ops = {resource: tuple(ops) for resource, ops in configs.items()}
        for resource, ops in self._ops.items():
            for op in ops:
                _check_op(resource, op)
        self._validate_only = validate_only
        self.may_block = any(_may_block(op.value) for ops in self._ops.values() for op in ops)
        """Whether a value is to come from a function of the user's: `reveal_values` calls it."""

    def reveal_values(self) -> None:
        """Put the values of functions in the place of the functions. A thread that may block.

        Raises:
            KafkaError: a function failed, or what it returns cannot be sent.
        """
        self._ops = {
            resource: tuple(
                AlterConfigOp(
                    op.name, _revealed(op.value, op.name, f"{self.name}: {resource}"), op.op
                )
                for op in ops
            )
            for resource, ops in self._ops.items()
        }

    def build(
        self, items: Sequence[ConfigResource], version: int
    ) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
        """Ask for the changes."""
        return incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=item.type,
                    resource_name=item.name,
                    configs=[
                        incremental_alter_configs.AlterableConfig(
                            name=op.name, config_operation=op.op, value=_value_text(op.value)
                        )
                        for op in self._ops[item]
                    ],
                )
                for item in items
            ],
            validate_only=self._validate_only,
        )

    def outcomes(
        self,
        answer: incremental_alter_configs.IncrementalAlterConfigsResponse,
        items: Sequence[ConfigResource],
        source: AnswerSource,
    ) -> Iterator[tuple[ConfigResource, Meaning[None]]]:
        """Return which resources have changed."""
        for result in answer.responses:
            key = _resource(result.resource_type, result.resource_name)
            yield key, self.done_or_refusal(key, result.error_code, result.error_message)


def _check_op(resource: ConfigResource, op: AlterConfigOp) -> None:
    if not isinstance(op, AlterConfigOp):
        raise UsageError(f"{resource}: an AlterConfigOp says what changes, not {type(op).__name__}")
    if not isinstance(op.op, AlterConfigOpType):
        raise UsageError(f"{resource}: what becomes of {op.name!r} cannot be {op.op!r}")
    if (op.value is None) != (op.op == AlterConfigOpType.DELETE):
        needs = "takes no" if op.value is not None else "needs a"
        raise UsageError(f"{resource}: {op.op.name} of {op.name!r} {needs} value")
    _checked_value(resource, op.name, op.value)


def _checked_value(
    resource: ConfigResource, name: str, value: str | Secret | None
) -> str | Secret | None:
    """Return a value that can be one. The text of the error does not show it, nor does its frame.

    Raises:
        UsageError: it is no text.
    """
    if value is None or isinstance(value, (str, Secret)):
        return value
    kind = type(value).__name__
    del value  # it may be a password
    raise UsageError(f"{resource}: the value of {name!r} is a text, not {kind}")


def _hidden(value: str | Secret | None) -> Secret | None:
    """Return a value as what is not shown with the operation."""
    return Secret(value) if isinstance(value, str) else value


def _may_block(value: str | Secret | None) -> bool:
    return isinstance(value, Secret) and value.may_block


def _revealed(value: str | Secret | None, name: str, what: str) -> Secret | None:
    """Return a value that takes no time to read.

    Args:
        value: given by a user.
        name: of the setting.
        what: needs it, in an error.

    Raises:
        KafkaError: the function of a secret failed, or what it returns cannot be sent.
    """
    if not isinstance(value, Secret) or not value.may_block:
        return _hidden(value)
    return Secret(told_secret(value, f"value of {name!r}", what).decode())


def _value_text(value: str | Secret | None) -> str | None:
    return value.reveal() if isinstance(value, Secret) else value


class AlterConfigs(Operation[ConfigResource, None]):
    """AlterConfigs: replace all settings."""

    name = "alter_configs"
    permission = "ALTER_CONFIGS on the topic or group, or else on the cluster"
    final = frozenset(NO_SUCH_TOPIC)
    words = NO_SUCH_TOPIC
    request_class = alter_configs.AlterConfigsRequest
    response_class = alter_configs.AlterConfigsResponse

    def __init__(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str | Secret | None]],
        *,
        validate_only: bool,
    ) -> None:
        """Take the settings.

        Args:
            configs: all settings of each resource, by name.
            validate_only: whether to check only whether they could be set.

        Raises:
            UsageError: a resource cannot be one, or a value is no text.
        """
        configs = mapping_of(configs, "settings")
        super().__init__(_target_of(configs), configs)
        self._configs = {
            resource: {
                name: _hidden(_checked_value(resource, name, value))
                for name, value in mapping_of(settings, f"settings of {resource}").items()
            }
            for resource, settings in configs.items()
        }
        del configs  # a traceback that has this frame shows no secret
        self._validate_only = validate_only
        self.may_block = any(
            _may_block(value) for settings in self._configs.values() for value in settings.values()
        )
        """Whether a value is to come from a function of the user's: `reveal_values` calls it."""

    def reveal_values(self) -> None:
        """Put the values of functions in the place of the functions, as above."""
        self._configs = {
            resource: {
                name: _revealed(value, name, f"{self.name}: {resource}")
                for name, value in settings.items()
            }
            for resource, settings in self._configs.items()
        }

    def build(
        self, items: Sequence[ConfigResource], version: int
    ) -> alter_configs.AlterConfigsRequest:
        """Ask for the settings."""
        return alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=item.type,
                    resource_name=item.name,
                    configs=[
                        alter_configs.AlterableConfig(name=name, value=_value_text(value))
                        for name, value in self._configs[item].items()
                    ],
                )
                for item in items
            ],
            validate_only=self._validate_only,
        )

    def outcomes(
        self,
        answer: alter_configs.AlterConfigsResponse,
        items: Sequence[ConfigResource],
        source: AnswerSource,
    ) -> Iterator[tuple[ConfigResource, Meaning[None]]]:
        """Return which resources have their settings."""
        for result in answer.responses:
            key = _resource(result.resource_type, result.resource_name)
            yield key, self.done_or_refusal(key, result.error_code, result.error_message)


class ListConfigResources(Operation[str, list[ConfigResource]]):
    """ListConfigResources."""

    name = "list_config_resources"
    permission = "DESCRIBE_CONFIGS on the cluster"
    since = "3.7"
    request_class = list_config_resources.ListConfigResourcesRequest
    response_class = list_config_resources.ListConfigResourcesResponse

    def __init__(self, types: Iterable[ConfigResourceType]) -> None:
        """Take the types; none: all of them.

        Raises:
            UsageError: a type is none.
        """
        super().__init__(AnyNode(), [ONLY])
        self._types = list(
            dict.fromkeys(
                checked_choice(ConfigResourceType, kind, "a type of resources")
                for kind in several(types, "types of resources")
            )
        )

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse types that the broker would not list."""
        is_old_list = self._types == [ConfigResourceType.CLIENT_METRICS]
        if version >= FIRST_LIST_WITH_TYPES or is_old_list:
            return None
        return UnsupportedVersionError(
            f"{self.describe(item)}: brokers older than Kafka 4.1 list resources of the type "
            "CLIENT_METRICS only (KIP-1142)"
        )

    def build(
        self, items: Sequence[str], version: int
    ) -> list_config_resources.ListConfigResourcesRequest:
        """Ask for the resources."""
        types = self._types if version >= FIRST_LIST_WITH_TYPES else []
        return list_config_resources.ListConfigResourcesRequest(resource_types=list(types))

    def outcomes(
        self,
        answer: list_config_resources.ListConfigResourcesResponse,
        items: Sequence[str],
        source: AnswerSource,
    ) -> Iterator[tuple[str, Meaning[list[ConfigResource]]]]:
        """Return the resources, in the order of their types and names."""
        if answer.error_code:
            yield ONLY, self.refusal(ONLY, answer.error_code)
            return
        resources = [
            _resource(one.resource_type, one.resource_name) for one in answer.config_resources
        ]
        yield ONLY, Done(sorted(resources, key=lambda one: (one.type, one.name)))
