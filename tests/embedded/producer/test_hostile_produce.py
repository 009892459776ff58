"""An answer where none is due (F7): the link goes, the reason is said, and sending goes on."""

from __future__ import annotations

import re

import pytest

from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from tests.corpus.replay import Answer, answers
from tests.embedded.producing import MakeProducer, values
from tests.waiting import eventually

HOSTILE = 3
CASES = [case for case in answers() if case.api == PRODUCE]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_answer_to_acks_0(
    case: Answer,
    kafka: EmbeddedKafka,
    topic: str,
    producer_on: MakeProducer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    rule = kafka.faults.answer_unasked(
        lambda correlation_id: case.to(correlation_id.to_bytes(4, "big")), count=HOSTILE
    )
    producer = producer_on(acks=0, enable_idempotence=False, linger_ms=0)
    sent = 0

    def one_more() -> None:
        nonlocal sent
        producer.send(topic, b"%d" % sent).result()
        sent += 1

    def closed() -> int:
        return sum(producer.metrics()["links_closed"].values())

    # One at a time: a second record on the same link would be answered, too, and close no other.
    for _ in range(HOSTILE):
        one_more()
        eventually(lambda: closed() == sent, "a closed link for each answer")
    assert rule.strikes == HOSTILE
    assert producer.metrics()["links_closed"]["correlation"] == HOSTILE
    assert any(re.search(case.refusal, record.getMessage()) for record in caplog.records)
    last = b"%d" % sent
    one_more()
    eventually(lambda: last in values(kafka, topic), "a record on a link that is well")
