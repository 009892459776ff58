"""The harness of the real-broker tests: it must do what it says, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_fast.testing._kafka import broker_jars, java_process
from kafka_fast.testing._kafka.broker_jars import RealKafkaError, ToolMissingError
from kafka_fast.testing._kafka.java_process import JavaProcess, PortPool, Reaper
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.testing.real_kafka import main
from tests.support.jars import schemas
from tests.waiting import eventually

# A stand-in for a server: says that it is ready, then waits forever.
SERVER = [sys.executable, "-u", "-c", "import time; print('serving'); time.sleep(1000)"]


def alive(pid: int) -> bool:
    """Say whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def server(tmp_path: Path, reaper: Reaper, command: list[str] = SERVER) -> JavaProcess:
    """Return a stand-in server that is not started."""
    return JavaProcess(
        "server",
        command,
        cwd=tmp_path,
        log_path=tmp_path / "log",
        ready="serving",
        reaper=reaper,
    )


class TestJars:
    def test_unknown_version_names_the_known_ones(self) -> None:
        with pytest.raises(RealKafkaError, match=r"0\.8\.2; known: 4\.4\.0, 3\.9\.2"):
            RealKafka(version="0.8.2")

    def test_missing_java_and_maven_are_named(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("KAFKA_FAST_BROKER_DIR", str(tmp_path / "cache"))
        monkeypatch.delenv("JAVA_HOME", raising=False)
        with pytest.raises(ToolMissingError, match="java is not on the PATH: install a Java"):
            RealKafka().start()
        with pytest.raises(ToolMissingError, match="mvn is not on the PATH"):
            broker_jars.class_path()
        assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]

    @pytest.mark.parametrize("said", ['openjdk version "11.0.2"', "no Java at all"])
    def test_old_java_is_refused(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str
    ) -> None:
        java = tmp_path / "java"
        java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
        java.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.delenv("JAVA_HOME", raising=False)
        with pytest.raises(ToolMissingError, match="is not Java 17 or later"):
            broker_jars.find_tool("java")

    def test_failed_fetch_leaves_no_half_folder(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        maven = tmp_path / "mvn"
        maven.write_text("#!/bin/sh\necho BUILD FAILURE: no route; exit 1\n")
        maven.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setenv("KAFKA_FAST_BROKER_DIR", str(tmp_path / "cache"))
        monkeypatch.delenv("JAVA_HOME", raising=False)
        with pytest.raises(RealKafkaError, match="no route"):
            broker_jars.class_path()
        assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]

    @pytest.mark.broker
    def test_schemas_are_apache_definitions(self, real_kafka: RealKafka) -> None:
        folder = schemas()
        assert '"apiKey": 0' in (folder / "ProduceRequest.json").read_text()
        assert len(list(folder.glob("*.json"))) > 150


class TestPorts:
    def test_pools_never_share_a_port(self) -> None:
        first, second = PortPool(), PortPool()
        ports = [pool.take_port() for pool in (first, second) for _ in range(20)]
        assert len(set(ports)) == 40
        first.close()
        second.close()

    def test_a_port_that_is_in_use_is_not_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            monkeypatch.setattr(java_process, "PORT_RANGE", range(port, port + 1))
            with pytest.raises(RealKafkaError, match="no free port"):
                PortPool().take_port()


class TestProcesses:
    def test_start_stop_kill_pause(self, tmp_path: Path) -> None:
        process = server(tmp_path, reaper := Reaper(None))
        process.start()
        first = process.pid
        process.pause()
        eventually(lambda: " T " in Path(f"/proc/{first}/stat").read_text())
        process.stop()  # a stopped process must be resumed to see the signal
        assert not process.running
        assert not alive(first)
        process.start()
        assert process.pid != first
        process.kill()
        with pytest.raises(RealKafkaError, match="does not run"):
            process.pid  # noqa: B018 - the property raises
        reaper.close()

    def test_end_during_start_shows_the_log(self, tmp_path: Path) -> None:
        command = [sys.executable, "-c", "raise SystemExit('bad listener')"]
        process = server(tmp_path, reaper := Reaper(None), command)
        with pytest.raises(RealKafkaError, match=r"(?s)ended while it started.*bad listener"):
            process.start()
        reaper.close()

    def test_silent_start_times_out(self, tmp_path: Path) -> None:
        command = [sys.executable, "-c", "import time; time.sleep(1000)"]
        process = server(tmp_path, reaper := Reaper(None), command)
        with pytest.raises(RealKafkaError, match="not ready after 0 s"):
            process.start(timeout=0.1)
        process.kill()
        reaper.close()

    def test_ready_line_of_an_earlier_start_does_not_count(self, tmp_path: Path) -> None:
        (tmp_path / "log").write_text("serving\n")
        command = [sys.executable, "-c", "raise SystemExit('second start failed')"]
        process = server(tmp_path, reaper := Reaper(None), command)
        with pytest.raises(RealKafkaError, match="second start failed"):
            process.start()
        reaper.close()

    def test_nothing_survives_a_killed_parent(self, tmp_path: Path) -> None:
        data = tmp_path / "data"
        data.mkdir()
        script = f"""
import pathlib, sys, time
from kafka_fast.testing._kafka.java_process import JavaProcess, Reaper
folder = pathlib.Path({str(data)!r})
process = JavaProcess("server", {SERVER!r}, cwd=folder, log_path=folder / "log", ready="serving",
                      reaper=Reaper(folder))
process.start()
print(process.pid, flush=True)
time.sleep(1000)
"""
        parent = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
        )
        assert parent.stdout is not None
        with parent.stdout:
            child = int(parent.stdout.readline())
        assert alive(child)
        parent.kill()
        parent.wait()
        eventually(lambda: not alive(child))
        eventually(lambda: not data.exists())


