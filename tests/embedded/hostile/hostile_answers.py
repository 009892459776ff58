"""The hostile answers of test_causes: what is said in the place of an answer, and to which call.

Case ── spoil ──► an embedded broker, or a port where something else listens
     ── call ───► the user's call that waits in vain
     ── says ───► what its exception has to say
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kafka_fast.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaStorageError,
    LeaderNotAvailable,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    UnknownTopicOrPartition,
)
from kafka_fast.protocol.apis import response_class
from kafka_fast.protocol.apis.records.fetch import FetchableTopicResponse, PartitionData
from kafka_fast.protocol.apis.records.produce import PartitionProduceResponse, TopicProduceResponse
from kafka_fast.testing.broker import versions as api
from kafka_fast.testing.broker.handlers import OFFERED
from kafka_fast.testing.broker.serving.server import EmbeddedKafka

HUGE = 2**31 - 1
MIB = 1 << 20
HUGE_ASSIGNMENT = bytes.fromhex("00007fffffff")
NAMES = {key: response_class(key).__name__.removesuffix("Response") for key in OFFERED}
NODE = r"127\.0\.0\.1:\d+"

Spoil = Callable[[EmbeddedKafka], object]
Change = Callable[[bytes], bytes]
Listener = Callable[[socket.socket], None]
"""What a port does with a connection that it has accepted."""


class Case(NamedTuple):
    """One answer that is no good, or one port where no broker listens."""

    name: str
    call: str
    """A method of test_causes.Calls."""
    says: str
    """A regular expression that the text of the exception has to match."""
    spoil: Spoil | None = None
    listener: Listener | None = None

    def __str__(self) -> str:
        return f"{self.call}-{self.name}"


# ---- bytes that are not the message ----

# Call, API, version, and where in its body the first count stands, or the length of a string.
MESSAGES: tuple[tuple[str, int, int, int | None, str], ...] = (
    ("send", api.METADATA, 8, 4, ">i"),
    ("deliver", api.INIT_PRODUCER_ID, 1, None, ""),
    ("deliver", api.PRODUCE, 8, 0, ">i"),
    ("committed", api.FIND_COORDINATOR, 0, 6, ">h"),
    ("poll_joining", api.JOIN_GROUP, 5, 10, ">h"),
    ("poll_joining", api.SYNC_GROUP, 3, 6, ">i"),
    ("poll_as_member", api.HEARTBEAT, 3, None, ""),
    ("poll_joining_848", api.CONSUMER_GROUP_HEARTBEAT, 0, None, ""),
    ("committed", api.OFFSET_FETCH, 5, 4, ">i"),
    ("commit", api.OFFSET_COMMIT, 6, 4, ">i"),
    ("end_offsets", api.LIST_OFFSETS, 4, 4, ">i"),
    ("poll", api.FETCH, 11, 10, ">i"),
    ("poll_validating", api.OFFSET_FOR_LEADER_EPOCH, 3, 4, ">i"),
)


def body(change: Change) -> Change:
    """Return what changes the body of a frame, behind the correlation id, and fits its length."""

    def changed(answer: bytes) -> bytes:
        made = answer[4:8] + change(answer[8:])
        return struct.pack(">i", len(made)) + made

    return changed


def garbled(key: int, version: int, change: Change) -> Spoil:
    """Return what has a broker speak this version of an API, and changes its answers."""

    def spoil(kafka: EmbeddedKafka) -> None:
        kafka.faults.limit_versions({**OFFERED, key: (version, version)})
        kafka.faults.garble(change, api=key)

    return spoil


def at(pos: int, number: int, layout: str) -> Change:
    """Return what puts this number into a body."""
    data = struct.pack(layout, number)
    return body(lambda whole: whole[:pos] + data + whole[pos + len(data) :])


def spoiled_messages() -> Iterator[Case]:
    """Yield the same faults for every API."""
    for call, key, version, pos, layout in MESSAGES:
        for kind, change, problem in (
            (
                "header-only",
                body(lambda _: b""),
                "too few bytes|a count .*cannot be read|a length that cannot be read",
            ),
            ("short", body(lambda whole: whole[:-1]), ""),
            ("left-over", body(lambda whole: whole + b"\0\0"), "2 bytes left over"),
        ):
            says = rf"{NODE} answered {NAMES[key]} v{version} with ({problem}).* at byte \d+ "
            yield Case(f"{NAMES[key]}-{kind}", call, says, garbled(key, version, change))
        for kind, number in (("negative", -2), ("huge", 2**15 - 1 if layout == ">h" else HUGE)):
            if pos is not None:
                says = (
                    rf"{NODE} answered {NAMES[key]} v{version} with .*{number} .*at byte {pos + 4} "
                )
                change = at(pos, number, layout)
                yield Case(f"{NAMES[key]}-{kind}", call, says, garbled(key, version, change))


def nested(whole: bytes) -> bytes:
    """Return a Metadata v8 body: one topic of which each array promises more than there is."""
    return struct.pack(">iihii", 0, 0, -1, 0, 1) + struct.pack(
        ">hh1sbihiiiiii", 0, 1, b"t", 0, 1, 0, 0, 0, 0, MIB, 0, 0
    )


MORE_MESSAGES = (
    Case(
        "Metadata-nested-counts",
        "send",
        rf"{NODE} answered Metadata v8 with an array of {MIB} elements .* at byte \d+ "
        r"\(topics\[0\]\.partitions\[0\]\.replica_nodes\)",
        garbled(api.METADATA, 8, body(nested)),
    ),
    Case(
        "Metadata-huge",
        "partitions_for",
        rf"{NODE} answered Metadata v8 with an array of {HUGE} elements in \d+ bytes at byte 8 ",
        garbled(api.METADATA, 8, at(4, HUGE, ">i")),
    ),
    Case(
        "Metadata-negative-string",
        "send",
        rf"no metadata of topic 't' after max.block.ms \(\d+\); last trouble: {NODE} answered "
        r"Metadata v8 with a string of length -2 at byte 16 \(brokers\[0\]\.host\)",
        garbled(api.METADATA, 8, at(12, -2, ">h")),
    ),
    Case(
        "Fetch-2^30-partitions",
        "poll",
        rf"{NODE} answered Fetch v11 with an array of {2**30} elements .*at byte \d+",
        garbled(api.FETCH, 11, at(17, 2**30, ">i")),
    ),
    Case(
        "ListOffsets-huge",
        "poll_positioning",
        rf"{NODE} answered ListOffsets v4 with an array of {HUGE} elements",
        garbled(api.LIST_OFFSETS, 4, at(4, HUGE, ">i")),
    ),
    Case(
        "OffsetFetch-negative",
        "position",
        rf"no position of t-0 within .*{NODE} answered OffsetFetch v5 with an array of -2 elements",
        garbled(api.OFFSET_FETCH, 5, at(4, -2, ">i")),
    ),
)


# ---- frames that are none, and other answers than Kafka's ----


def framed(change: Change, key: int = api.METADATA) -> Spoil:
    return lambda kafka: kafka.faults.garble(change, api=key)


def length(number: int) -> Change:
    return lambda answer: struct.pack(">i", number) + answer[4:]


FRAMES = [
    Case(f"frame-of-{number}", "send", rf"{NODE} sent .*: a frame of {number} bytes instead of an "
         "answer to Metadata", framed(length(number)))
    for number in (-1, -(2**31), HUGE, 100 * MIB + 1, 0, 3)
] + [
    Case(
        "Produce-frame-of-max",
        "deliver",
        rf"{NODE} sent .*: a frame of {HUGE} bytes instead of an answer to Produce",
        framed(length(HUGE), api.PRODUCE),
    ),
    Case(
        "Fetch-frame-of-max",
        "poll",
        rf"{NODE} sent .*: a frame of {HUGE} bytes instead of an answer to Fetch",
        framed(length(HUGE), api.FETCH),
    ),
    Case(
        "other-correlation-id",
        "send",
        rf"{NODE} sent an answer to nothing in flight \(correlation id {HUGE}\) instead of an "
        "answer to Metadata",
        framed(lambda answer: answer[:4] + struct.pack(">i", HUGE) + answer[8:]),
    ),
    Case(
        "Produce-other-correlation-id",
        "deliver",
        rf"{NODE} sent an answer to nothing in flight .* instead of an answer to Produce",
        framed(lambda answer: answer[:4] + struct.pack(">i", HUGE) + answer[8:], api.PRODUCE),
    ),
    Case(
        "half-an-answer",
        "send",
        rf"{NODE} did not answer Metadata v\d+ within request.timeout.ms \(\d+\)",
        framed(lambda answer: answer[: len(answer) // 2]),
    ),
    Case(
        "Produce-never-answered",
        "deliver",
        r"delivery.timeout.ms \(\d+\) passed after \d tr\w+ without an answer: .*did not answer "
        "Produce within request.timeout.ms",
        lambda kafka: kafka.faults.drop(applied=False, api=api.PRODUCE),
    ),
    Case(
        "hangs-up-on-Metadata",
        "send",
        rf"{NODE} closed the connection instead of an answer to Metadata v\d+",
        lambda kafka: kafka.faults.cut(0, api=api.METADATA),
    ),
    Case(
        "resets-on-Metadata",
        "partitions_for",
        rf"{NODE}: Connection reset by peer instead of an answer to Metadata v\d+",
        lambda kafka: kafka.faults.cut(0, reset=True, api=api.METADATA),
    ),
    Case(
        "hangs-up-on-Produce",
        "deliver",
        rf"{NODE} closed the connection instead of an answer to Produce",
        lambda kafka: kafka.faults.cut(0, api=api.PRODUCE),
    ),
    Case(
        "hangs-up-on-ListOffsets",
        "end_offsets",
        rf"{NODE} closed the connection instead of an answer to ListOffsets",
        lambda kafka: kafka.faults.cut(0, api=api.LIST_OFFSETS),
    ),
]  # fmt: skip


def answering(data: bytes) -> Listener:
    """Return a port that answers with these bytes, and hangs up."""

    def listen(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(data)

    return listen


def silent(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def closing(connection: socket.socket) -> None:
    connection.recv(4096)


def resetting(connection: socket.socket) -> None:
    connection.recv(4)  # and the rest is never read
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


HTTP = b"HTTP/1.1 400 Bad Request\r\n\r\n"
TLS_ALERT = bytes.fromhex("15030300020250")
"""What Kafka's own TLS listener says to a request in plain text: fatal, internal error."""

