"""The producer's identity: asked for once, bumped by itself, renewed when it is used up."""

from __future__ import annotations

from kafka_fast.control.messages import SendRaw
from kafka_fast.control.producer.identity import LAST_EPOCH, InitProducerIdCall
from kafka_fast.control.producer.verdicts import ProducerIdentity
from kafka_fast.control.requests.any_node import SILENT_NODE_PATIENCE
from kafka_fast.errors import BrokerError, ErrorCode, KafkaError, UnsupportedVersionError
from kafka_fast.protocol.apis.transactions.init_producer_id import InitProducerIdResponse
from tests.unit.control.requests.rig import REQUEST_TIMEOUT, RequesterRig, request_of


class World:
    """A call for a producer id, and what it told."""

    def __init__(self) -> None:
        self.rig = RequesterRig()
        self.identities: list[ProducerIdentity] = []
        self.fatal: list[KafkaError] = []
        self.call = InitProducerIdCall(
            self.rig.context(),
            on_identity=lambda identity, now: self.identities.append(identity),
            on_fatal=self.fatal.append,
        )

    def asked(self, now: float) -> list[SendRaw]:
        self.call.want_identity()
        return self.rig.tick(now)

    def settle(self, *, code: int = 0, epoch: int = 0, now: float = 1.0) -> None:
        self.rig.open(1)
        (sent,) = self.asked(now)
        producer_id = 4711 if code == 0 else -1
        self.rig.answer(
            sent,
            InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch),
        )


def test_it_asks_once_and_tells_what_it_got() -> None:
    world = World()
    assert world.asked(1.0) == []  # no link to ask over
    world.rig.open(1)
    (sent,) = world.asked(1.0)
    assert world.asked(2.0) == []
    request = request_of(sent)
    assert (request.transactional_id, request.producer_id, request.producer_epoch) == (None, -1, -1)
    assert sent.timeout == REQUEST_TIMEOUT
    world.rig.answer(sent, InitProducerIdResponse(producer_id=4711, producer_epoch=3))
    assert world.identities == [ProducerIdentity(4711, 3)]
    assert world.call.identity == ProducerIdentity(4711, 3)
    assert world.asked(9.0) == []


def test_a_silent_node_does_not_hold_the_id_up() -> None:
    """Regression: a node that was stopped kept it until request.timeout.ms."""
    world = World()
    world.rig.open(1)
    world.rig.open(2)
    (silent,) = world.asked(1.0)
    (beside,) = world.asked(1.0 + SILENT_NODE_PATIENCE)
    assert {silent.link_id, beside.link_id} == {10, 20}
    world.rig.answer(beside, InitProducerIdResponse(producer_id=4711))
    world.rig.answer(silent, InitProducerIdResponse(producer_id=4712))
    assert world.identities == [ProducerIdentity(4711, 0)]


def test_a_bump_needs_no_broker() -> None:
    world = World()
    world.settle(epoch=3)
    assert world.call.bump(2.0) == ProducerIdentity(4711, 4)
    assert world.identities == [ProducerIdentity(4711, 3), ProducerIdentity(4711, 4)]
    assert world.asked(3.0) == []


def test_rule_d_when_the_epochs_are_used_up_a_new_id_comes_first() -> None:
    world = World()
    world.settle(epoch=LAST_EPOCH - 2)
    assert world.call.bump(2.0) == ProducerIdentity(4711, LAST_EPOCH - 1)
    assert world.call.bump(3.0) is None
    assert world.call.identity is None
    assert world.call.bump(3.5) is None  # nothing to bump meanwhile
    world.settle(epoch=0, now=4.0)
    assert world.identities[-1] == ProducerIdentity(4711, 0)


def test_a_retriable_answer_is_waited_out() -> None:
    world = World()
    world.settle(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert world.fatal == []
    assert world.asked(1.05) == []
    assert len(world.asked(1.2)) == 1


def test_a_final_answer_ends_the_asking() -> None:
    world = World()
    world.settle(code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    (error,) = world.fatal
    assert isinstance(error, BrokerError)
    assert error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert world.rig.requester.next_deadline() == float("inf")


def test_a_broker_without_producer_ids_ends_it_as_well() -> None:
    world = World()
    world.rig.open(1, InitProducerId=-1)
    assert world.asked(1.0) == []
    (error,) = world.fatal
    assert isinstance(error, UnsupportedVersionError)
