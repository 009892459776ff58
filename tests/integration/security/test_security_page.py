"""docs/security.md: its recipes and programs, at real Kafka in place of the services they name."""

from __future__ import annotations

import itertools
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import Consumer, Producer, read_properties
from kafka_fast.config import producer_settings
from kafka_fast.testing._client_properties import write_properties_file
from kafka_fast.testing._kafka.secure_kafka import USERS, SecureKafka
from tests.documentation.pages import Block, blocks

PAGE = "docs/security.md"
BLOCKS = blocks(PAGE)
TIMEOUT = 20.0
USER, PASSWORD = "alice", USERS["alice"]

NO_SERVER_HERE = {"msk-iam.properties", "kerberos.properties"}
"""Recipes for services of which there is none here: test_kerberos.py and the tests of the mechanism
have the rest."""

_numbers = itertools.count()


def named(blocks_: list[Block], language: str) -> list[Any]:
    return [
        pytest.param(block, id=block.title or str(block.line))
        for block in blocks_
        if block.language == language
    ]


@pytest.fixture
def topic(secure_kafka: SecureKafka) -> str:
    name = f"security-page-{next(_numbers)}"
    secure_kafka.create_topic(name)
    return name


@pytest.fixture
def folder(secure_kafka: SecureKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user who has downloaded what the page names; the CA is the system's, too."""
    certificate = secure_kafka.client_certificate(USER)
    for authority in ("ca.pem", "ca.crt"):
        shutil.copy(secure_kafka.authority.certificate, tmp_path / authority)
    shutil.copy(certificate.chain, tmp_path / "service.cert")
    shutil.copy(certificate.key, tmp_path / "service.key")
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    theirs = secure_kafka.client_properties("SASL_SSL", "PLAIN")
    write_properties_file(tmp_path / "client.properties", theirs)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(secure_kafka.authority.certificate))
    return tmp_path


def localized(text: str, kafka: SecureKafka, listener: str, folder: Path) -> str:
    """Return a block with the broker's address, and the user's secrets, in their places."""
    port = kafka.bootstrap_of(listener).rpartition(":")[2]
    text = re.sub(r"[\w.-]+\.(?:com|cloud|net):\d+|CLUSTER-[\w-]+:\d+", f"localhost:{port}", text)
    text = text.replace("/run/secrets/kafka", str(folder / "password"))
    text = text.replace("https://login.example.com/oauth2/token", kafka.provider.token_url)
    text = re.sub(r"(?m)^(sasl\.username)=.*$", rf"\1={USER}", text)
    text = re.sub(r"(?m)^(sasl\.password)=.*$", rf"\1={PASSWORD}", text)
    text = re.sub(r"(client\.id)=.*", rf"\1={USER}", text)
    return re.sub(r"(client\.secret)=.*", rf"\1={PASSWORD}", text)


@pytest.mark.parametrize("block", named(BLOCKS, "properties"))
def test_a_recipe(secure_kafka: SecureKafka, topic: str, folder: Path, block: Block) -> None:
    file = folder / block.title
    listener = "MTLS" if "security.protocol=SSL" in block.text else "SASL_SSL"
    if block.title in NO_SERVER_HERE:
        file.write_text(block.text)
        settings = producer_settings(read_properties(file))
        assert settings.sasl is not None
        assert settings.tls is not None
        return
    file.write_text(localized(block.text, secure_kafka, listener, folder))
    with Producer(read_properties(file)) as producer:
        assert producer.send(topic, b"x").result(TIMEOUT).offset == 0


@pytest.mark.parametrize("block", named(BLOCKS, "python"))
def test_a_program(secure_kafka: SecureKafka, topic: str, folder: Path, block: Block) -> None:
    listener = "SASL_SSL" if "SASL" in block.text or "read_properties" in block.text else "SSL"
    program = folder / "program.py"
    program.write_text(localized(block.text, secure_kafka, listener, folder))

    class Provider:
        """What a user may have."""

        @staticmethod
        def token() -> tuple[str, float]:
            return secure_kafka.provider.token(USER), 4e9

    made = runpy.run_path(str(program), {"my_identity_provider": Provider})
    for client in (made.get("producer"), made.get("consumer")):
        if isinstance(client, Producer):
            with client:
                assert client.send(topic, b"x").result(TIMEOUT).offset == 0
        elif isinstance(client, Consumer):
            with client:
                assert len(client.partitions_for(topic)) == 1
    assert {"producer", "consumer"} & made.keys()


@pytest.mark.parametrize("block", named(BLOCKS, "sh"))
def test_a_command(secure_kafka: SecureKafka, folder: Path, block: Block) -> None:
    command = block.text.replace("kafka-fast", f"{sys.executable} -m kafka_fast").split()
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
