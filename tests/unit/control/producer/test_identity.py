"""The producer's identity: asked for once, bumped by itself, renewed when it is used up."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kafka_fast.control.backoff import Backoff
from kafka_fast.control.producer.identity import LAST_EPOCH, IdentityKeeper
from kafka_fast.control.producer.verdicts import Identity
from kafka_fast.control.troubles import Troubles
from kafka_fast.errors import ErrorCode, KafkaConnectionError, KafkaError
from kafka_fast.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

LINK: Any = "a link"
COORDINATOR_LOADING = 14


class Asked:
    """Links that keep what they were asked."""

    def __init__(self) -> None:
        self.requests: list[InitProducerIdRequest] = []
        self.answer: Callable[[InitProducerIdResponse, float], None]
        self.fail: Callable[[KafkaError, float], None]

    def ask(
        self, link: Any, body: Any, response: Any, answer: Any, fail: Any, *, timeout: float
    ) -> int:
        assert (link, timeout) == (LINK, 30.0)
        self.requests.append(body)
        self.answer, self.fail = answer, fail
        return 4


class World:
    """A keeper, and what it told."""

    def __init__(self) -> None:
        self.links = Asked()
        self.identities: list[Identity] = []
        self.fatal: list[KafkaError] = []
        context: Any = SimpleNamespace(
            links=SimpleNamespace(questions=self.links),
            backoff=Backoff(100, 1000, lambda: 0.5),
            troubles=Troubles(logging.getLogger("test")),
            settings=SimpleNamespace(request_timeout=30.0),
        )
        self.keeper = IdentityKeeper(
            context,
            on_identity=lambda identity, now: self.identities.append(identity),
            on_fatal=self.fatal.append,
        )

    def settle(self, *, code: int = 0, epoch: int = 0, now: float = 1.0) -> None:
        self.keeper.tick(LINK, now)
        response = InitProducerIdResponse(
            error_code=code, producer_id=4711 if code == 0 else -1, producer_epoch=epoch
        )
        self.links.answer(response, now)


def test_it_asks_once_and_tells_what_it_got() -> None:
    world = World()
    assert world.keeper.next_deadline() <= 1.0
    world.keeper.tick(None, 1.0)
    assert world.links.requests == []  # no link to ask over
    world.keeper.tick(LINK, 1.0)
    world.keeper.tick(LINK, 2.0)
    (request,) = world.links.requests
    assert (request.transactional_id, request.producer_id, request.producer_epoch) == (None, -1, -1)
    assert world.keeper.next_deadline() == float("inf")
    world.links.answer(InitProducerIdResponse(producer_id=4711, producer_epoch=3), 2.0)
    assert world.identities == [Identity(4711, 3)]
    assert world.keeper.identity == Identity(4711, 3)
    assert world.keeper.next_deadline() == float("inf")


def test_a_bump_needs_no_broker() -> None:
    world = World()
    world.settle(epoch=3)
    assert world.keeper.bump(2.0) == Identity(4711, 4)
    assert world.identities == [Identity(4711, 3), Identity(4711, 4)]
    assert len(world.links.requests) == 1


def test_rule_d_when_the_epochs_are_used_up_a_new_id_comes_first() -> None:
    world = World()
    world.settle(epoch=LAST_EPOCH - 2)
    assert world.keeper.bump(2.0) == Identity(4711, LAST_EPOCH - 1)
    assert world.keeper.bump(3.0) is None
    assert world.keeper.identity is None
    assert world.keeper.next_deadline() == 3.0
    assert world.keeper.bump(3.5) is None  # nothing to bump meanwhile
    world.settle(epoch=0, now=4.0)
    assert world.identities[-1] == Identity(4711, 0)
    assert len(world.links.requests) == 2


def test_a_lost_request_is_sent_again_after_a_growing_pause() -> None:
    world = World()
    pauses = []
    now = 1.0
    for _ in range(4):
        world.keeper.tick(LINK, now)
        world.links.fail(KafkaConnectionError("gone"), now)
        pauses.append(world.keeper.next_deadline() - now)
        now = world.keeper.next_deadline()
        world.keeper.tick(LINK, now - 0.001)  # too early
    assert len(world.links.requests) == 4
    assert 0.0 < pauses[0] < pauses[1] < pauses[2]
    assert world.fatal == []


def test_a_retriable_answer_is_waited_out() -> None:
    world = World()
    world.settle(code=COORDINATOR_LOADING)
    assert world.fatal == []
    assert 1.0 < world.keeper.next_deadline() < 2.0


def test_a_final_answer_ends_the_asking() -> None:
    world = World()
    world.settle(code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    (error,) = world.fatal
    assert error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert world.keeper.next_deadline() == float("inf")
