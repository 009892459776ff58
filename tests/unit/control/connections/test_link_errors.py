"""What was wrong with a link, or with an answer, in words."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from kafka_fast.control.connections.link_errors import (
    close_error,
    foreign_protocol,
    lost_error,
    misfit_error,
    reason_of_close,
    round_error,
    say,
    unreadable,
)
from kafka_fast.control.messages import Awaited, BadAnswer, CloseReason, LinkClosed, Misfit
from kafka_fast.errors import (
    ConnectionReason,
    KafkaConnectionError,
    KafkaTimeoutError,
    MalformedError,
    ProtocolError,
    TlsError,
)
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.records.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafka_fast.protocol.apis.records.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka_fast.types import TopicPartition

FETCH = FetchResponse.api_key
ID, OTHER_ID = b"i" * 16, b"o" * 16
ASKED = {7: TopicPartition("t", 0)}
NAMES = {ID: "t"}


def fetched(*partitions: tuple[bytes, int], version: int = 13) -> bytes:
    """Return a Fetch answer with these (topic id, partition)."""
    topics = [
        FetchableTopicResponse(
            topic_id=topic_id, partitions=[PartitionData(partition_index=partition)]
        )
        for topic_id, partition in partitions
    ]
    return frame.encode_response(FetchResponse(responses=topics), version, 0)[4:]


def produced(topic: str, *partitions: int) -> bytes:
    parts = [PartitionProduceResponse(index=index) for index in partitions]
    response = ProduceResponse(
        responses=[TopicProduceResponse(name=topic, partition_responses=parts)]
    )
    return frame.encode_response(response, 12, 0)[4:]


def misfit(
    kind: Misfit, data: bytes, *, to: Awaited = Awaited.FETCH, asked: int = -1, place: int = 0
) -> ProtocolError:
    version = 13 if to is Awaited.FETCH else 12
    event = BadAnswer(1, to, version, data, kind, asked, place, False)
    return misfit_error(event, ASKED.get, NAMES.get)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            misfit(Misfit.MISSING, fetched(), asked=7),
            "answered Fetch v13 without t-0",
        ),
        (
            misfit(Misfit.MISSING, fetched(), asked=8),  # it was unassigned meanwhile
            "answered Fetch v13 without a partition",
        ),
        (
            misfit(Misfit.TWICE, fetched((ID, 0), (ID, 0)), place=1),
            "answered Fetch v13 with t-0 twice",
        ),
        (
            misfit(Misfit.FOREIGN, fetched((ID, 0), (OTHER_ID, 3)), place=1),
            f"with partition 3 of the topic of id {OTHER_ID.hex()}, which was not asked for",
        ),
        (
            misfit(Misfit.SESSION, fetched()),
            "answered Fetch v13 under another fetch session than asked",
        ),
        (
            misfit(Misfit.FOREIGN, produced("x", 0, 9), to=Awaited.PRODUCE, place=1),
            "answered Produce v12 with x-9, which was not asked for",
        ),
        (
            misfit(Misfit.FORM, produced("t", 0), to=Awaited.PRODUCE),
            "answered Produce v12 with bytes that do not follow from the request",
        ),
    ],
)
def test_an_answer_that_does_not_fit(error: ProtocolError, text: str) -> None:
    assert text in str(error)


def test_an_answer_that_ends_too_early_names_the_place() -> None:
    data = fetched((ID, 0))
    error = misfit(Misfit.FORM, data[:-9])
    assert isinstance(error, MalformedError)
    assert "answered Fetch v13 with" in str(error)
    assert "responses[0]" in str(error)
    assert f"at byte {error.pos}" in str(error)


def closed(
    reason: CloseReason, detail: int = 0, head: bytes = b"", awaited: str = "Fetch v13"
) -> Any:
    return close_error(LinkClosed(1, reason, detail, head), awaited, "request.timeout.ms (9 s)")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (closed(CloseReason.OS_ERROR, 104), OSError, "Connection reset by peer"),
        (
            closed(CloseReason.TIMEOUT),
            KafkaTimeoutError,
            "did not answer Fetch v13 within request.timeout.ms (9 s)",
        ),
        (
            closed(CloseReason.BAD_FRAME, 5_000_000, b"\x00\x4c\x4b\x40"),
            ProtocolError,
            "sent 00 4c 4b 40: a frame of 5000000 bytes instead of an answer to Fetch v13",
        ),
        (
            closed(CloseReason.BAD_RESPONSE),
            ProtocolError,
            "sent what does not fit the request instead of an answer to Fetch v13",
        ),
        (
            closed(CloseReason.CORRELATION, 8, awaited=""),
            ProtocolError,
            "sent an answer to nothing in flight (correlation id 8)",
        ),
        (
            closed(CloseReason.BY_US),
            KafkaConnectionError,
            "was left: this client closed the connection",
        ),
        (
            closed(CloseReason.BAD_FRAME, 1347703880, b"HTTP/1.1"),
            ProtocolError,
            "talks like an HTTP server",
        ),
        (
            closed(CloseReason.BAD_FRAME, 352518400, bytes.fromhex("15030300 02 02 50")),
            ProtocolError,
            "talks like a TLS listener",
        ),
    ],
)
def test_why_a_link_was_closed(error: Exception, kind: type[Exception], text: str) -> None:
    assert isinstance(error, kind)
    assert text in say(error)


def test_a_peer_that_closes_needs_no_error() -> None:
    assert closed(CloseReason.EOF) is None


def test_an_error_without_words_is_named_by_its_type() -> None:
    assert say(OSError()) == "OSError"
    assert say(OSError("no route")) == "no route"


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"HTTP/1.1 400 Bad Request", "HTTP"),
        (b"\x15\x03\x03\x00\x02", "TLS"),
        (b"\x16\x03\x01", "TLS"),
        (b"SSH-2.0-OpenSSH", "SSH"),
    ],
)
def test_foreign_protocols_are_named(head: bytes, name: str) -> None:
    assert name in (foreign_protocol(head) or "")


def test_kafka_is_not_foreign() -> None:
    assert foreign_protocol(b"\x00\x00\x00\x10\x00\x00\x00\x00") is None


@pytest.mark.parametrize(("speaker", "begin"), [("", ""), ("node 3", "node 3 ")])
def test_an_answer_that_cannot_be_read_names_request_and_place(speaker: str, begin: str) -> None:
    cause = MalformedError("x", problem="a string of length -2", place="topics[0].name", pos=31)
    error = unreadable(FETCH, 13, cause, speaker)
    assert isinstance(error, MalformedError)
    what = "a string of length -2 at byte 31 (topics[0].name)"
    assert str(error) == f"{begin}answered Fetch v13 with {what}"
    assert (error.problem, error.place, error.pos) == (cause.problem, cause.place, cause.pos)
    assert error.__cause__ is cause


@pytest.mark.parametrize("kind", [MalformedError, ProtocolError])
def test_an_answer_that_cannot_be_read_keeps_its_class(kind: type[ProtocolError]) -> None:
    error = unreadable(FETCH, 13, kind("too deep"))
    assert type(error) is kind
    assert str(error) == "answered Fetch v13 with what cannot be read: too deep"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, ConnectionReason.CLOSED),
        (OSError(errno.ECONNREFUSED, "refused"), ConnectionReason.REFUSED),
        (OSError(errno.ECONNRESET, "reset"), ConnectionReason.RESET),
        (OSError(errno.EPIPE, "pipe"), ConnectionReason.RESET),
        (OSError(errno.ENETUNREACH, "no way"), ConnectionReason.UNREACHABLE),
        (OSError(errno.ETIMEDOUT, "late"), ConnectionReason.TIMED_OUT),
        (OSError(errno.EMFILE, "too many"), ConnectionReason.OTHER),
        (KafkaTimeoutError("late"), ConnectionReason.TIMED_OUT),
        (
            KafkaConnectionError("left", reason=ConnectionReason.LEFT),
            ConnectionReason.LEFT,
        ),
        (RuntimeError("what"), ConnectionReason.OTHER),
    ],
)
def test_a_lost_link_has_its_reason(error: BaseException | None, reason: ConnectionReason) -> None:
    lost = lost_error("node 1", error, "", "")
    assert isinstance(lost, KafkaConnectionError)
    assert lost.reason is reason


@pytest.mark.parametrize(
    ("reasons", "common"),
    [
        ([], ConnectionReason.UNRESOLVED),
        ([ConnectionReason.REFUSED] * 2, ConnectionReason.REFUSED),
        ([ConnectionReason.REFUSED, ConnectionReason.CLOSED], ConnectionReason.SEVERAL),
    ],
)
def test_a_round_over_addresses_has_their_common_reason(
    reasons: list[ConnectionReason], common: ConnectionReason
) -> None:
    errors = [KafkaConnectionError("no", reason=reason) for reason in reasons]
    error = round_error("node 1", errors)
    assert isinstance(error, KafkaConnectionError)
    assert error.reason is common


def test_a_refusal_among_addresses_keeps_its_class() -> None:
    error = round_error("node 1", [KafkaConnectionError("no"), TlsError("expired")])
    assert type(error) is TlsError
    assert str(error) == "node 1: none of 2 addresses accepted this client: no; expired"


def test_a_request_without_an_answer_has_the_reason_of_its_link() -> None:
    assert reason_of_close(CloseReason.EOF) is ConnectionReason.CLOSED
    assert reason_of_close(CloseReason.IDLE) is ConnectionReason.LEFT
    assert reason_of_close(CloseReason.BAD_FRAME) is ConnectionReason.OTHER
    assert reason_of_close(0) is ConnectionReason.OTHER