MINUS_TWO = b"\xff\xff\xff\xfe" * 2
TLS_HINT = r"instead of an answer to ApiVersions: a TLS listener\? security.protocol is PLAINTEXT"
PORTS = [
    Case(name, call, says, listener=listener)
    for call in ("send", "partitions_for")
    for name, says, listener in (
        ("http", f"{NODE} talks like an HTTP server", answering(HTTP)),
        ("tls-alert", f"{NODE} talks like a TLS listener", answering(TLS_ALERT)),
        ("ssh", f"{NODE} talks like an SSH server", answering(b"SSH-2.0-OpenSSH_9.2\r\n")),
        ("nonsense", f"{NODE} sent ff ff ff fe .* a frame of -2 bytes", answering(MINUS_TWO)),
        ("closing", f"{NODE} closed the connection {TLS_HINT}", closing),
        ("resetting", f"{NODE}: Connection reset by peer {TLS_HINT}", resetting),
        (
            "silent",
            rf"{NODE} has accepted the connection and not answered ApiVersions for [\d.]+ s",
            silent,
        ),
    )
] + [
    Case("http", "poll_positioning", "talks like an HTTP server", listener=answering(HTTP)),
    Case("http", "end_offsets", "talks like an HTTP server", listener=answering(HTTP)),
    Case("silent", "committed", "accepted the connection and not answered", listener=silent),
]  # fmt: skip


