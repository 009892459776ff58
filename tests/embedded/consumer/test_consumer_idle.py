"""A consumer that has nothing to do costs nothing."""

from __future__ import annotations

import resource
import time

from kafka_fast import TopicPartition
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import MakeConsumer, fill, read

PAUSE = 0.3


def own_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    whole = resource.getrusage(resource.RUSAGE_SELF)
    return whole.ru_utime + whole.ru_stime - usage.ru_utime - usage.ru_stime


def test_its_threads_sleep_until_they_are_needed(
    kafka: EmbeddedKafka, topic: str, consumer_on: MakeConsumer
):
    """The native thread once woke all the time, for batches that only a producer has."""
    fill(kafka, topic, 10)
    consumer = consumer_on()
    consumer.assign([TopicPartition(topic, 0)])
    read(consumer, 10)
    before = own_cpu()
    time.sleep(PAUSE)  # what is measured is this very time
    assert own_cpu() - before < PAUSE / 3


def test_a_loop_of_polls_sleeps_while_there_is_nothing(
    kafka: EmbeddedKafka, topic: str, consumer_on: MakeConsumer
):
    """Regression: poll() did not wait, so that the first loop one writes took a processor."""
    consumer = consumer_on()
    consumer.assign([TopicPartition(topic, 0)])
    consumer.poll(0)
    began, busy = time.monotonic(), time.thread_time()
    assert not consumer.poll()
    assert time.monotonic() - began > 0.99
    assert time.thread_time() - busy < 0.3
