"""The log says why a connection ends: clients only see that it does."""

from __future__ import annotations

import struct

import pytest

from kafka_fast.protocol import frame as framing
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.apis.log_dirs.describe_log_dirs import DescribeLogDirsRequest
from kafka_fast.protocol.apis.security.sasl_authenticate import SaslAuthenticateRequest
from kafka_fast.protocol.apis.security.sasl_handshake import SaslHandshakeRequest
from kafka_fast.testing.broker.security import Security
from kafka_fast.testing.broker.versions import KAFKA_2_1, METADATA
from tests.unit.testing.broker.memory import Client, World, batch, produce_request

METADATA_12 = framing.encode_request(MetadataRequest(topics=None), 12, 1, "app")


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request(api: int, version: int) -> bytes:
    return framed(struct.pack(">hhih", api, version, 77, 3) + b"app\0")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            framing.encode_request(DescribeLogDirsRequest(topics=None), 4, 1, "app"),
            "of client 'app': DescribeLogDirs v4 is not offered here",
        ),
        (
            request(METADATA, 99),
            "of client 'app': Metadata v99 is not offered here",
        ),
        (request(999, 0), "API 999 v0 is not offered here"),
        (
            request(METADATA, 4),
            "of client 'app': MetadataRequest v4: a count that cannot be read at byte 0 (topics)",
        ),
        (
            framing.encode_request(DescribeLogDirsRequest(topics=None), 4, 1, "x" * 5000),
            f" of client '{'x' * 100}': DescribeLogDirs v4",
        ),
        (framed(METADATA_12[4:-2]), "of client 'app': MetadataRequest v12: "),
        (framed(b"ab"), "ends a connection: "),
        (b"\0\0\0\0", "frame of 0 bytes"),
        (b"GET / HTTP/1.1\r\n\r\n", "frame of 1195725856 bytes"),
        (
            framing.encode_request(produce_request("t", batch(), acks=0), 12, 1, "app"),
            "of client 'app': a Produce request with acks=0 met UNKNOWN_TOPIC_OR_PARTITION",
        ),
    ],
)
def test_a_request(data: bytes, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    client = World(auto_create=False).connect()
    client.send_bytes(data)
    assert client.closed
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "node 1 ends a connection" in record.getMessage()
    assert reason in record.getMessage()


def test_a_version_that_a_rule_hides(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.cluster.faults.limit_versions(KAFKA_2_1)
    client = world.connect()
    client.send_bytes(METADATA_12)
    assert client.closed
    assert "Metadata v12 is not offered here" in caplog.text


@pytest.mark.parametrize("rule", ["drop", "cut"])
def test_a_fault_rule(rule: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    world = World()
    if rule == "drop":
        world.cluster.faults.drop(api=METADATA, close=True)
    else:
        world.cluster.faults.cut(3, api=METADATA)
    client = world.connect()
    client.send_bytes(METADATA_12)
    assert client.closed
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "node 1 ends a connection" in caplog.text
    assert "a fault rule" in caplog.text


def test_one_connection_too_many(caplog: pytest.LogCaptureFixture) -> None:
    world = World(max_connections=1)
    world.connect()
    assert not world.cluster.brokers[1].connect(99)
    assert "node 1 ends a connection: there are 1 already" in caplog.text


class TestSasl:
    @pytest.fixture
    def client(self) -> Client:
        return World(security=Security(users={"alice": "secret"})).connect()

    def told(self, client: Client, caplog: pytest.LogCaptureFixture) -> str:
        client.world.run_until(10.0)
        assert client.closed
        (record,) = caplog.records
        assert record.levelname == "WARNING"
        assert "secret" not in caplog.text
        return record.getMessage()

    def test_a_request_before_authentication(
        self, client: Client, caplog: pytest.LogCaptureFixture
    ) -> None:
        client.send_bytes(METADATA_12)
        assert self.told(client, caplog) == (
            "node 1 ends a connection of client 'app': Metadata before authentication"
        )

    def test_a_mechanism_that_is_not_there(
        self, client: Client, caplog: pytest.LogCaptureFixture
    ) -> None:
        client.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
        assert self.told(client, caplog) == (
            "node 1 ends a connection of client 'test': UNSUPPORTED_SASL_MECHANISM"
        )

    @pytest.mark.parametrize("version", [0, 1])
    def test_a_wrong_password(
        self, client: Client, version: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), version)
        token = b"\0alice\0\0\0\0\x06my secret"
        if version == 0:
            client.send_bytes(framed(token))
            expected = "node 1 ends a connection: the client could not authenticate"
        else:
            client.send(SaslAuthenticateRequest(auth_bytes=token), 2)
            expected = "node 1 ends a connection of client 'test': SASL_AUTHENTICATION_FAILED: "
        assert expected in self.told(client, caplog)