# ---- well formed, and no answer to what was asked ----


def scripted(key: int, script: Callable[[Any], object], version: int | None = None) -> Spoil:
    """Return what has a script change each answer of an API."""

    def spoil(kafka: EmbeddedKafka) -> None:
        if version is not None:
            kafka.faults.limit_versions({**OFFERED, key: (version, version)})
        kafka.faults.script(key, lambda response, node: script(response))

    return spoil


def failing(key: int, error: Any) -> Spoil:
    return lambda kafka: kafka.faults.error(key, error)


def unreachable_leader(response: Any) -> None:
    for topic in response.topics:
        for partition in topic.partitions:
            partition.leader_id = 77


def without_address(response: Any) -> None:
    for broker in response.brokers:
        broker.host, broker.port = "", 0


def foreign_partition(response: Any) -> None:
    topic = response.responses[0]
    if hasattr(topic, "partition_responses"):
        topic.partition_responses.append(PartitionProduceResponse(index=7))
    else:
        topic.partitions.append(PartitionData(partition_index=7, aborted_transactions=None))


def foreign_topic(response: Any) -> None:
    if hasattr(response.responses[0], "partition_responses"):
        parts = [PartitionProduceResponse(index=0)]
        response.responses.append(TopicProduceResponse(name="u", partition_responses=parts))
    else:
        part = PartitionData(aborted_transactions=None)
        response.responses.append(FetchableTopicResponse(topic="u", partitions=[part]))


def twice(response: Any) -> None:
    topic = response.responses[0]
    parts = topic.partition_responses if hasattr(topic, "partition_responses") else topic.partitions
    parts.append(parts[0])


