"""Topic ids, as people and Kafka's scripts write them: 16 bytes in URL-safe base64."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress

from kafka_fast.errors import UsageError

NO_TOPIC_ID = bytes(16)


def topic_id_text(topic_id: bytes) -> str | None:
    """Return a topic id as text; None if the broker has not told one."""
    return None if topic_id == NO_TOPIC_ID else urlsafe_b64encode(topic_id).decode().rstrip("=")


def topic_id_bytes(text: str) -> bytes:
    """Return a topic id from its text.

    Other texts of the same bytes are refused: answers name the topic by this one.

    Raises:
        UsageError: it is none, or written in another way.
    """
    topic_id = b""
    with suppress(binascii.Error, ValueError, TypeError):
        topic_id = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(topic_id) != len(NO_TOPIC_ID) or topic_id_text(topic_id) != text:
        raise UsageError(f"{text!r} is no topic id, as describe_topics returns it")
    return topic_id
