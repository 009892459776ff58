"""Produce with a transaction: partitions that were added, and those that were not."""

from __future__ import annotations

import pytest

from kafka_fast import errors
from tests.integration.scenarios.groups import ready
from tests.integration.scenarios.steps import unique_name
from tests.integration.scenarios.transactions.conftest import Site
from tests.integration.scenarios.transactions.producers import (
    ABORTABLE,
    BAD_STATE,
    OUT_OF_ORDER,
    STALE_EPOCH,
    log_of,
)
from tests.integration.scenarios.wire import batch, produce_request

NO_RIGHT = errors.TransactionalIdAuthorizationFailed.code
NEWEST_OF_1, OLDEST_OF_2 = 11, 12  # versions of Produce


@pytest.mark.parametrize(("produce", "code"), [(9, BAD_STATE), (10, BAD_STATE), (11, ABORTABLE)])
def test_a_partition_that_was_not_added(site: Site, topic: str, produce: int, code: int) -> None:
    producer = site.producer()
    assert producer.write(topic, version=produce) == code
    assert producer.described().transaction_state == "Empty"
    producer.added(topic)
    assert producer.write(topic, version=produce) == 0
    assert producer.write(topic, 1, version=produce) == code


def test_a_produce_request_of_version_2_adds(site: Site, topic: str) -> None:
    producer = site.producer()
    code = producer.write(topic, version=OLDEST_OF_2)
    if site.version == 0:  # and nothing can be done with this id, until its coordinator moves
        assert code == errors.UnsupportedVersion.code
        assert producer.add(topic) == errors.ConcurrentTransactions.code
        assert producer.described().transaction_state == "Empty"
        return
    assert code == 0
    state = producer.described()
    assert state.transaction_state == "Ongoing"
    assert [(one.topic, one.partitions) for one in state.topics] == [(topic, [0])]
    assert producer.write(topic, version=NEWEST_OF_1) == 0


def test_a_partition_that_was_added_takes_both(site: Site, topic: str) -> None:
    producer = site.producer()
    producer.added(topic)
    assert producer.write(topic, version=OLDEST_OF_2) == 0
    assert producer.write(topic, version=NEWEST_OF_1) == 0


def test_where_a_producer_begins(site: Site, topic: str) -> None:
    """Version 2 knows that a producer is new; version 1 takes any sequence for a lost past."""
    producer = site.producer()
    producer.added(topic, 0, 1)
    assert producer.write(topic, 0, sequence=5, version=NEWEST_OF_1) == 0
    assert producer.write(topic, 1, sequence=5, version=OLDEST_OF_2) == OUT_OF_ORDER
    assert producer.write(topic, 1, sequence=5, version=NEWEST_OF_1) == OUT_OF_ORDER
    assert producer.write(topic, 1, sequence=0, version=OLDEST_OF_2) == 0


def test_nothing_takes_the_place_of_a_first_batch_that_was_refused(site: Site, topic: str) -> None:
    producer = site.producer()
    assert producer.write(topic, sequence=0, version=NEWEST_OF_1) == ABORTABLE
    producer.added(topic)
    assert producer.write(topic, sequence=1, version=NEWEST_OF_1) == OUT_OF_ORDER
    assert producer.write(topic, sequence=0, version=NEWEST_OF_1) == 0
    assert producer.write(topic, sequence=1, version=NEWEST_OF_1) == 0


def test_zombies_disturb_nobody(site: Site, topic: str) -> None:
    producer = site.producer()
    zombie, producer = producer.copy(), producer.copy().init()
    producer.written(topic)
    for version in (NEWEST_OF_1, OLDEST_OF_2):
        assert zombie.write(topic, version=version) == STALE_EPOCH
        assert producer.write(topic) == 0
    producer.end(commit=True)
    assert zombie.write(topic) == STALE_EPOCH
    producer.written(topic)
    assert producer.write(topic) == 0


def test_who_comes_from_the_future_disturbs(site: Site, topic: str) -> None:
    """A partition cannot know that the coordinator does not know the epoch."""
    producer = site.producer()
    producer.written(topic)
    stranger = producer.copy()
    stranger.epoch += 1
    stranger.sequences.clear()
    assert stranger.write(topic) == STALE_EPOCH
    assert producer.write(topic) == OUT_OF_ORDER


