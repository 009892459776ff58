"""The compiled codec against the slow one, for every message in every version."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_fast.errors import MalformedError
from kafka_fast.protocol._decode import decode_as_brokers_do
from kafka_fast.protocol.schema import Message
from tests.reference import protocol_codec as slow

IDS = [f"{message.__name__}-v{version}" for message, version in slow.ALL]
anything = st.sampled_from(slow.ALL)
randoms = st.randoms(use_true_random=False)


def check(message: type[Message], version: int, rng: random.Random) -> bytes:
    """Compare both codecs in both directions on a random message; return its bytes."""
    values = slow.random_struct(message, version, rng)
    data = slow.encode(message, values, version)
    ours = message.decode(data, version)
    assert slow.as_dict(ours) == values
    assert slow.from_dict(message, values) == ours
    assert ours.encode(version) == data
    assert slow.decode(message, data, version) == values
    return data


@pytest.mark.parametrize(("message", "version"), slow.ALL, ids=IDS)
def test_every_version_agrees_with_the_slow_codec(message, version):
    for seed in range(5):
        check(message, version, random.Random(seed))


@pytest.mark.parametrize(("message", "version"), slow.ALL, ids=IDS)
def test_truncation_at_every_byte_is_malformed(message, version):
    data = check(message, version, random.Random(6))
    for size in range(min(len(data), 400)):
        with pytest.raises(MalformedError):
            message.decode(data[:size], version)


@given(anything, randoms)
@settings(max_examples=300, deadline=None)
def test_any_message_agrees_with_the_slow_codec(which, rng):
    check(*which, rng)


@given(anything, randoms, st.data())
@settings(max_examples=400, deadline=None)
def test_changed_bytes_are_decoded_or_malformed_and_nothing_else(which, rng, data):
    message, version = which
    changed = bytearray(slow.encode(message, slow.random_struct(message, version, rng), version))
    if not changed:
        return
    for _ in range(data.draw(st.integers(1, 4))):
        pos = data.draw(st.integers(0, len(changed) - 1))
        changed[pos] = data.draw(st.integers(0, 255))
    try:
        decoded = message.decode(bytes(changed), version)
    except MalformedError:
        return
    assert slow.as_text(message.decode(decoded.encode(version), version)) == slow.as_text(decoded)


@given(anything, st.binary(max_size=64))
@settings(max_examples=400, deadline=None)
def test_arbitrary_bytes_are_decoded_or_malformed_and_nothing_else(which, data):
    message, version = which
    try:
        decoded = message.decode(data, version)
    except MalformedError:
        return
    assert slow.as_text(message.decode(decoded.encode(version), version)) == slow.as_text(decoded)


def arrays_of(message: type[Message]) -> list[str]:
    return [field.name for field in message._fields if field.wire_type.name == "array"]


def refusal_of(message: type[Message], frame: bytes, version: int) -> str | None:
    try:
        message.decode(frame, version)
    except MalformedError as error:
        return str(error)
    return None


WITH_ARRAYS = [(message, version) for message, version in slow.ALL if arrays_of(message)]


@given(st.sampled_from(WITH_ARRAYS), randoms, st.data())
@settings(max_examples=400, deadline=None)
def test_what_is_read_later_is_the_same_or_malformed_at_once(which, rng, data):
    message, version = which
    changed = bytearray(slow.encode(message, slow.random_struct(message, version, rng), version))
    for _ in range(data.draw(st.integers(0, 2)) if changed else 0):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    frame = bytes(changed)
    name = data.draw(st.sampled_from(arrays_of(message)))
    if refusal_of(message, frame, version) is not None:
        with pytest.raises(MalformedError) as caught:
            message.decode(frame, version, later=name)
        assert str(caught.value) == refusal_of(message, frame, version)
        return
    expected = message.decode(frame, version)
    decoded = message.decode(frame, version, later=name)
    elements = getattr(decoded, name)
    if isinstance(elements, list):  # the version lacks the array
        assert elements == []
        return
    if elements is not None:
        count = len(elements)
        setattr(decoded, name, list(elements))
        assert len(getattr(decoded, name)) == count
    if getattr(expected, name) is None:
        assert getattr(decoded, name) == []
        setattr(decoded, name, None)
    assert slow.as_text(decoded) == slow.as_text(expected)


@given(anything, randoms, st.data(), st.binary(max_size=8))
@settings(max_examples=400, deadline=None)
def test_brokers_read_what_is_well_formed_alike_and_more(which, rng, data, behind):
    message, version = which
    changed = bytearray(slow.encode(message, slow.random_struct(message, version, rng), version))
    for _ in range(data.draw(st.integers(0, 4)) if changed else 0):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    frame = bytes(changed)
    try:
        decoded, pos = decode_as_brokers_do(message.program(version), frame + behind)
    except MalformedError:
        # Nothing is well formed then, but for tags of other versions, which brokers refuse.
        refusal = refusal_of(message, frame, version)
        assert refusal is not None or "tag" in str(refusal_by_brokers(message, frame, version))
        return
    assert pos <= len(frame + behind)
    if refusal_of(message, frame, version) is None:
        assert pos == len(frame)
        assert slow.as_text(decoded) == slow.as_text(message.decode(frame, version))


def refusal_by_brokers(message: type[Message], frame: bytes, version: int) -> str | None:
    try:
        decode_as_brokers_do(message.program(version), frame)
    except MalformedError as error:
        return str(error)
    return None
