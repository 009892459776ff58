"""Write the hostile answers: a file each in hostile/frame/, one line each in its expected.txt.

Run from the root of the project when a case is added, as make_hostile_records.py. A file is what
stands on the wire, length field included; its correlation ids are those of the requests wherever
the case is not about them. The letters and numbers are the kind of attack:

    F1-F3 length field   F8 another protocol   F12 varints          F15 zero-length everything
    F4 cut off           F9 string lengths     F13 tagged fields    F16 unknown error codes
    F5 bytes left over   F10 UTF-8             F14 nested counts    F17 ApiVersions
    F6 correlation id    F11 array counts      F7 to acks=0         R15 partitions of a Fetch answer
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from kafka_fast.protocol import frame as framing
from kafka_fast.protocol.apis import response_class
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersion, ApiVersionsResponse
from kafka_fast.protocol.apis.records.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)

FOLDER = Path(__file__).parent / "hostile" / "frame"
MIB = 1 << 20

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, API_VERSIONS = 11, 12, 13, 14, 18
OFFSET_FOR_LEADER_EPOCH, CONSUMER_HEARTBEAT = 23, 68
# Any answer may be cut short or have bytes left over: API key -> version.
EVERY = {
    FETCH: 12,
    LIST_OFFSETS: 7,
    METADATA: 8,
    OFFSET_COMMIT: 6,
    OFFSET_FETCH: 5,
    FIND_COORDINATOR: 2,
    JOIN_GROUP: 5,
    HEARTBEAT: 3,
    LEAVE_GROUP: 3,
    SYNC_GROUP: 3,
    OFFSET_FOR_LEADER_EPOCH: 3,
    CONSUMER_HEARTBEAT: 0,
}


class Case(NamedTuple):
    """What stands on the wire, and who says what of it."""

    name: str
    data: bytes
    api: int
    version: int
    layer: str
    """`link` knows frames, `answer` what was asked for, `message` the schema."""
    expected: str


def frame(body: bytes, length: int | None = None) -> bytes:
    """Return a frame: length, correlation id, and this."""
    return struct.pack(">ii", 4 + len(body) if length is None else length, 0) + body


def text(data: bytes, length: int | None = None) -> bytes:
    return struct.pack(">h", len(data) if length is None else length) + data


def linked(name: str, data: bytes, expected: str, api: int = METADATA) -> Case:
    return Case(name, data, api, EVERY[api], "link", expected)


def message(name: str, api: int, version: int, body: bytes, expected: str) -> Case:
    return Case(name, frame(body), api, version, "message", expected)


def whole(api: int, version: int) -> bytes:
    """Return the body of an answer with default values, its header's tags included."""
    return framing.encode_response(response_class(api)(), version, 0)[8:]


BAD = "MalformedError"


def said(api: int, version: int) -> str:
    """Return how the error of a decoder begins, or of the connection that the answer came over."""
    name = response_class(api).__name__.removesuffix("Response")
    return f"{BAD} {name}(Response v{version}:| v{version} with) "


def every() -> list[Case]:
    cases = []
    for api, version in EVERY.items():
        label = said(api, version)
        name = response_class(api).__name__.removesuffix("Response")
        body = whole(api, version)
        cases += [
            message(f"F5-{name}-left-over", api, version, body + b"\0", label + ".*left over"),
            message(f"F15-{name}-no-body", api, version, b"", BAD),
            message(f"F4-{name}-short", api, version, body[:-1], label),
        ]
    return cases


def coordinator(host: bytes, tail: bytes = struct.pack(">i", 9092)) -> bytes:
    """Return a FindCoordinator v0 answer with this host field."""
    return struct.pack(">hi", 0, 1) + host + tail


def tagged(tags: str) -> bytes:
    """Return a FindCoordinator v3 answer with these tags at its end."""
    return (
        bytes.fromhex("00" + "00000000" + "0000" + "00" + "00000001")
        + b"\x0a127.0.0.1"
        + struct.pack(">i", 1)
        + bytes.fromhex(tags)
    )


def refused(why: bytes) -> bytes:
    """Return a ConsumerGroupHeartbeat v0 answer with an error that nobody knows, and this text."""
    head = struct.pack(">bih", 0, 0, 9999) + bytes([1 + len(why)]) + why
    return head + b"\0" + struct.pack(">iib", 0, 0, -1) + b"\0"


HOST = said(FIND_COORDINATOR, 0)
TAGS = said(FIND_COORDINATOR, 3)
TOPICS = said(LIST_OFFSETS, 1)


def metadata(partitions: bytes) -> bytes:
    """Return a Metadata v1 answer of no broker and one topic with these partitions."""
    return struct.pack(">iiih", 0, 1, 1, 0) + text(b"t") + b"\0" + partitions


