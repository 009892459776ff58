"""TxnOffsetCommit: positions of a group that take effect when a transaction commits.

To the transaction the group is a partition of the offsets topic, whose leader is the coordinator of
the group. Up to version 4 it has to be added before, later versions add it.
"""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    IllegalGeneration,
    InvalidProducerEpoch,
    InvalidTxnState,
    OffsetMetadataTooLarge,
    ProducerFenced,
    StaleMemberEpoch,
    TopicAuthorizationFailed,
    TransactionAbortable,
    TransactionalIdAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from kafka_fast.protocol.apis.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafka_fast.testing.broker.acls import Operation, ResourceType
from kafka_fast.testing.broker.groups.consumer import ConsumerGroup
from kafka_fast.testing.broker.groups.coordinator import coordinator_of
from kafka_fast.testing.broker.groups.offsets import CommittedOffset
from kafka_fast.testing.broker.partitions.cluster_topics import Partition, Topic
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers
from kafka_fast.testing.broker.transactions.verification import verify_partitions

_ABORTABLE_FROM_VERSION = 4  # older clients do not know TRANSACTION_ABORTABLE
_ADDS_FROM_VERSION = 5  # since then it is of version 2 of transactions (KIP-890)
_IDS_FROM_VERSION = 6
_STALE_FROM_VERSION = 6  # older clients do not know STALE_MEMBER_EPOCH here

_Place = tuple[TxnOffsetCommitRequestTopic, Topic, TxnOffsetCommitRequestPartition]


@answers(TxnOffsetCommitRequest)
def answer(request: ReceivedRequest) -> TxnOffsetCommitResponse:
    """Keep what may be kept, and say so, partition by partition."""
    body: TxnOffsetCommitRequest = request.body
    code = _unauthorized(request)
    codes: dict[int, int] = {}  # by identity of the asked partition
    places: list[_Place] = []
    for asked in body.topics:
        topic = _find(request, asked)
        for one in asked.partitions:
            codes[id(one)] = code or _problem_of(request, asked, topic, one)
            if not codes[id(one)] and topic is not None:
                places.append((asked, topic, one))
    if places:
        try:
            _commit(request, places, codes)
        except BrokerError as error:
            codes.update((id(one), error.code) for _, _, one in places)
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=asked.name,
                topic_id=asked.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=one.partition_index, error_code=codes[id(one)]
                    )
                    for one in asked.partitions
                ],
            )
            for asked in body.topics
        ]
    )


def _unauthorized(request: ReceivedRequest) -> int:
    """Return the error code for a user without the rights, 0: it has them."""
    body: TxnOffsetCommitRequest = request.body
    try:
        request.check_transactional_id(Operation.WRITE, body.transactional_id)
        request.check_group(Operation.READ, body.group_id)
    except (TransactionalIdAuthorizationFailed, GroupAuthorizationFailed) as error:
        return error.code
    return 0


def _find(request: ReceivedRequest, asked: TxnOffsetCommitRequestTopic) -> Topic | None:
    if request.version < _IDS_FROM_VERSION:
        return request.state.topics.get(asked.name)
    name = request.state.topic_names.get(asked.topic_id)
    return None if name is None else request.state.topics[name]


def _problem_of(
    request: ReceivedRequest,
    asked: TxnOffsetCommitRequestTopic,
    topic: Topic | None,
    one: TxnOffsetCommitRequestPartition,
) -> int:
    """Return the error code of a partition that nothing can be committed for, 0: something can."""
    if topic is None and request.version >= _IDS_FROM_VERSION:
        return UnknownTopicId.code
    name = asked.name if topic is None else topic.name
    if not request.allows(Operation.READ, ResourceType.TOPIC, name):
        return TopicAuthorizationFailed.code
    if topic is None or not 0 <= one.partition_index < len(topic.partitions):
        return UnknownTopicOrPartition.code
    return 0


def _commit(request: ReceivedRequest, places: list[_Place], codes: dict[int, int]) -> None:
    """Keep the positions until the transaction ends.

    Raises:
        BrokerError: the answer for all of them.
    """
    body: TxnOffsetCommitRequest = request.body
    request.coordinator.check_named(body.group_id, request.now)
    partition = coordinator_of(request.state, body.group_id)
    assert partition is not None  # this broker leads it
    _check_transaction(request, partition)
    _check_member(request, places)
    producers, transactions = partition.producers, partition.log.transactions
    producers.check_epoch(body.producer_id, body.producer_epoch)
    offsets = request.coordinator.offsets(body.group_id)
    for _, topic, one in places:
        planned = request.planned_error(topic.name, one.partition_index)
        if planned is not None:
            codes[id(one)] = planned.code
        if planned is not None and not planned.applied:
            continue
        if len(one.committed_metadata or "") > request.coordinator.settings.offset_metadata_max:
            codes[id(one)] = OffsetMetadataTooLarge.code
            continue
        committed = CommittedOffset(
            one.committed_offset,
            one.committed_leader_epoch,
            one.committed_metadata or "",
            topic.topic_id,
        )
        offsets.commit_later(body.producer_id, topic.name, one.partition_index, committed)
        producers.touch(body.producer_id, body.producer_epoch, request.state.unix_ms(request.now))
        transactions.open(body.producer_id, partition.log.end_offset)


def _check_transaction(request: ReceivedRequest, partition: Partition) -> None:
    """Refuse offsets that are not in the transaction; later versions put them into it.

    Raises:
        BrokerError: the answer.
    """
    body: TxnOffsetCommitRequest = request.body
    goes_on = (
        partition.log.transactions.is_open(body.producer_id)
        and partition.producers.epoch(body.producer_id) == body.producer_epoch
    )
    adds = request.version >= _ADDS_FROM_VERSION
    if goes_on or not (adds or request.state.settings.transactions.verification):
        return
    place = (partition.topic, partition.index)
    verdicts = verify_partitions(
        request.state,
        body.transactional_id,
        body.producer_id,
        body.producer_epoch,
        [place],
        request.now,
        add=adds,
    )
    error = verdicts[place]
    if isinstance(error, ProducerFenced):
        raise InvalidProducerEpoch(error.args[0])
    if isinstance(error, TransactionAbortable) and request.version < _ABORTABLE_FROM_VERSION:
        raise InvalidTxnState(error.args[0])
    if error is not None:
        raise error


def _check_member(request: ReceivedRequest, places: list[_Place]) -> None:
    """Refuse who names a member that is none, or not in this generation (KIP-447).

    Raises:
        BrokerError: the answer.
    """
    body: TxnOffsetCommitRequest = request.body
    generation = body.generation_id_or_member_epoch
    try:
        group = request.coordinator.group(body.group_id, create=generation < 0)
    except GroupIdNotFound as error:
        raise IllegalGeneration(f"no group {body.group_id!r}") from error
    names_nobody = generation < 0 and not body.member_id and body.group_instance_id is None
    if names_nobody or (generation < 0 and group.is_empty):
        return
    if not isinstance(group, ConsumerGroup):
        group.check_member(generation, body.member_id, body.group_instance_id)
        return
    partitions = [(topic.topic_id, one.partition_index) for _, topic, one in places]
    try:
        group.check_owner(generation, body.member_id, partitions)
    except StaleMemberEpoch as error:
        if request.version >= _STALE_FROM_VERSION:
            raise
        raise IllegalGeneration(error.args[0]) from error
