"""Frames: a length, a header and a body, on the client's side and on the broker's.

      4 bytes      request: header v1, v2 (flexible)     the message
    ┌────────┐    ┌─────────────────────────────────┐   ┌──────────┐
    │ length │    │ api key, version, correlation   │   │ body     │
    └────────┘    │ id, client id                   │   └──────────┘
                  │ response: header v0, v1         │
                  │ correlation id                  │
                  └─────────────────────────────────┘

Encoded frames begin with the length. Frames to decode come without the length, because the code
that reads from the socket has consumed it. This module does no I/O. The data plane encodes its
Produce requests itself, and takes their constant parts from `produce_prefix` and
`produce_topic_prefix`.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeVar

from kafka_fast.errors import ErrorCode, MalformedError, UnsupportedVersionError
from kafka_fast.protocol import headers
from kafka_fast.protocol._decode import decode_as_brokers_do, decode_front
from kafka_fast.protocol.apis import api_name, request_class, response_class
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsResponse
from kafka_fast.protocol.apis.records.fetch import FetchRequest, FetchTopic
from kafka_fast.protocol.apis.records.produce import ProduceRequest, TopicProduceData
from kafka_fast.protocol.schema import Buffer, Request, Response

R = TypeVar("R", bound=Response)

FETCH_FIRST_WITH_SESSIONS = 7
FETCH_FIRST_WITH_RACK = 11
_HEADER = struct.Struct(">hhi")  # API key, version, correlation id: the same in every version
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class RequestHeader(NamedTuple):
    """The header before the body of a request."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None


class FetchParts(NamedTuple):
    """The constant parts of a Fetch request. Topics, and since v7 forgotten topics, go between."""

    prefix: bytes
    """From the length (four zeros) up to and including the session epoch."""
    suffix: bytes
    """The rack and the tagged section, as far as the version has them."""


def request_header_version(api_key: int, version: int) -> int:
    """Return the version of a request's header."""
    return 2 if version in request_class(api_key).flexible else 1


def response_header_version(api_key: int, version: int) -> int:
    """Return the version of a response's header.

    For ApiVersions it is always 0, because the client must read that answer before versions are
    agreed on.
    """
    if api_key == ApiVersionsResponse.api_key:
        return 0
    return 1 if version in response_class(api_key).flexible else 0