FIELDS = [
    message(
        "F9-length-minus-1",
        FIND_COORDINATOR,
        0,
        coordinator(text(b"", -1)),
        f"{HOST}a null.*byte 10 .host",
    ),
    message(
        "F9-length-minus-2",
        FIND_COORDINATOR,
        0,
        coordinator(text(b"", -2)),
        f"{HOST}a string of length -2 at byte 10 .host",
    ),
    message(
        "F9-past-end", FIND_COORDINATOR, 0, coordinator(text(b"", 999)), f"{HOST}.*999 in 4 bytes"
    ),
    message("F10-host", FIND_COORDINATOR, 0, coordinator(text(b"\xff\xfe")), f"{HOST}.*not UTF-8"),
    message(
        "F10-topic",
        METADATA,
        1,
        struct.pack(">iiih", 0, 1, 1, 0) + text(b"\xc3") + bytes(5),
        f"{said(METADATA, 1)}.*not UTF-8.*topics.0..name",
    ),
    message("F10-error-message", CONSUMER_HEARTBEAT, 0, refused(b"no \xff\xfe, \xc3"), "ok"),
    message("F11-null", LIST_OFFSETS, 1, struct.pack(">i", -1), f"{TOPICS}a null.*topics"),
    message(
        "F11-negative", LIST_OFFSETS, 1, struct.pack(">i", -2), f"{TOPICS}an array of -2 elements"
    ),
    message(
        "F11-huge",
        LIST_OFFSETS,
        1,
        struct.pack(">i", 2**31 - 1),
        f"{TOPICS}an array of 2147483647 el",
    ),
    message(
        "F11-too-many",
        LIST_OFFSETS,
        1,
        struct.pack(">i", 3) + bytes(8),
        f"{TOPICS}an array of 3 elem",
    ),
    message("F12-six-bytes", FIND_COORDINATOR, 3, b"\xff" * 6, BAD),
    message("F12-at-the-end", FIND_COORDINATOR, 3, b"\xff", BAD),
    message("F12-overlong", FIND_COORDINATOR, 3, tagged("8080808000"), "ok"),
    message("F12-33-bits", FIND_COORDINATOR, 3, tagged("8080808010"), BAD),
    message("F13-unsorted", FIND_COORDINATOR, 3, tagged("02 0500 0300"), f"{TAGS}tag 3 behind"),
    message("F13-repeated", FIND_COORDINATOR, 3, tagged("02 0500 0500"), f"{TAGS}tag 5 behind"),
    message(
        "F13-past-end", FIND_COORDINATOR, 3, tagged("01 05ff01"), f"{TAGS}too few bytes for tag 5"
    ),
    message("F13-count", FIND_COORDINATOR, 3, tagged("ffffffff0f"), f"{TAGS}.*tagged fields"),
    message("F13-unknown", FIND_COORDINATOR, 3, tagged("02 0500 6303616263"), "ok"),
    message(
        "F14-counts-in-counts",
        METADATA,
        1,
        metadata(struct.pack(">ihiiii", 1, 0, 0, 0, MIB, 0)),
        f"{said(METADATA, 1)}an array of 1048576 elements.*topics",
    ),
    message("F15-no-brokers", METADATA, 1, struct.pack(">iii", 0, -1, 0), "ok"),
    message("F16-Heartbeat", HEARTBEAT, 0, struct.pack(">h", 9999), "ok"),
    message("F16-FindCoordinator", FIND_COORDINATOR, 0, struct.pack(">hihi", 9999, -1, 0, 0), "ok"),
    message("F16-JoinGroup", JOIN_GROUP, 0, struct.pack(">hi", 9999, -1) + bytes(10), "ok"),
    message(
        "F16-Metadata-topic",
        METADATA,
        1,
        struct.pack(">iiih", 0, 1, 1, 9999) + text(b"t") + bytes(5),
        "ok",
    ),
]

LINKS = [
    linked("F1-length-minus-1", frame(bytes(8), -1), "ProtocolError a frame of -1 bytes"),
    linked("F1-length-min", frame(bytes(8), -(2**31)), "ProtocolError a frame of -2147483648"),
    linked("F2-length-max", frame(bytes(8), 2**31 - 1), "ProtocolError a frame of 2147483647"),
    linked("F2-above-the-limit", frame(bytes(8), 100 * MIB + 1), "ProtocolError of 104857601"),
    linked("F2-Fetch", frame(bytes(8), 100 * MIB + 1), "ProtocolError of 104857601", FETCH),
    linked("F3-length-0", frame(b"", 0), "ProtocolError a frame of 0 bytes"),
    linked("F3-length-3", frame(b"", 3), "ProtocolError a frame of 3 bytes"),
    linked("F4-silence", frame(bytes(20), 999), "KafkaTimeoutError request.timeout.ms"),
    linked("F4-silence-in-the-length", b"\0\0", "KafkaTimeoutError request.timeout.ms"),
    linked("F4-Fetch-silence", frame(bytes(20), 999), "KafkaTimeoutError request.timeout", FETCH),
    linked("F6-other-id", b"\0\0\0\x0c\x7f\xff\xff\xff" + bytes(8), "ProtocolError in flight"),
    linked(
        "F6-answered-twice",
        frame(whole(METADATA, EVERY[METADATA])) * 2,
        "ProtocolError nothing in flight",
    ),
    linked("F6-Fetch-other-id", b"\0\0\0\x0c\x7f\xff\xff\xff" + bytes(8), "ProtocolError", FETCH),
    Case("F7-acks-zero", frame(whole(PRODUCE, 12)), PRODUCE, 12, "link", "ProtocolError in flight"),
    linked("F8-http", b"HTTP/1.1 400 Bad Request\r\n\r\n", "ProtocolError an HTTP server"),
    linked("F8-tls-alert", bytes.fromhex("15030300020246"), "ProtocolError a TLS listener"),
    linked("F8-tls-hello", b"\x16\x03\x03\x00\x30" + bytes(48), "ProtocolError a TLS listener"),
    linked("F8-ssh", b"SSH-2.0-OpenSSH_9.2\r\n", "ProtocolError an SSH server"),
]


