"""Every method and option of Java's `Admin` has its counterpart, or a reason in docs/admin.md.

What Java has is a list in a file, which is compared with the jar where Java is there.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
from pathlib import Path

import pytest

from kafka_fast import Admin
from kafka_fast.control.admin.operations.cluster import DescribeClusterByMetadata
from kafka_fast.testing._kafka import broker_jars
from tests.documentation.admin_table import operation_classes

LIST = Path(__file__).with_name("java_admin_4.4.0.txt")
PAGE = Path(__file__).parents[3] / "docs" / "admin.md"

JAVA = """
import java.lang.reflect.*;
import java.util.*;
import org.apache.kafka.clients.admin.*;

public class PrintAdmin {
    public static void main(String[] arguments) {
        TreeMap<String, TreeSet<String>> found = new TreeMap<>();
        for (Method method : Admin.class.getMethods()) {
            if (Modifier.isStatic(method.getModifiers())) continue;
            TreeSet<String> options =
                found.computeIfAbsent(method.getName(), name -> new TreeSet<>());
            for (Class<?> type : method.getParameterTypes())
                if (AbstractOptions.class.isAssignableFrom(type)) addOptions(type, options);
        }
        found.forEach((name, options) ->
            System.out.println((name + " " + String.join(" ", options)).trim()));
    }

    static void addOptions(Class<?> type, Set<String> options) {
        for (Method method : type.getMethods())
            if (method.getParameterCount() == 1 && !Modifier.isStatic(method.getModifiers())
                    && method.getDeclaringClass() != Object.class
                    && !Set.of("equals", "timeoutMs").contains(method.getName()))
                options.add(method.getName());
        for (Constructor<?> constructor : type.getConstructors())
            for (Class<?> part : constructor.getParameterTypes())
                options.add(part.getSimpleName());
    }
}
"""

OTHER_NAMES = {
    "deleteConsumerGroups": "delete_groups",
    "deleteShareGroups": "delete_groups",
    "deleteStreamsGroups": "delete_groups",
    "listClientMetricsResources": "list_config_resources",
    "listConsumerGroups": "list_groups",
}
"""Methods that are called otherwise here."""

OPTIONS = {
    "IsolationLevel": "isolation_level",
    "Collection": "member_ids",  # MemberToRemove, with either id
    "brokerId": "broker_id",
    "expiryTimePeriodMs": "expiry_period_ms",
    "filterOnDuration": "min_duration_ms",
    "filterOnTransactionalIdPattern": "transactional_id_pattern",
    "filterProducerIds": "producer_ids",
    "filterStates": "states",
    "inGroupStates": "states",
    "inStates": "states",
    "listInternal": "include_internal",
    "maxlifeTimeMs": "max_lifetime_ms",
    "renewTimePeriodMs": "renew_period_ms",
    "retryOnQuotaViolation": "retry_on_quota",
    "setClusterId": "cluster_id",
    "withProtocolTypes": "protocol_types",
    "withTypes": "types",
}
"""Options that are called otherwise here; the others have the same name, in snake_case."""

LACKING = {
    "clientInstanceId",
    "partitionSizeLimitPerResponse",
    "registerMetricForSubscription",
    "unregisterMetricFromSubscription",
}
"""What has no counterpart: docs/admin.md says why."""


OF_CONTROLLERS = {
    "add_raft_voter",
    "alter_partition_reassignments",
    "create_acls",
    "delete_acls",
    "describe_acls",
    "describe_cluster",
    "describe_configs",
    "describe_features",
    "describe_metadata_quorum",
    "incremental_alter_configs",
    "list_partition_reassignments",
    "remove_raft_voter",
    "unregister_broker",
    "unregister_controller",
    "update_features",
}
"""What Java asks controllers for: LeastLoadedBrokerOrActiveKController, and the other providers of
KafkaAdminClient that take them."""


def java_admin() -> dict[str, list[str]]:
    """Return the options of each of Java's methods."""
    lines = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    return {name: options for name, *options in map(str.split, lines)}


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


METHODS = sorted(java_admin().items())


@pytest.mark.parametrize(("name", "options"), METHODS, ids=[name for name, _ in METHODS])
def test_a_method_has_its_counterpart(name: str, options: list[str]) -> None:
    if name in LACKING:
        assert not hasattr(Admin, snake_case(name))
        return
    ours = getattr(Admin, OTHER_NAMES.get(name, snake_case(name)))
    parameters = inspect.signature(ours).parameters
    for option in options:
        if option not in LACKING:
            assert OPTIONS.get(option, snake_case(option)) in parameters, option


def test_what_has_no_counterpart_has_a_reason() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = {snake_case(name) for name in java_admin()} | {
        option for options in java_admin().values() for option in options
    }
    for name in LACKING:
        assert f"`{name}`" in page
        assert {name, snake_case(name)} & names
    for name, ours in OTHER_NAMES.items():
        assert f"`{name}`" in page
        assert hasattr(Admin, ours)
        assert name in java_admin()


def test_controllers_are_asked_for_what_java_asks_them() -> None:
    kinds = operation_classes()
    assert {kind.name for kind in kinds if kind.at_controllers} == OF_CONTROLLERS
    others = {kind for kind in kinds if kind.name in OF_CONTROLLERS and not kind.at_controllers}
    assert others == {DescribeClusterByMetadata}, "they have no Metadata"


@pytest.mark.broker
def test_the_list_is_javas(tmp_path: Path) -> None:
    source = tmp_path / "PrintAdmin.java"
    source.write_text(JAVA)
    try:
        java, jars = broker_jars.find_tool("java"), broker_jars.class_path()
    except broker_jars.ToolMissingError as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))
    run = subprocess.run(
        [java, "-cp", f"{jars}/*", str(source)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    printed = [line.split() for line in run.stdout.splitlines()]
    assert {name: options for name, *options in printed} == java_admin()
