"""A broker that does what it was asked when nobody waits for the answer any more."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafka_fast import Admin
from kafka_fast.admin import NewTopic
from kafka_fast.errors import TopicAlreadyExists
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.waiting import eventually

pytestmark = pytest.mark.broker


def test_a_creation_that_comes_late_explains_why_the_topic_exists(real_kafka: RealKafka) -> None:
    """The broker hangs for longer than a request may take. Then it creates the topic twice."""
    topic = f"late-{uuid.uuid4().hex}"
    config = {"request.timeout.ms": 500, "retry.backoff.ms": 50}
    with Admin({"bootstrap.servers": real_kafka.bootstrap, **config}) as admin:
        new = [NewTopic(topic, 1, 1)]
        admin.create_topics(new, validate_only=True).raise_first()  # now it has a connection
        real_kafka.node(1).pause()
        try:
            with ThreadPoolExecutor(1) as thread:
                creation = thread.submit(admin.create_topics, new)
                eventually(lambda: admin.metrics()["link_failures"], "the first try to end")
                real_kafka.node(1).resume()
                error = creation.result().errors[topic]
        finally:
            real_kafka.node(1).resume()
        assert isinstance(error, TopicAlreadyExists)
        assert "an earlier try, of which no answer came, may have created it" in str(error)
        eventually(lambda: topic in admin.list_topics(), "the topic")
