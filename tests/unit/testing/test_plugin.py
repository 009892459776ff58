"""The pytest plugin, as a user's test suite sees it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NAME = "kafka_fast.testing.plugin"

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

def test_secure_broker(secure_broker):
    properties = secure_broker.client_properties("PLAIN", user="bob")
    assert properties["security.protocol"] == "SASL_SSL"
    assert properties["bootstrap.servers"] == secure_broker.bootstrap
    assert 'username="bob" password="bob-secret"' in properties["sasl.jaas.config"]
    secure_broker.allow("bob", "READ", topic="t")

def test_records(kafka_broker, kafka_topic):
    places = kafka_broker.produce(kafka_topic, ["a", b"b", None], keys=["1", b"2", None])
    records = kafka_broker.records(kafka_topic)
    assert sorted(r.value or b"" for r in records) == [b"", b"a", b"b"]
    assert len(set(places)) == 3
"""

SCOPES = """
import pytest

brokers, topics, clusters = [], [], []

@pytest.fixture(scope="SCOPE")
def everything(kafka_bootstrap, kafka_broker_SCOPE, kafka_topic_SCOPE, kafka_cluster_SCOPE):
    kafka_broker_SCOPE.produce(kafka_topic_SCOPE, ["once"])
    return kafka_broker_SCOPE, kafka_topic_SCOPE, kafka_cluster_SCOPE()

class TestScope:
    @pytest.mark.parametrize("number", [1, 2])
    def test_the_same(self, everything, kafka_broker, kafka_topic, number):
        broker, topic, cluster = everything
        brokers.append(broker); topics.append(topic); clusters.append(cluster)
        assert broker is kafka_broker
        assert [r.value for r in broker.records(topic)] == [b"once"]
        assert topic != kafka_topic
        assert len(set(map(id, brokers))) == len(set(topics)) == len(set(map(id, clusters))) == 1

class TestFaults:
    def test_they_stay(self, kafka_broker_SCOPE):
        kafka_broker_SCOPE.pause(1)

    def test_until_the_scope_ends_or_a_test_ends_them(self, kafka_broker_SCOPE, kafka_broker):
        rule = kafka_broker_SCOPE.on_cluster(lambda cluster: cluster.brokers[1].paused)
        assert rule

    def test_then_they_are_gone(self, kafka_broker_SCOPE):
        assert not kafka_broker_SCOPE.on_cluster(lambda cluster: cluster.brokers[1].paused)
"""

UNUSED = """
import sys

def test_nothing_was_imported():
    ours = {name for name in sys.modules if name.startswith("kafka_fast")}
    light = {"", "._error_codes", "._lazy", "._version", ".errors", ".testing", ".testing.plugin"}
    assert ours == {"kafka_fast" + name for name in light}

def test_a_fixture_may_have_one_of_our_names(request):
    assert not [name for name in request.fixturenames if name.startswith("kafka")]
"""


def run(
    folder: Path,
    suite: str,
    *options: str,
    conftest: str = "",
    installed: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a user's suite; `installed`: with the entry point of an installed package."""
    (folder / "test_user.py").write_text(suite)
    (folder / "conftest.py").write_text(conftest)
    (folder / "pytest.ini").write_text("[pytest]\nkafka_brokers = 2\nkafka_partitions = 3\n")
    path = [str(ROOT)]
    environment = {"PATH": ""}
    if installed:
        path.append(str(install(folder / "site")))
    else:
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_user.py"],
        cwd=folder,
        env={**environment, "PYTHONPATH": ":".join(path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def install(site: Path) -> Path:
    """Make a folder that says what an installed wheel would, with our own entry point."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    entry = re.search(r"^\[project.entry-points.pytest11\]\n(.*)$", project, re.MULTILINE)
    assert entry is not None
    info = site / "kafka_fast-9.9.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kafka_fast\nVersion: 9.9\n")
    lines = ["[pytest11]", entry[1].replace('"', "")]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return site


def test_the_fixtures_serve_a_suite(tmp_path: Path) -> None:
    done = run(tmp_path, SUITE, conftest=f'pytest_plugins = ["{NAME}"]\n')
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


@pytest.mark.parametrize("named", ["not at all", "in conftest.py", "on the command line"])
def test_an_installed_plugin_may_be_named_as_well(tmp_path: Path, named: str) -> None:
    """Regression: pytest refused to start, because it found one plugin under two names."""
    conftest = f'pytest_plugins = ["{NAME}"]\n' if named == "in conftest.py" else ""
    options = ["-p", NAME] if named == "on the command line" else []
    done = run(tmp_path, SUITE, *options, conftest=conftest, installed=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


def test_it_can_be_left_out(tmp_path: Path) -> None:
    done = run(tmp_path, SUITE, "-p", f"no:{NAME}", installed=True)
    assert "fixture 'kafka_broker' not found" in done.stdout


@pytest.mark.parametrize("scope", ["class", "module", "package", "session"])
def test_fixtures_of_every_scope(tmp_path: Path, scope: str) -> None:
    suite = SCOPES.replace("SCOPE", scope)
    done = run(tmp_path, suite, conftest=f'pytest_plugins = ["{NAME}"]\n')
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


def test_a_suite_that_uses_nothing_imports_nothing(tmp_path: Path) -> None:
    """Regression: every pytest run on the machine loaded the clients and their extensions."""
    done = run(tmp_path, UNUSED, installed=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