def fetch_case(
    name: str,
    version: int,
    parts: list[tuple[str, list[int]]],
    expected: str,
    topic_id: bytes = bytes(16),
) -> Case:
    """Return a Fetch answer that names these partitions."""
    body = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=topic,
                topic_id=topic_id,
                partitions=[
                    PartitionData(
                        partition_index=number, high_watermark=0, aborted_transactions=None
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in parts
        ]
    )
    data = framing.encode_response(body, version, 0)
    return Case(f"{name}-v{version}", data, FETCH, version, "answer", expected)


ASKED_FOR_NOT = "which was not asked for"
FETCHES = [
    fetch_case(name, version, parts, f"ProtocolError answered Fetch v{version} {misfit}")
    for version in (4, 12)
    for name, parts, misfit in (
        ("R15-partition-twice", [("t", [0, 1, 1])], "with t-1 twice"),
        ("R15-partition-missing", [("t", [1])], "without t-0"),
        ("R15-nothing", [], "without t-"),
        ("R15-partition-not-asked-for", [("t", [0, 1, 7])], f"with t-7, {ASKED_FOR_NOT}"),
        ("R15-topic-not-asked-for", [("t", [0, 1]), ("u", [0])], f"with u-0, {ASKED_FOR_NOT}"),
        ("R15-topic-without-name", [("", [0, 1])], f"with partition 0 .*, {ASKED_FOR_NOT}"),
    )
] + [
    fetch_case("R15-nothing", 13, [], "ProtocolError answered Fetch v13 without t-"),
    fetch_case(
        "R15-topic-without-id",
        13,
        [("", [0, 1])],
        f"ProtocolError answered Fetch v13 with partition 0 .* of id 0000.*, {ASKED_FOR_NOT}",
    ),
    fetch_case(
        "R15-topic-not-asked-for",
        13,
        [("", [0, 1])],
        f"ProtocolError answered Fetch v13 with partition 0 .* of id 5a5a.*, {ASKED_FOR_NOT}",
        topic_id=b"\x5a" * 16,
    ),
]


def versions(apis: list[tuple[int, int, int]], error: int = 0) -> bytes:
    keys = [ApiVersion(api_key=api, min_version=low, max_version=high) for api, low, high in apis]
    version = 0 if error == 35 else 5
    return framing.encode_response(ApiVersionsResponse(error_code=error, api_keys=keys), version, 0)


def negotiated(name: str, data: bytes, expected: str) -> Case:
    return Case(name, data, API_VERSIONS, 5, "message", expected)


SOUND = [(FETCH, 4, 12), (LIST_OFFSETS, 1, 7), (METADATA, 0, 12), (API_VERSIONS, 0, 4)]
NEGOTIATIONS = [
    negotiated("F17-min-above-max", versions([*SOUND, (23, 9, 2)]), "ok"),
    negotiated("F17-negative", versions([*SOUND, (23, -5, -1), (-7, 0, 1)]), "ok"),
    negotiated("F17-key-repeated", versions([*SOUND, (FETCH, 4, 11)]), "ok"),
    negotiated("F17-no-Fetch", versions(SOUND[1:]), "ok"),
    negotiated("F17-no-Metadata", versions([SOUND[0], SOUND[1], SOUND[3]]), "ok"),
    negotiated("F17-empty", versions([]), "ProtocolError names no API at all"),
    negotiated(
        "F17-downgrade-loop", versions([(API_VERSIONS, 0, 4)], 35), "UnsupportedVersionError"
    ),
    negotiated("F17-refused-without-a-list", versions([], 35), "UnsupportedVersionError"),
    negotiated("F17-cut", frame(versions(SOUND)[8:20]), said(API_VERSIONS, 5)),
    negotiated("F17-unknown-error", versions([], 9999), "UnknownBrokerError 9999"),
]

CASES = [*every(), *FIELDS, *LINKS, *FETCHES, *NEGOTIATIONS]

FOLDER.mkdir(parents=True, exist_ok=True)
for old in FOLDER.glob("*.bin"):
    old.unlink()
lines = [
    "# file, API key, its version, who refuses it (link, answer or message), then `ok` or the",
    "# error's class and a pattern of its message",
]
for case in CASES:
    (FOLDER / f"{case.name}.bin").write_bytes(case.data)
    lines.append(f"{case.name} {case.api} {case.version} {case.layer} {case.expected}")
(FOLDER / "expected.txt").write_text("\n".join(lines) + "\n")