class TestOneNode:
    def test_topics_come_and_go(self, real_kafka: RealKafka) -> None:
        real_kafka.create_topic(
            "harness-topic", partitions=3, configs={"message.timestamp.type": "LogAppendTime"}
        )
        assert set(real_kafka.partitions("harness-topic")) == {0, 1, 2}
        assert real_kafka.leader("harness-topic", 2) == 1
        with pytest.raises(RealKafkaError, match="harness-topic"):
            real_kafka.create_topic("harness-topic")
        real_kafka.delete_topic("harness-topic")
        assert real_kafka.partitions("harness-topic") == {}

    def test_bad_configuration_is_the_brokers_word(self, real_kafka: RealKafka) -> None:
        with pytest.raises(RealKafkaError, match="no\\.such\\.option"):
            real_kafka.create_topic("harness-bad", configs={"no.such.option": "1"})

    @pytest.mark.broker
    def test_command_line_runs_until_sigterm(self) -> None:
        command = [sys.executable, "-m", "kafka_fast.testing.real_kafka", "start"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            with process.stdout:
                host, port = process.stdout.readline().strip().split(":")
            with socket.create_connection((host, int(port))):
                pass
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))

    @pytest.mark.broker
    def test_broken_override_fails_with_the_log(self) -> None:
        with pytest.raises(RealKafkaError, match=r"log\.segment\.bytes"):
            RealKafka(overrides={"log.segment.bytes": "x"}).start()

    @pytest.mark.broker
    def test_fetch_prints_the_folder(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["fetch"]) == 0
        assert Path(capsys.readouterr().out.strip()).joinpath("log4j2.yaml").exists()


class TestThreeNodes:
    def test_killed_leader_is_replaced_and_returns(self, real_kafka_cluster: RealKafka) -> None:
        kafka = real_kafka_cluster
        kafka.create_topic("harness-failover", partitions=2)
        before = kafka.leader("harness-failover", 0)
        kafka.node(before).kill()
        after = kafka.leader("harness-failover", 0)
        assert after != before
        kafka.node(before).start()
        kafka.wait_isr("harness-failover")
        assert set(kafka.partitions("harness-failover")[0].isr) == {1, 2, 3}

    def test_paused_leader_is_replaced(self, real_kafka_cluster: RealKafka) -> None:
        kafka = real_kafka_cluster
        kafka.create_topic("harness-pause")
        before = kafka.leader("harness-pause", 0)
        kafka.node(before).pause()
        assert kafka.leader("harness-pause", 0) != before
        kafka.node(before).resume()
        kafka.wait_isr("harness-pause")

    def test_all_nodes_share_the_cluster_id(self, real_kafka_cluster: RealKafka) -> None:
        if not real_kafka_cluster.cluster_id:
            pytest.skip("with a ZooKeeper it is not ours to choose")
        ids = set()
        for node in real_kafka_cluster.nodes:
            properties = (node.data_dir / "meta.properties").read_text()
            ids.add(properties.partition("cluster.id=")[2].split()[0])
            assert os.access(node.log_path, os.R_OK)
        assert ids == {real_kafka_cluster.cluster_id}


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.parametrize("version", ["3.9.2", "2.8.2", "2.1.1"])
def test_old_versions_start(version: str) -> None:
    overrides = {"log.message.format.version": "0.10.0"} if version.startswith("2.") else {}
    with RealKafka(version=version, overrides=overrides) as kafka:
        kafka.create_topic("t", partitions=2)
        assert kafka.leader("t", 1) == 1
