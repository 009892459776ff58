"""The calls of the requester's world: one for each kind of target, judged as they go.

The value of an item is the id of the node that answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Protocol

from kafka_fast.control.requests.call import ONLY, AnswerSource, Call
from kafka_fast.control.requests.meanings import Done, Meaning, meaning_of
from kafka_fast.control.requests.open_call import OpenCall
from kafka_fast.control.requests.requester import Requester
from kafka_fast.control.requests.targets import AllNodes, OneNode, Target
from kafka_fast.errors import KafkaError
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis.configs.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kafka_fast.protocol.apis.groups import describe_groups
from kafka_fast.protocol.apis.records import list_offsets
from kafka_fast.protocol.apis.topics import create_topics
from kafka_fast.protocol.apis.transactions.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafka_fast.protocol.schema import Request
from kafka_fast.types import TopicPartition

BROKER_RESOURCE = 4
REQUEST_TIMEOUT = 1.0


class Judge(Protocol):
    """What judges the calls: the world."""

    requester: Requester

    def new_trial(self, call: Probe, item: Any) -> Trial:
        """Return a new record of an item."""

    def fail(self, what: str) -> None:
        """Keep that something is wrong."""

    def check_send(self, trial: Trial, *, beside: bool) -> None:
        """Judge that an item is sent."""

    def check_end(self, trial: Trial, how: str) -> None:
        """Judge how an item ends."""


class Trial:
    """What is known of one item of one call."""

    def __init__(self, name: str, *, deadline: float, is_repeatable: bool) -> None:
        self.name = name
        self.deadline = deadline
        self.is_repeatable = is_repeatable
        self.given_up = False
        self.endings: list[tuple[float, str]] = []
        self.sent_at = -NEVER
        self.is_unanswered = False
        """It was sent, and nobody knows whether it was carried out."""


class Probe(Call[Any, int]):
    """A call of the world."""

    def __init__(self, world: Judge, target: Target[Any], deadline: float) -> None:
        super().__init__(target, timeout=REQUEST_TIMEOUT)
        self.world = world
        self.deadline = deadline
        self.trials: dict[Any, Trial] = {}
        self.opened: OpenCall[Any, int] | None = None

    # ---- the user ----

    def begin(self, items: Sequence[Any] | None) -> None:
        """Hand the items to the requester, and keep the open call; None: all nodes."""
        for item in items or ():
            self.trial(item)
        self.opened = self.world.requester.open_call(self, items, deadline=self.deadline)

    def cancel(self) -> None:
        """Cancel all of it."""
        assert self.opened is not None
        for item in self.opened:
            self.trial(item).given_up = True
        self.opened.cancel()

    def discard(self, chance: Random) -> None:
        """Give up one item, if there is one."""
        assert self.opened is not None
        if self.opened.items:
            item = chance.choice(list(self.opened))
            self.trial(item).given_up = True
            self.opened.discard(item)

    def ask_anew(self, chance: Random) -> None:
        """Ask about one item anew, if there is one: the answer under way must not count."""
        assert self.opened is not None
        if self.opened.items:
            item = chance.choice(list(self.opened))
            self.trial(item).given_up = True
            del self.trials[item]
            self.trial(item)
            self.opened.add_item(item)

    def trial(self, item: Any) -> Trial:
        """Return the record of an item; those of a call to all nodes begin when they are met."""
        if item not in self.trials:
            self.trials[item] = self.world.new_trial(self, item)
        return self.trials[item]

    # ---- the call ----

    def note_sent(self, items: Iterable[Any]) -> None:
        """Record that these items are sent, and check that they may be."""
        for item in items:
            self.world.check_send(self.trial(item), beside=self.beside_after < NEVER)

    def handle_done(self, item: Any, value: int, now: float) -> None:
        """Take an answer."""
        trial = self.trial(item)
        self.world.check_end(trial, f"done by {value}")
        match self.target:
            case OneNode(node_id) if node_id != value:
                self.world.fail(f"{trial.name}: answered by node {value}")
            case AllNodes() if item != value:
                self.world.fail(f"{trial.name}: answered by node {value}")

    def handle_failed(self, item: Any, error: KafkaError, now: float) -> None:
        """Take an error."""
        self.world.check_end(self.trial(item), f"failed: {error}")


class ListOffsets(Probe):
    """To leaders, several items in one request."""

    request_class = list_offsets.ListOffsetsRequest
    response_class = list_offsets.ListOffsetsResponse

    def build(self, items: Sequence[Any], version: int) -> Request:
        """Ask for the ends of these partitions."""
        self.note_sent(items)
        return list_offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=[
                list_offsets.ListOffsetsTopic(
                    name=item.topic,
                    partitions=[
                        list_offsets.ListOffsetsPartition(
                            partition_index=item.partition, timestamp=-1
                        )
                    ],
                )
                for item in items
            ],
        )

    def read(
        self, answer: Any, items: Sequence[Any], source: AnswerSource
    ) -> Iterable[tuple[Any, Meaning[int]]]:
        """Return what the leaders say."""
        for topic in answer.topics:
            for part in topic.partitions:
                item = TopicPartition(topic.name, part.partition_index)
                if part.error_code:
                    yield item, meaning_of(part.error_code, self.describe(item), topic=topic.name)
                else:
                    yield item, Done(part.offset)


class DescribeGroups(Probe):
    """To coordinators: each item to its own."""

    request_class = describe_groups.DescribeGroupsRequest
    response_class = describe_groups.DescribeGroupsResponse

    def build(self, items: Sequence[Any], version: int) -> Request:
        """Ask for these groups."""
        self.note_sent(items)
        return describe_groups.DescribeGroupsRequest(groups=list(items))

    def read(
        self, answer: Any, items: Sequence[Any], source: AnswerSource
    ) -> Iterable[tuple[Any, Meaning[int]]]:
        """Return what the coordinators say."""
        for group in answer.groups:
            if group.error_code:
                yield group.group_id, meaning_of(group.error_code, self.describe(group.group_id))
            else:
                yield group.group_id, Done(int(group.group_state))


class InitProducerId(Probe):
    """To any node."""

    request_class = InitProducerIdRequest
    response_class = InitProducerIdResponse

    def build(self, items: Sequence[Any], version: int) -> Request:
        """Ask for an id."""
        self.note_sent(items)
        return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)

    def read(
        self, answer: Any, items: Sequence[Any], source: AnswerSource
    ) -> Iterable[tuple[Any, Meaning[int]]]:
        """Return the node's word."""
        if answer.error_code:
            yield ONLY, meaning_of(answer.error_code, self.api)
        else:
            yield ONLY, Done(answer.producer_id)


