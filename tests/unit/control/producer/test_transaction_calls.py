"""What is sent for a transaction, and what the answers mean for it and for its producer."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.control.producer.transaction_calls import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    EndTransaction,
    OpenTransaction,
)
from kafka_fast.control.producer.verdicts import ProducerIdentity
from kafka_fast.control.requests.call import ONLY, AnswerSource
from kafka_fast.control.requests.meanings import Done, FindAgain, Refused, Retry
from kafka_fast.errors import (
    AbortableTransactionError,
    BrokerError,
    KafkaError,
    ProducerFencedError,
    UnsupportedVersionError,
)
from kafka_fast.protocol.apis.transactions.add_offsets_to_txn import AddOffsetsToTxnResponse
from kafka_fast.protocol.apis.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kafka_fast.protocol.apis.transactions.end_txn import EndTxnResponse
from kafka_fast.protocol.apis.transactions.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafka_fast.types import GroupMetadata, OffsetAndMetadata, TopicPartition

ME = ProducerIdentity(7, 3)
NOT_COORDINATOR, LOADING = 16, 14
INVALID_EPOCH, INVALID_STATE, ID_MAPPING, CONCURRENT, ID_REFUSED = 47, 48, 49, 51, 53
FENCED, ABORTABLE, TOPIC_REFUSED, NOT_ATTEMPTED, STALE, ILLEGAL = 90, 120, 29, 55, 113, 22
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
MEMBER = GroupMetadata("g", 4, "member", "instance")


def opened(version: int = 2) -> OpenTransaction:
    return OpenTransaction("id", ME, version, began=100.0, timeout=60.0)


def source(now: float = 101.0) -> AnswerSource:
    return AnswerSource(5, "node 1", now)


def nobody(*arguments: object) -> None:
    raise AssertionError(arguments)


def adding() -> AddPartitions:
    return AddPartitions(opened(1), timeout=1.0, on_added=nobody, on_failed=nobody)


def ending(*, commits: bool = True, version: int = 2) -> EndTransaction:
    return EndTransaction(
        opened(version), commits=commits, timeout=1.0, on_done=nobody, on_failed=nobody
    )


def offsets(group: GroupMetadata = MEMBER, version: int = 2) -> CommitOffsets:
    given = {A0: OffsetAndMetadata(5, 2, "note"), A1: OffsetAndMetadata(6)}
    return CommitOffsets(opened(version), group, given, timeout=1.0, on_ended=nobody)


def meaning_of_end(code: int, now: float = 101.0, *, commits: bool = True) -> Any:
    answer = EndTxnResponse(throttle_time_ms=0, error_code=code)
    (item, meaning), *rest = ending(commits=commits).read(answer, [ONLY], source(now))
    assert (item, rest) == (ONLY, [])
    return meaning


def error_of_end(code: int, now: float = 101.0) -> KafkaError:
    meaning = meaning_of_end(code, now)
    assert isinstance(meaning, Refused)
    return meaning.error


class TestTheEnd:
    @pytest.mark.parametrize("commits", [True, False])
    def test_names_the_producer_and_the_decision(self, commits: bool) -> None:
        request = ending(commits=commits).build([ONLY], 5)
        assert (request.transactional_id, request.committed) == ("id", commits)
        assert (request.producer_id, request.producer_epoch) == (7, 3)

    def test_an_answer_of_version_2_brings_the_next_epoch(self) -> None:
        answer = EndTxnResponse(throttle_time_ms=0, error_code=0, producer_id=7, producer_epoch=4)
        assert list(ending().read(answer, [ONLY], source())) == [
            (ONLY, Done(ProducerIdentity(7, 4)))
        ]

    def test_an_answer_of_version_1_brings_none(self) -> None:
        answer = EndTxnResponse(throttle_time_ms=0, error_code=0)
        assert list(ending(version=1).read(answer, [ONLY], source())) == [(ONLY, Done(None))]

    @pytest.mark.parametrize(("version", "last"), [(1, 4), (2, 5)])
    def test_no_epoch_is_asked_for_in_version_1(self, version: int, last: int) -> None:
        assert ending(version=version).max_version([ONLY]) == last

    def test_what_may_end_soon_is_tried_again_soon(self) -> None:
        meaning = meaning_of_end(CONCURRENT)
        assert isinstance(meaning, Retry)
        assert meaning.soon == 0.02

    @pytest.mark.parametrize(("code", "kind"), [(NOT_COORDINATOR, FindAgain), (LOADING, Retry)])
    def test_a_coordinator_that_moves_is_waited_for(self, code: int, kind: type) -> None:
        assert isinstance(meaning_of_end(code), kind)

    @pytest.mark.parametrize("code", [INVALID_EPOCH, FENCED])
    def test_a_newer_producer_stops_this_one(self, code: int) -> None:
        error = error_of_end(code)
        assert isinstance(error, ProducerFencedError)
        assert "'id' belongs to a newer producer" in str(error)
        assert isinstance(error.__cause__, BrokerError)

    def test_after_its_time_it_can_be_aborted(self) -> None:
        error = error_of_end(INVALID_STATE, now=160.5)
        assert isinstance(error, AbortableTransactionError)
        assert "60.5 s, longer than transaction.timeout.ms (60000)" in str(error)

    @pytest.mark.parametrize(("version", "names_time"), [(1, True), (2, False)])
    @pytest.mark.parametrize("code", [INVALID_EPOCH, FENCED])
    def test_after_its_time_version_1_fences_it(
        self, code: int, version: int, names_time: bool
    ) -> None:
        """A successor may have the id: it is not asked for again."""
        answer = EndTxnResponse(throttle_time_ms=0, error_code=code)
        ((_, meaning),) = ending(version=version).read(answer, [ONLY], source(160.5))
        assert isinstance(meaning, Refused)
        assert isinstance(meaning.error, ProducerFencedError)
        assert ("60.5 s, longer than transaction.timeout.ms" in str(meaning.error)) == names_time

    @pytest.mark.parametrize("code", [INVALID_STATE, ABORTABLE, ID_MAPPING, 999])
    def test_anything_else_can_be_aborted(self, code: int) -> None:
        error = error_of_end(code)
        assert isinstance(error, AbortableTransactionError)
        cause = error.__cause__
        assert isinstance(cause, BrokerError)
        assert cause.code == code

    def test_a_missing_permission_is_named_and_stops_the_producer(self) -> None:
        error = error_of_end(ID_REFUSED)
        assert isinstance(error, BrokerError)
        assert "needs WRITE on the transactional id" in str(error)


class TestPartitions:
    def test_are_named_by_topic(self) -> None:
        request = adding().build([A0, B0, A1], 3)
        assert [(t.name, t.partitions) for t in request.v3_and_below_topics] == [
            ("a", [0, 1]),
            ("b", [0]),
        ]
        assert request.v3_and_below_producer_epoch == 3

    def test_the_versions_for_brokers_are_not_used(self) -> None:
        assert adding().max_version([A0]) == 3

    def test_one_refusal_leaves_the_others_to_be_tried_again(self) -> None:
        results = [
            AddPartitionsToTxnTopicResult(
                name="a",
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=0, partition_error_code=TOPIC_REFUSED
                    ),
                    AddPartitionsToTxnPartitionResult(
                        partition_index=1, partition_error_code=NOT_ATTEMPTED
                    ),
                ],
            ),
            AddPartitionsToTxnTopicResult(
                name="b",
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=0)
                ],
            ),
        ]
        answer = AddPartitionsToTxnResponse(
            throttle_time_ms=0, results_by_topic_v3_and_below=results
        )
        meanings = dict(adding().read(answer, [A0, A1, B0], source()))
        refused = meanings[A0]
        assert isinstance(refused, Refused)
        assert isinstance(refused.error, AbortableTransactionError)
        assert "AddPartitionsToTxn of a-0" in str(refused.error)
        assert isinstance(meanings[A1], Retry)
        assert meanings[B0] == Done(None)


class TestOffsets:
    def test_carry_the_member_epoch_and_note(self) -> None:
        request = offsets().build([ONLY], 5)
        assert (request.group_id, request.generation_id_or_member_epoch) == ("g", 4)
        assert (request.member_id, request.group_instance_id) == ("member", "instance")
        (topic,) = request.topics
        assert [
            (p.partition_index, p.committed_offset, p.committed_leader_epoch, p.committed_metadata)
            for p in topic.partitions
        ] == [(0, 5, 2, "note"), (1, 6, -1, "")]

    def test_what_the_answer_leaves_out_is_sent_again(self) -> None:
        ((_, meaning),) = offsets().read(self.answer({0: 0}), [ONLY], source())
        assert isinstance(meaning, Retry)
        assert "leaves a-1 out" in str(meaning.error)

    def test_what_was_taken_is_not_sent_again(self) -> None:
        call = offsets()
        (item, meaning), *_ = call.read(self.answer({0: 0, 1: LOADING}), [ONLY], source())
        assert isinstance(meaning, Retry)
        request = call.build([ONLY], 5)
        assert [p.partition_index for p in request.topics[0].partitions] == [1]
        assert list(call.read(self.answer({1: 0}), [ONLY], source())) == [(item, Done(None))]

    @pytest.mark.parametrize("code", [STALE, ILLEGAL])
    def test_a_group_that_has_gone_on_makes_the_transaction_abortable(self, code: int) -> None:
        ((_, meaning),) = offsets().read(self.answer({0: code}), [ONLY], source())
        assert isinstance(meaning, Refused)
        assert isinstance(meaning.error, AbortableTransactionError)
        assert "TxnOffsetCommit of a-0 in group 'g'" in str(meaning.error)

    def test_an_old_broker_takes_no_member(self) -> None:
        error = offsets().unsupported(ONLY, 2)
        assert isinstance(error, UnsupportedVersionError)
        assert "Kafka 2.5" in str(error)
        assert offsets(GroupMetadata("g", -1, "", None)).unsupported(ONLY, 2) is None
        assert offsets().unsupported(ONLY, 3) is None

    @pytest.mark.parametrize(("version", "last"), [(1, 4), (2, 5)])
    def test_the_leader_adds_the_group_in_version_2_only(self, version: int, last: int) -> None:
        assert offsets(version=version).max_version([ONLY]) == last

    def answer(self, codes: dict[int, int]) -> TxnOffsetCommitResponse:
        return TxnOffsetCommitResponse(
            throttle_time_ms=0,
            topics=[
                TxnOffsetCommitResponseTopic(
                    name="a",
                    partitions=[
                        TxnOffsetCommitResponsePartition(partition_index=number, error_code=code)
                        for number, code in codes.items()
                    ],
                )
            ],
        )


class TestTheGroup:
    def adding(self) -> AddOffsets:
        return AddOffsets(opened(1), "g", timeout=1.0, on_ended=nobody)

    def test_is_added_by_name(self) -> None:
        request = self.adding().build([ONLY], 3)
        assert (request.transactional_id, request.group_id, request.producer_id) == ("id", "g", 7)

    def test_soon_after_the_last_transaction_it_is_tried_again_soon(self) -> None:
        answer = AddOffsetsToTxnResponse(throttle_time_ms=0, error_code=CONCURRENT)
        ((_, meaning),) = self.adding().read(answer, [ONLY], source())
        assert isinstance(meaning, Retry)
        assert meaning.soon == 0.02

    def test_a_missing_permission_on_the_group_makes_it_abortable(self) -> None:
        answer = AddOffsetsToTxnResponse(throttle_time_ms=0, error_code=30)
        ((_, meaning),) = self.adding().read(answer, [ONLY], source())
        assert isinstance(meaning, Refused)
        assert isinstance(meaning.error, AbortableTransactionError)
        assert "needs READ on the group" in str(meaning.error)
