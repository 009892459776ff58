"""Fetch sessions (KIP-227): full and incremental fetches, and sessions that are not as they say."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from kafka_fast.protocol.apis.topics.create_topics import CreatableTopic
from kafka_fast.protocol.apis.topics.delete_topics import DeleteTopicState
from tests.integration.scenarios.steps import UNKNOWN_ID, create, delete, new_topic
from tests.integration.scenarios.wire import WireClient, batch, connected

NO_IDS, IDS = 12, 16  # versions: partitions by topic name, by topic id


class Session:
    """One fetch session as a consumer keeps it."""

    def __init__(self, client: WireClient, topic: str, version: int) -> None:
        self.client = client
        self.version = version
        self.topic = topic
        self.topic_id = client.metadata(topic).topics[0].topic_id
        self.session_id = 0
        self.epoch = 0

    def topics(self, offsets: dict[int, int], **changes: int) -> list[FetchTopic]:
        asked = [
            FetchPartition(
                partition=index, fetch_offset=offset, partition_max_bytes=1 << 20, **changes
            )
            for index, offset in offsets.items()
        ]
        return [FetchTopic(topic=self.topic, topic_id=self.topic_id, partitions=asked)]

    def request(
        self,
        offsets: dict[int, int] | None = None,
        *,
        forget: Sequence[int] = (),
        max_wait_ms: int = 0,
        epoch: int | None = None,
        session_id: int | None = None,
    ) -> FetchRequest:
        forgotten = ForgottenTopic(
            topic=self.topic, topic_id=self.topic_id, partitions=list(forget)
        )
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self.session_id if session_id is None else session_id,
            session_epoch=self.epoch if epoch is None else epoch,
            topics=self.topics(offsets) if offsets else [],
            forgotten_topics_data=[forgotten] if forget else [],
        )

    def fetch(self, offsets: dict[int, int] | None = None, **options: object) -> FetchResponse:
        """Fetch, and go on with the session as the answer says."""
        request = self.request(offsets, **options)  # type: ignore[arg-type]  # its own names
        response: FetchResponse = self.client.ask(request, self.version)
        if response.error_code == 0:
            self.session_id = response.session_id
            self.epoch = request.session_epoch + 1
        return response


def told(response: FetchResponse) -> list[tuple[int, int, int]]:
    """Return (partition, high watermark, bytes) of each partition that was answered."""
    assert response.error_code == 0
    return [
        (one.partition_index, one.high_watermark, len(one.records or b""))
        for topic in response.responses
        for one in topic.partitions
    ]


@pytest.fixture(params=[NO_IDS, IDS], ids=["names", "ids"])
def session(request: pytest.FixtureRequest, client: WireClient, topic: str) -> Session:
    """A session that has not begun, on a topic with three empty partitions."""
    return Session(client, topic, request.param)


SIZE = len(batch())


def test_only_what_is_new_is_told(session: Session) -> None:
    client, topic = session.client, session.topic
    assert told(session.fetch({0: 0, 1: 0, 2: 0})) == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    assert session.session_id > 0
    assert told(session.fetch()) == []
    client.produce(topic, batch(), partition=1)
    assert told(session.fetch()) == [(1, 1, SIZE)]
    assert told(session.fetch({1: 1})) == []
    assert told(session.fetch()) == []
    client.produce(topic, batch(), partition=1)
    assert told(session.fetch()) == [(1, 2, SIZE)]


def test_records_come_again_until_the_position_is_told(session: Session) -> None:
    session.client.produce(session.topic, batch())
    assert told(session.fetch({0: 0})) == [(0, 1, SIZE)]
    assert told(session.fetch()) == [(0, 1, SIZE)]
    assert told(session.fetch({0: 1})) == []


def test_a_new_log_start_is_told(session: Session) -> None:
    session.client.produce(session.topic, batch(3))
    assert told(session.fetch({0: 3})) == [(0, 3, 0)]
    session.client.delete_records(session.topic, 0, 2)
    answer = session.fetch()
    assert told(answer) == [(0, 3, 0)]
    assert answer.responses[0].partitions[0].log_start_offset == 2


def test_partitions_are_added_and_forgotten(session: Session) -> None:
    for partition in range(3):
        session.client.produce(session.topic, batch(), partition=partition)
    assert told(session.fetch({0: 0})) == [(0, 1, SIZE)]
    assert sorted(told(session.fetch({1: 0}))) == [(0, 1, SIZE), (1, 1, SIZE)]
    assert told(session.fetch(forget=[0])) == [(1, 1, SIZE)]
    assert told(session.fetch({2: 0}, forget=[1, 0])) == [(2, 1, SIZE)]


def test_who_gave_records_is_read_last_the_next_time(session: Session) -> None:
    assert len(told(session.fetch({0: 0, 1: 0, 2: 0}))) == 3
    session.client.produce(session.topic, batch(), partition=0)
    assert [one[0] for one in told(session.fetch())] == [0]
    for partition in (1, 2):
        session.client.produce(session.topic, batch(), partition=partition)
    assert [one[0] for one in told(session.fetch())] == [1, 2, 0]


def test_a_session_without_partitions_ends(session: Session) -> None:
    session.fetch({0: 0, 1: 0})
    known = session.session_id
    assert told(session.fetch(forget=[0, 1])) == []
    assert session.session_id == 0
    gone = session.client.ask(session.request(session_id=known, epoch=2), session.version)
    assert gone.error_code == errors.FetchSessionIdNotFound.code


def test_the_last_fetch_names_everything_and_ends_the_session(session: Session) -> None:
    session.client.produce(session.topic, batch())
    session.fetch({0: 0, 1: 0})
    known = session.session_id
    last = session.client.ask(session.request({0: 0}, epoch=-1), session.version)
    assert (last.session_id, told(last)) == (0, [(0, 1, SIZE)])
    gone = session.client.ask(session.request(session_id=known, epoch=1), session.version)
    assert (gone.error_code, gone.session_id) == (errors.FetchSessionIdNotFound.code, 0)


def test_a_new_full_fetch_replaces_the_session(session: Session) -> None:
    session.fetch({0: 0})
    known = session.session_id
    session.epoch = 0
    assert told(session.fetch({1: 0})) == [(1, 0, 0)]
    assert session.session_id not in (0, known)
    gone = session.client.ask(session.request(session_id=known, epoch=1), session.version)
    assert gone.error_code == errors.FetchSessionIdNotFound.code
    assert told(session.fetch()) == []


@pytest.mark.parametrize("epoch", [2, 5, 1])
def test_an_epoch_that_is_not_next(session: Session, epoch: int) -> None:
    session.fetch({0: 0})
    session.fetch()
    session.fetch()
    assert session.epoch == 3
    refused = session.client.ask(session.request(epoch=epoch), session.version)
    code = errors.InvalidFetchSessionEpoch.code
    assert (refused.error_code, refused.session_id, refused.responses) == (code, 0, [])
    assert told(session.fetch()) == []


def test_names_and_ids_do_not_mix(session: Session) -> None:
    session.fetch({0: 0})
    other = NO_IDS if session.version == IDS else IDS
    refused = session.client.ask(session.request(), other)
    assert refused.error_code == errors.FetchSessionTopicIdError.code
    assert told(session.fetch()) == []


def test_errors_are_told_until_they_are_gone(session: Session) -> None:
    out = errors.OffsetOutOfRange.code

    def codes(response: FetchResponse) -> list[tuple[int, int]]:
        assert response.error_code == 0
        partitions = [one for topic in response.responses for one in topic.partitions]
        return [(one.partition_index, one.error_code) for one in partitions]

    assert codes(session.fetch({0: 5, 1: 0})) == [(0, out), (1, 0)]
    assert codes(session.fetch()) == [(0, out)]
    assert codes(session.fetch({0: 0})) == [(0, 0)]
    assert codes(session.fetch()) == []


def test_a_session_waits_for_any_of_its_partitions(address: str, session: Session) -> None:
    session.fetch({0: 0, 1: 0, 2: 0})
    start = time.monotonic()
    assert told(session.fetch(max_wait_ms=200)) == []
    assert 0.19 <= time.monotonic() - start < 5
    with connected(address) as other:
        request = session.request(max_wait_ms=8000)
        session.client.send(request, session.version)
        other.produce(session.topic, batch(), partition=2)
        response = session.client.answer(request, session.version)
        assert told(response) == [(2, 1, SIZE)]


def test_a_partition_that_does_not_exist_is_told_each_time(session: Session) -> None:
    unknown = errors.UnknownTopicOrPartition.code
    for _ in range(2):
        response = session.fetch({0: 0, 7: 0} if session.epoch == 0 else None)
        codes = {one.partition_index: one.error_code for one in response.responses[-1].partitions}
        assert codes[7] == unknown


def test_a_topic_id_that_nobody_has(client: WireClient, topic: str) -> None:
    session = Session(client, topic, IDS)
    session.topic_id = UNKNOWN_ID
    answer = session.fetch({0: 0}).responses[0]
    assert (answer.topic_id, answer.partitions[0].error_code) == (
        UNKNOWN_ID,
        errors.UnknownTopicId.code,
    )
    again = session.fetch().responses[0]
    assert again.partitions[0].error_code == errors.UnknownTopicId.code


def test_a_topic_that_was_made_anew(client: WireClient) -> None:
    name = new_topic(client)
    session = Session(client, name, IDS)
    session.fetch({0: 0})
    assert delete(client, DeleteTopicState(name=name))[0].error_code == 0
    client.wait_for_topic(name, gone=True)
    gone = session.fetch().responses[0].partitions[0]
    assert gone.error_code == errors.UnknownTopicOrPartition.code
    created = create(client, CreatableTopic(name=name, num_partitions=3, replication_factor=1))
    assert created[0].error_code == 0
    client.wait_for_topic(name)
    made_anew = session.fetch().responses[0].partitions[0]
    assert made_anew.error_code == errors.InconsistentTopicId.code
