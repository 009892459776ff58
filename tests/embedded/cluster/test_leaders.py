"""Leaders that move and brokers that die, lose answers or slow the producer down."""

from __future__ import annotations

import time

import pytest

from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import INIT_PRODUCER_ID, PRODUCE
from tests.embedded.producing import TIMEOUT, MakeProducer, send_and_check, values

DRIVERS = True  # every test runs with threads and with asyncio


def test_the_leader_moves_all_the_time(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on(batch_size=300)
    sent = [b"%d" % number for number in range(3_000)]
    futures = []
    for number, value in enumerate(sent):
        futures.append(producer.send(topic, value))
        if number % 100 == 99:
            kafka.move_leader(topic, 0, number // 100 % 3 + 1)
    assert [future.result(TIMEOUT).offset for future in futures] == list(range(len(sent)))
    assert values(kafka, topic) == sent


@pytest.mark.parametrize("reset", [False, True], ids=["fin", "rst"])
@pytest.mark.parametrize("after", [0, 3, 10, 40])
def test_answers_cut_anywhere(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer, after: int, *, reset: bool
) -> None:
    producer = producer_on(batch_size=100)
    producer.send(topic, b"first").result(TIMEOUT)
    kafka.faults.cut(after, reset=reset, api=PRODUCE, count=3)
    send_and_check(kafka, producer, topic)


@pytest.mark.parametrize("applied", [False, True], ids=["request lost", "answer lost"])
@pytest.mark.parametrize("close", [False, True], ids=["silent", "closed"])
def test_lost_requests_and_answers(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer, applied: bool, close: bool
) -> None:
    producer = producer_on(batch_size=100, request_timeout_ms=300)
    producer.send(topic, b"first").result(TIMEOUT)
    kafka.faults.drop(applied=applied, close=close, api=PRODUCE, count=2)
    send_and_check(kafka, producer, topic)


def test_a_killed_leader_is_left_and_met_again(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on()
    for _ in range(3):
        leader = kafka.leader(topic, 0)
        send_and_check(kafka, producer, topic, 10)
        kafka.kill(leader)
        send_and_check(kafka, producer, topic, 10)
        kafka.restart(leader)


def test_all_brokers_go_and_come_back(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on(reconnect_backoff_max_ms=100)
    send_and_check(kafka, producer, topic, 10)
    for node_id in (1, 2, 3):
        kafka.kill(node_id)
    futures = [producer.send(topic, b"%d" % number) for number in range(10)]
    assert producer.flush(0.3) == 10
    for node_id in (1, 2, 3):
        kafka.restart(node_id)
    assert [future.result(TIMEOUT).offset for future in futures] == list(range(10, 20))


def test_the_producer_id_is_asked_for_until_it_comes(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    kafka.faults.drop(close=True, api=INIT_PRODUCER_ID, count=3)
    send_and_check(kafka, producer_on(), topic)


def test_a_forgotten_producer_goes_on(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on()
    send_and_check(kafka, producer, topic)
    for producer_id in range(1, 100):
        kafka.forget_producer(topic, 0, producer_id)
    send_and_check(kafka, producer, topic)


def test_throttled(kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer) -> None:
    producer = producer_on(batch_size=100)
    producer.send(topic, b"first").result(TIMEOUT)
    kafka.faults.throttle(200, api=PRODUCE, count=2)
    start = time.monotonic()
    send_and_check(kafka, producer, topic, 1)  # answered at once, with the throttle time
    send_and_check(kafka, producer, topic, 1)
    assert time.monotonic() - start >= 0.2, "the pause that the broker asked for is kept"
    assert producer.metrics()["throttle_ms"] >= 200