def encode_request(
    body: Request, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Return a whole request frame, length included."""
    header = _request_header(body, version, correlation_id, client_id)
    data = body.encode(version)
    return b"".join((_INT32.pack(len(header) + len(data)), header, data))


def _request_header(
    body: Request, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    return headers.RequestHeader(
        request_api_key=body.api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    ).encode(request_header_version(body.api_key, version))


def request_position_of(field: str, body: Request, version: int, client_id: str | None) -> int:
    """Return at which byte of a request's whole frame a field of its body begins.

    Raises:
        ValueError: the version has no such field, or has it in the tagged section.
    """
    header = _request_header(body, version, 0, client_id)
    return _INT32.size + len(header) + body.position_of(field, version)


def decode_response(
    cls: type[R], frame: Buffer, version: int, *, later: str | None = None
) -> tuple[int, R]:
    """Read a response frame without its length.

    Args:
        cls: the response's class.
        frame: the bytes.
        version: of the response.
        later: the name of an array that is read later; see `Message.decode`.

    Returns:
        The correlation id and the body; `records` in it are views of `frame`.

    Raises:
        MalformedError: the bytes are not this response in this version. The error's position counts
            from the correlation id.
    """
    correlation_id, pos = _response_header(frame, response_header_version(cls.api_key, version))
    return correlation_id, _body(cls, frame, version, pos, later)


def decode_api_versions_response(frame: Buffer, version: int) -> tuple[int, ApiVersionsResponse]:
    """Read the answer to ApiVersions, in the version that the broker chose.

    A broker that does not know the requested version answers UNSUPPORTED_VERSION in the format of
    version 0. A newer broker adds its own range for ApiVersions (KIP-511). If the body is not
    valid, `api_keys` is empty, and the caller asks with a lower version (`retry_version`).
    """
    correlation_id, pos = _response_header(frame, 0)
    code = memoryview(frame)[pos : pos + _INT16.size]
    if len(code) < _INT16.size or _INT16.unpack(code)[0] != ErrorCode.UNSUPPORTED_VERSION:
        return correlation_id, _body(ApiVersionsResponse, frame, version, pos)
    try:
        return correlation_id, _body(ApiVersionsResponse, frame, 0, pos)
    except MalformedError:
        return correlation_id, ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)


def decode_request(frame: Buffer, *, as_brokers_do: bool = False) -> tuple[RequestHeader, Request]:
    """Read a request frame without its length, of any API that has a table.

    Args:
        frame: the bytes.
        as_brokers_do: accept what Apache Kafka's brokers accept, as bytes behind the request.

    Raises:
        UnsupportedVersionError: no such API or version; the error's `header` lets the broker
            answer.
        MalformedError: the bytes do not match the header.
    """
    view = memoryview(frame)
    if len(view) < _HEADER.size:
        raise MalformedError(f"a request frame of {len(view)} bytes is shorter than its header")
    api_key, version, correlation_id = _HEADER.unpack_from(view)
    request: type[Request] | None
    try:
        request = request_class(api_key)
    except KeyError:
        request = None
    if request is None or version not in request.versions:
        header = RequestHeader(api_key, version, correlation_id, None)
        raise UnsupportedVersionError(
            f"a request for {api_name(api_key)} v{version}, which is not supported", header=header
        )
    read_front = decode_as_brokers_do if as_brokers_do else decode_front
    program = headers.RequestHeader.program(request_header_version(api_key, version))
    read, pos = read_front(program, view)
    header = RequestHeader(api_key, version, correlation_id, read.client_id)
    if as_brokers_do:
        return header, decode_as_brokers_do(request.program(version), view[pos:])[0]
    return header, request.decode(view[pos:], version)


def encode_response(body: Response, version: int, correlation_id: int) -> bytes:
    """Return a whole response frame, length included."""
    header = headers.ResponseHeader(correlation_id=correlation_id).encode(
        response_header_version(body.api_key, version)
    )
    data = body.encode(version)
    return b"".join((_INT32.pack(len(header) + len(data)), header, data))


def produce_prefix(
    version: int, client_id: str | None, transactional_id: str | None, acks: int, timeout_ms: int
) -> bytes:
    """Return the part of a Produce request that stays the same from batch to batch.

    The prefix goes from the length (four zeros) up to and including timeout_ms. After the prefix
    come the array of topics and, for flexible versions, an empty tagged section.
    """
    body = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms)
    frame = encode_request(body, version, 0, client_id)
    return bytes(4) + frame[4 : len(frame) - _empty_tail(version)]


def produce_topic_prefix(version: int, name: str, topic_id: bytes) -> bytes:
    """Return the field that names a topic in a Produce request: its name, since version 13 its id.

    After the field come the array of partitions and, for flexible versions, an empty tagged
    section.
    """
    flexible = version in ProduceRequest.flexible
    data = TopicProduceData(name=name, topic_id=topic_id).encode_part(version, flexible)
    return data[: len(data) - _empty_tail(version)]


def fetch_parts(
    version: int,
    client_id: str | None,
    *,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    read_committed: bool,
    rack_id: str = "",
) -> FetchParts:
    """Return the parts of a Fetch request that stay the same from fetch to fetch.

    Session id and epoch are the last eight bytes of the prefix since v7; `max_bytes` stands before
    the isolation level, which is one byte.
    """
    body = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(read_committed),
        session_epoch=0,
        rack_id=rack_id,
    )
    frame = encode_request(body, version, 0, client_id)
    flexible = version in FetchRequest.flexible
    rack = len(rack_id.encode())
    suffix = 0
    if flexible:
        suffix = -(-(rack + 1).bit_length() // 7) + rack + 1  # length as varint, name, no tags
    elif version >= FETCH_FIRST_WITH_RACK:
        suffix = 2 + rack
    arrays = (1 if flexible else 4) * (2 if version >= FETCH_FIRST_WITH_SESSIONS else 1)
    end = len(frame) - suffix
    return FetchParts(bytes(4) + frame[4 : end - arrays], frame[end:])


def fetch_topic_prefix(version: int, name: str, topic_id: bytes) -> bytes:
    """Return the field that names a topic in a Fetch request: its name, since version 13 its id."""
    flexible = version in FetchRequest.flexible
    data = FetchTopic(topic=name, topic_id=topic_id).encode_part(version, flexible)
    return data[: len(data) - (2 if flexible else 4)]


def _empty_tail(version: int) -> int:
    """Return the size of an empty array at the end of a Produce struct, tagged section included."""
    return 2 if version in ProduceRequest.flexible else 4


def _response_header(frame: Buffer, version: int) -> tuple[int, int]:
    """Return the correlation id and the position of the body."""
    header, pos = decode_front(headers.ResponseHeader.program(version), frame)
    return header.correlation_id, pos


def _body(cls: type[R], frame: Buffer, version: int, pos: int, later: str | None = None) -> R:
    """Read the body, which begins at `pos`; errors count from the beginning of the frame."""
    try:
        return cls.decode(memoryview(frame)[pos:], version, later=later)
    except MalformedError as error:
        at = error.pos + pos
        raise MalformedError(
            f"{cls.__name__} v{version}: {error.problem} at byte {at} ({error.place})",
            problem=error.problem,
            place=error.place,
            pos=at,
        ) from error