class InitProducerIdBeside(InitProducerId):
    """To any node, and to another one if that is silent."""

    beside_after = 0.2


class CreateTopics(Probe):
    """To the controller; what may have been done is not ordered again."""

    request_class = create_topics.CreateTopicsRequest
    response_class = create_topics.CreateTopicsResponse
    is_repeatable = False

    def build(self, items: Sequence[Any], version: int) -> Request:
        """Have these topics made."""
        self.note_sent(items)
        topics = [
            create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in items
        ]
        return create_topics.CreateTopicsRequest(topics=topics)

    def read(
        self, answer: Any, items: Sequence[Any], source: AnswerSource
    ) -> Iterable[tuple[Any, Meaning[int]]]:
        """Return what the controller says."""
        for topic in answer.topics:
            self.trial(topic.name).is_unanswered = False
            if topic.error_code:
                yield topic.name, meaning_of(topic.error_code, self.describe(topic.name))
            else:
                yield topic.name, Done(topic.num_partitions)


class DescribeConfigs(Probe):
    """To one node, or to each of all."""

    request_class = DescribeConfigsRequest
    response_class = DescribeConfigsResponse

    def build(self, items: Sequence[Any], version: int) -> Request:
        """Ask for the configuration of the node itself."""
        self.note_sent(items)
        resources = [
            DescribeConfigsResource(resource_type=BROKER_RESOURCE, resource_name=str(node_id))
            for node_id in items
        ]
        return DescribeConfigsRequest(resources=resources)

    def read(
        self, answer: Any, items: Sequence[Any], source: AnswerSource
    ) -> Iterable[tuple[Any, Meaning[int]]]:
        """Return which node answered; of the `OneNode` call the item is `ONLY`."""
        for item, result in zip(items, answer.results, strict=False):
            if result.error_code:
                yield item, meaning_of(result.error_code, self.describe(item))
            else:
                yield item, Done(int(result.error_message))
