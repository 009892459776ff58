"""The pytest plugin, as a user's test suite sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUITE = """
import socket
import pytest
from kafka_fast.errors import NotEnoughReplicas
from kafka_fast.testing.broker.versions import PRODUCE

seen = []

def test_shared_broker(kafka_broker, kafka_bootstrap, kafka_topic):
    assert kafka_bootstrap == kafka_broker.bootstrap
    assert len(kafka_bootstrap.split(",")) == 2
    assert kafka_topic.startswith("test-shared-broker-")
    assert kafka_broker.records(kafka_topic, 2) == []
    rule = kafka_broker.faults.error(PRODUCE, NotEnoughReplicas)
    kafka_broker.kill(1)
    seen.append(kafka_bootstrap)

@pytest.mark.parametrize("name", ["a/b", "\\u00e4"])
def test_healed_afterwards(kafka_broker, kafka_topic, name):
    assert kafka_broker.bootstrap == seen[0]
    for address in kafka_broker.bootstrap.split(","):
        host, port = address.split(":")
        socket.create_connection((host, int(port)), 5).close()

def test_cluster_of_its_own(kafka_cluster):
    kafka = kafka_cluster(3, auto_create=False)
    kafka.create_topic("t", partitions=3)
    assert [kafka.leader("t", index) for index in range(3)] == [1, 2, 3]
"""


def test_the_fixtures_serve_a_suite(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["kafka_fast.testing.plugin"]\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\nkafka_brokers = 2\nkafka_partitions = 3\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    root = Path(__file__).parents[3]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        # Where kafka_fast is installed, or was built beside the checkout, pytest would find the
        # plugin by itself, and then a second time by its name.
        env={"PYTHONPATH": str(root), "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "4 passed" in run.stdout
