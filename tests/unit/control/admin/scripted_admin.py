"""An admin client's control plane before scripted brokers."""

from __future__ import annotations

from typing import Any, TypeVar

from kafka_fast.config import admin_settings
from kafka_fast.control.admin.admin_control import AdminControl, RunningOperation
from kafka_fast.control.admin.operation import Operation, OperationResults
from kafka_fast.control.connections.connection_key import ConnectionKey
from kafka_fast.errors import KafkaError
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse
from tests.unit.control.fake_machine import FakeMachine, Handler
from tests.unit.control.metadata.metadata_answers import answer, broker, make_topic_id, topic

K = TypeVar("K")
V = TypeVar("V")

WALL_MS = 1_700_000_000_000
TIMEOUT = 60.0


class AdminMachine(FakeMachine):
    """Three brokers; topic "t" has two partitions, led by brokers 1 and 2."""

    def __init__(self, handlers: dict[type[Any], Handler], **config: object) -> None:
        self.controller = 1
        self.nodes = [1, 2, 3]
        self.topic_error = 0
        servers = {} if "bootstrap.controllers" in config else {"bootstrap.servers": "kafka:9092"}
        settings = admin_settings({**servers, "retry.backoff.ms": 100, **config})
        control = AdminControl(settings, "admin", lambda: 0.5, lambda: WALL_MS)
        super().__init__(control, {MetadataRequest: self.metadata, **handlers})

    def metadata(self, request: MetadataRequest, key: ConnectionKey) -> MetadataResponse:
        """Describe the brokers, and of the topics that are asked for those that exist."""
        names = [one.name or "" for one in request.topics or ()]
        topics = [
            topic("t", [(1, 5), (2, 7)], topic_id=make_topic_id(1), error=self.topic_error)
            if name == "t"
            else topic(name, [], error=3)
            for name in names
        ]
        told = answer(*topics, brokers=[broker(node_id) for node_id in self.nodes])
        told.controller_id = self.controller
        return told

    def start(
        self, operation: Operation[K, V], timeout: float = TIMEOUT
    ) -> tuple[list[OperationResults[K, V] | KafkaError], RunningOperation | None]:
        """Start an operation, and return where its results will be."""
        ended: list[OperationResults[K, V] | KafkaError] = []
        self.control.begin_turn(self.now)
        running = self.control.run_operation(operation, self.now + timeout, ended.append, self.now)
        return ended, running

    def results(
        self, operation: Operation[K, V], timeout: float = TIMEOUT
    ) -> OperationResults[K, V]:
        """Carry an operation out, to its end."""
        ended, _ = self.start(operation, timeout)
        self.run(timeout + 1)
        (outcome,) = ended
        assert isinstance(outcome, OperationResults)
        return outcome