def batch_of(size: int) -> Callable[[Any], None]:
    """Return what has an answer to Fetch begin with a batch that claims this length."""

    def script(response: Any) -> None:
        for topic in response.responses:
            for part in topic.partitions:
                data = struct.pack(">qi", 0, size) + bytes(49)
                part.records = data[:16] + b"\x02" + data[17:]

    return script


def other_session(response: Any) -> None:
    response.session_id = max(response.session_id, 1) + 1


SENSELESS = [
    Case("Metadata-no-broker", "send", rf"{NODE}: the answer to Metadata names no broker",
         scripted(api.METADATA, lambda body: body.brokers.clear())),
    Case("Metadata-no-address", "partitions_for", "names 1 broker, none of them with a host",
         scripted(api.METADATA, without_address)),
    Case("Metadata-topic-left-out", "send", "the answer to Metadata leaves topic 't' out",
         scripted(api.METADATA, lambda body: body.topics.clear())),
    Case("Metadata-no-partitions", "send", r"LEADER_NOT_AVAILABLE \(5\)",
         scripted(api.METADATA, lambda body: [topic.partitions.clear() for topic in body.topics])),
    Case("Metadata-error", "send", r"LEADER_NOT_AVAILABLE \(5\): topic 't'",
         failing(api.METADATA, LeaderNotAvailable)),
    Case("Metadata-unknown-topic", "send",
         r"UNKNOWN_TOPIC_OR_PARTITION \(3\): there is no topic 't'",
         failing(api.METADATA, UnknownTopicOrPartition)),
    Case("Metadata-unknown-code", "send", "UNKNOWN_9999", failing(api.METADATA, 9999)),
    Case("Metadata-unknown-leader", "deliver",
         r"before it was sent: its leader, node 77, is not among the brokers that Metadata names",
         scripted(api.METADATA, unreachable_leader)),
    Case("Metadata-unknown-leader", "position",
         r"its leader, node 77, is not among the brokers that Metadata names",
         scripted(api.METADATA, unreachable_leader)),
    Case("Metadata-unknown-leader", "end_offsets", "t-0 .its leader, node 77, is not among",
         scripted(api.METADATA, unreachable_leader)),
    Case("InitProducerId-error", "deliver",
         r"there is no producer id yet: COORDINATOR_LOAD_IN_PROGRESS \(14\)",
         failing(api.INIT_PRODUCER_ID, CoordinatorLoadInProgress)),
    Case("Produce-not-enough-replicas", "deliver",
         r"delivery.timeout.ms \(\d+\) passed after \d+ tries; the last answer: "
         r"NOT_ENOUGH_REPLICAS \(19\)", failing(api.PRODUCE, NotEnoughReplicas)),
    Case("Produce-not-leader", "deliver", r"the last answer: NOT_LEADER_OR_FOLLOWER \(6\)",
         failing(api.PRODUCE, NotLeaderOrFollower)),
    Case("Produce-unknown-code", "deliver",
         r"UNKNOWN_9999 \(9999\): a record of t-0 was refused, says",
         failing(api.PRODUCE, 9999)),
    Case("Produce-missing", "deliver", rf"{NODE} answered Produce v12 without t-0",
         scripted(api.PRODUCE, lambda body: body.responses.clear(), 12)),
    Case("Produce-foreign-partition", "deliver",
         rf"{NODE} answered Produce v12 with t-7, which was not asked for",
         scripted(api.PRODUCE, foreign_partition, 12)),
    Case("Produce-foreign-topic", "deliver",
         rf"{NODE} answered Produce v12 with u-0, which was not asked for",
         scripted(api.PRODUCE, foreign_topic, 12)),
    Case("Produce-twice", "deliver", rf"{NODE} answered Produce v12 with t-0 twice",
         scripted(api.PRODUCE, twice, 12)),
    Case("Produce-foreign-id", "deliver",
         rf"{NODE} answered Produce v13 with partition 0 of the topic of id 0000.*, which was not",
         scripted(api.PRODUCE, foreign_topic, 13)),
    Case("FindCoordinator-error", "committed",
         r"no coordinator yet: COORDINATOR_NOT_AVAILABLE \(15\)",
         failing(api.FIND_COORDINATOR, CoordinatorNotAvailable)),
    Case("FindCoordinator-no-address", "committed",
         "the coordinator of group 'g' has no address that can be used: node 1 at '', port 0",
         scripted(api.FIND_COORDINATOR, lambda body: [
             (setattr(one, "host", ""), setattr(one, "port", 0)) for one in body.coordinators])),
    Case("FindCoordinator-negative-port", "commit", "no address that can be used: .* port -1",
         scripted(api.FIND_COORDINATOR, lambda body: [
             setattr(one, "port", -1) for one in body.coordinators])),
    Case("OffsetFetch-error", "committed",
         r"its coordinator, node 1 at .*, answers COORDINATOR_LOAD_IN_PROGRESS \(14\)",
         failing(api.OFFSET_FETCH, CoordinatorLoadInProgress)),
    Case("OffsetFetch-left-out", "committed", "the answer to OffsetFetch leaves t-0 out",
         scripted(api.OFFSET_FETCH, lambda body: [one.topics.clear() for one in body.groups])),
    Case("OffsetCommit-error", "commit",
         r"answers COORDINATOR_LOAD_IN_PROGRESS \(14\): OffsetCommit of t-0",
         failing(api.OFFSET_COMMIT, CoordinatorLoadInProgress)),
    Case("ListOffsets-error", "end_offsets",
         r"t-0 \(its leader answers OFFSET_NOT_AVAILABLE \(78\)",
         failing(api.LIST_OFFSETS, OffsetNotAvailable)),
    Case("ListOffsets-left-out", "end_offsets", "the answer to ListOffsets leaves t-0 out",
         scripted(api.LIST_OFFSETS, lambda body: body.topics.clear())),
    Case("ListOffsets-error", "position",
         r"no position of t-0 within .*: it looks up where to start, but its leader answers "
         r"OFFSET_NOT_AVAILABLE|it looks up where to start, but its leader answers OFFSET_NOT_AV",
         failing(api.LIST_OFFSETS, OffsetNotAvailable)),
    Case("Fetch-unknown-code", "poll", r"UNKNOWN_9999 \(9999\): Fetch of t-0",
         failing(api.FETCH, 9999)),
    Case("Fetch-storage-error", "read_range", r"unread: t-0 \(KAFKA_STORAGE_ERROR \(56\)",
         failing(api.FETCH, KafkaStorageError)),
    Case("Fetch-missing", "poll", rf"{NODE} answered Fetch v12 without t-0",
         scripted(api.FETCH, lambda body: body.responses.clear(), 12)),
    Case("Fetch-foreign-partition", "poll",
         rf"{NODE} answered Fetch v12 with t-7, which was not asked for",
         scripted(api.FETCH, foreign_partition, 12)),
    Case("Fetch-foreign-topic", "poll",
         rf"{NODE} answered Fetch v12 with u-0, which was not asked for",
         scripted(api.FETCH, foreign_topic, 12)),
    Case("Fetch-twice", "poll", rf"{NODE} answered Fetch v12 with t-0 twice",
         scripted(api.FETCH, twice, 12)),
    Case("Fetch-batch-of-2^31-1", "poll",
         f"t-0 at offset 0: .* 61 bytes, which begin with a batch of {HUGE} bytes at offset 0",
         scripted(api.FETCH, batch_of(HUGE))),
    Case("Fetch-batch-of-minus-1", "poll",
         "t-0 at offset 0: record batch at offset 0 announces -1 bytes",
         scripted(api.FETCH, batch_of(-1))),
    Case("JoinGroup-unknown-code", "poll_joining",
         r"UNKNOWN_9999 \(9999\): JoinGroup in group 'g'",
         failing(api.JOIN_GROUP, 9999)),
    Case("SyncGroup-assignment", "poll_joining",
         "has assigned what cannot be read: ConsumerProtocolAssignment",
         scripted(api.SYNC_GROUP, lambda body: setattr(body, "assignment", HUGE_ASSIGNMENT))),
    Case("ApiVersions-no-APIs", "send", rf"{NODE} answered ApiVersions v\d, and names no API",
         scripted(api.API_VERSIONS, lambda body: body.api_keys.clear())),
    Case("ApiVersions-error", "send", rf"UNKNOWN_9999 .*the answer of {NODE} to ApiVersions",
         failing(api.API_VERSIONS, 9999)),
    Case("ApiVersions-header-only", "partitions_for", rf"{NODE} answered ApiVersions v\d with",
         framed(body(lambda _: b""), api.API_VERSIONS)),
    Case("ApiVersions-left-over", "send",
         rf"{NODE} answered ApiVersions v\d with 2 bytes left over at byte \d+",
         framed(body(lambda whole: whole + b"\0\0"), api.API_VERSIONS)),
    Case("ApiVersions-no-Metadata", "send", "Metadata: this client speaks .* does not offer it",
         lambda kafka: kafka.faults.limit_versions(
             {key: versions for key, versions in OFFERED.items() if key != api.METADATA})),
]  # fmt: skip

CASES = [*spoiled_messages(), *MORE_MESSAGES, *FRAMES, *PORTS, *SENSELESS]