def test_the_first_try_decides_where_a_producer_begins(site: Site, topic: str) -> None:
    zombie = site.producer(protocol=1)
    producer = zombie.copy().init()
    assert zombie.write(topic, sequence=5, version=NEWEST_OF_1) == STALE_EPOCH
    producer.added(topic, 0, 1)
    assert producer.write(topic, sequence=5, version=OLDEST_OF_2) == 0
    if site.version:
        assert zombie.write(topic, 1, sequence=0, version=OLDEST_OF_2) == STALE_EPOCH
        assert producer.write(topic, 1, sequence=3, version=NEWEST_OF_1) == OUT_OF_ORDER


def test_a_batch_is_written_once(site: Site, topic: str) -> None:
    producer = site.producer()
    producer.written(topic)
    assert producer.write(topic, sequence=0) == 0
    assert producer.write(topic, sequence=2) == OUT_OF_ORDER
    producer.end(commit=True)
    assert log_of(site.client, topic)[0] == ("data", 0)
    assert [kind for kind, _ in log_of(site.client, topic)] == ["data", "COMMIT"]


def test_sequences_after_a_transaction(site: Site, topic: str) -> None:
    """The epoch of version 2 is new, so its sequences begin again; those of version 1 go on."""
    producer = site.producer()
    producer.written(topic, count=3)
    producer.end(commit=True)
    epoch, first = (1, 0) if site.version == 2 else (0, 3)
    assert producer.epoch == epoch
    if site.version < 2:
        producer.added(topic)
    assert producer.write(topic, sequence=first + 2) == OUT_OF_ORDER
    assert producer.write(topic, sequence=first) == 0


def test_a_transaction_needs_its_id(site: Site, topic: str) -> None:
    producer = site.producer()
    producer.added(topic)
    records = batch(producer=(producer.producer_id, producer.epoch, 0), is_transactional=True)
    request = produce_request(topic, [(0, records), (1, batch())])
    answers = site.client.ask(request, NEWEST_OF_1).responses[0].partition_responses
    assert [one.error_code for one in answers] == [NO_RIGHT, NO_RIGHT]
    assert log_of(site.client, topic, 1) == []


def test_a_request_is_of_one_producer(site: Site, topic: str) -> None:
    producers = [site.producer(), site.producer()]
    parts = []
    for index, one in enumerate(producers):
        one.added(topic, index)
        records = batch(producer=(one.producer_id, one.epoch, 0), is_transactional=True)
        parts.append((index, records))
    request = produce_request(topic, parts, transactional_id=producers[0].transactional_id)
    answers = site.client.ask(request, NEWEST_OF_1).responses[0].partition_responses
    assert {one.error_code for one in answers} == {errors.InvalidProducerIdMapping.code}


def test_a_producer_writes_nothing_beside_its_transaction(site: Site, topic: str) -> None:
    producer = site.producer()
    assert producer.write(topic, is_transactional=False) == 0
    producer.written(topic)
    assert producer.write(topic, is_transactional=False) == BAD_STATE
    assert producer.write(topic) == 0


@pytest.mark.parametrize("produce", [9, 11, 12])
def test_an_epoch_that_nobody_has(site: Site, topic: str, produce: int) -> None:
    producer = site.producer()
    assert producer.write(topic, epoch=5, version=produce) == STALE_EPOCH


def test_all_partitions_are_added_or_none(site: Site, topic: str) -> None:
    producer, nowhere = site.producer(), unique_name()
    unknown, untried = errors.UnknownTopicOrPartition.code, errors.OperationNotAttempted.code
    assert producer.add_all([(topic, 77), (topic, 0), (nowhere, 0)]) == {
        (topic, 77): unknown,
        (topic, 0): untried,
        (nowhere, 0): unknown,
    }
    ready(site.client, unique_name())  # the offsets' topic exists
    internal = errors.TopicAuthorizationFailed.code
    assert producer.add_all([("__consumer_offsets", 0), (topic, 0)]) == {
        ("__consumer_offsets", 0): internal,
        (topic, 0): untried,
    }
    assert producer.described().topics == []


def test_brokers_ask_for_partitions(site: Site, topic: str) -> None:
    producer = site.producer()
    assert producer.add_as_broker(topic, 0, 1, verify=True) == [ABORTABLE, ABORTABLE]
    if site.version == 0:
        assert producer.add_as_broker(topic, 1) == [errors.UnsupportedVersion.code]
        return
    assert producer.add_as_broker(topic, 1) == [0]
    assert producer.add_as_broker(topic, 0, 1, verify=True) == [ABORTABLE, 0]
    zombie = producer.copy()
    zombie.epoch += 1
    assert zombie.add_as_broker(topic, 1) == [errors.ProducerFenced.code]
    assert zombie.add_as_broker(topic, 1, verify=True) == [errors.ProducerFenced.code]
