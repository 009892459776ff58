"""The examples of docs/protocol.md run as they stand there, and it names all APIs."""

from __future__ import annotations

import re
from pathlib import Path

from kafka_fast.protocol import apis, frame, schema
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersion, ApiVersionsResponse
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse

PAGE = Path(__file__).parents[3] / "docs" / "protocol.md"


def test_every_api_is_named() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = {apis.api_name(key) for key in apis.api_keys()}
    assert len(names) > 30
    assert {name for name in names if not re.search(rf"\b{name}\b", page)} == set()


class Socket:
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def sendall(self, data: bytes) -> None:
        """Take bytes."""
        self.sent.append(data)


def test_the_examples_run():
    sock = Socket()
    names = {
        "sock": sock,
        "received": frame.encode_response(MetadataResponse(), 12, 1)[4:],
        "asked": 5,
        "answer": ApiVersionsResponse(
            error_code=35, api_keys=[ApiVersion(api_key=3, min_version=0, max_version=13)]
        ),
        **vars(schema),
    }
    messages, frames, versions, codes, table = re.findall(
        r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL
    )
    client, broker = frames.split("# broker\n")
    exec(messages + client, names)
    assert frame.decode_request(sock.sent[0][4:])[1] == names["request"]
    names["received"] = sock.sent[0][4:]
    exec(broker, names)
    answer = frame.decode_response(MetadataResponse, sock.sent[1][4:], 12)
    assert answer == (1, MetadataResponse())
    exec(versions + codes + table, names)
    assert names["lower"] == 0
    assert names["shared"].version(MetadataRequest) == 13
    assert names["error"].name == "NOT_LEADER_OR_FOLLOWER"
    assert names["MetadataRequest"](topics=None).encode(4) == b"\xff\xff\xff\xff\x01"
