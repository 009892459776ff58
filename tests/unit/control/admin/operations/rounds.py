"""One round of an operation: what is sent in a version, and what an answer means for its items."""

from __future__ import annotations

from typing import Any

from kafka_fast.config import admin_settings
from kafka_fast.control.admin.admin_control import AdminControl
from kafka_fast.control.admin.operation import Operation, OperationResults
from kafka_fast.control.messages import CloseReason, RawResponse
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Refused
from kafka_fast.errors import KafkaError
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from kafka_fast.protocol.schema import Response
from tests.unit.control.fake_machine import FakeMachine, Handler


def sent(operation: Operation[Any, Any], version: int) -> Any:
    """Return the request for all items, as a broker reads it."""
    assert operation.items is not None
    request = operation.build(operation.items, version)
    return type(request).decode(request.encode(version), version)


def all_versions_of(operation: type[Operation[Any, Any]]) -> list[int]:
    versions = operation.request_class.versions
    return list(range(versions.low, versions.high + 1))


def meanings(operation: Operation[Any, Any], answer: Response, version: int) -> dict[Any, Any]:
    """Return what an answer means, as it comes in a version: for a Done item its value."""
    decoded = type(answer).decode(answer.encode(version), version)
    source = AnswerSource(version, "node 1", 1.0)
    outcomes = operation.outcomes(decoded, operation.items or [], source)
    return {
        key: meaning.value if isinstance(meaning, Done) else meaning for key, meaning in outcomes
    }


def refusals(operation: Operation[Any, Any], answer: Response, version: int) -> dict[Any, str]:
    """Return the texts of what a broker refuses; all else is left out."""
    return {
        key: str(meaning.error)
        for key, meaning in meanings(operation, answer, version).items()
        if isinstance(meaning, Refused)
    }


class ScriptedAdmin:
    """An admin client's control plane before three brokers: 1, 2 and 3, which leads them."""

    def __init__(self, handlers: dict[Any, Handler]) -> None:
        settings = admin_settings({"bootstrap.servers": "kafka:9001"}, {})
        self.control = AdminControl(settings, "test", lambda: 0.5, lambda: 1_700_000_000_000)
        self.machine = FakeMachine(self.control, {MetadataRequest: self._describe_cluster})
        self.machine.handlers.update(handlers)
        self.brokers = [1, 2, 3]

    def _describe_cluster(self, request: Any, key: Any) -> MetadataResponse:
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node_id, host="kafka", port=9000 + node_id)
                for node_id in self.brokers
            ],
            cluster_id="cluster",
            controller_id=self.brokers[-1],
        )

    def start(self, operation: Operation[Any, Any], seconds: float = 5.0) -> list[Any]:
        """Start an operation; return a list that gets its results."""
        results: list[OperationResults[Any, Any] | KafkaError] = []
        self.control.run_operation(
            operation, self.machine.now + seconds, results.append, self.machine.now
        )
        self.machine.run()
        return results

    def lose_answer(self) -> None:
        """Close the connection of the latest request, which was not answered."""
        command, _, _ = self.machine.unanswered.pop()
        key = self.machine.links[command.link_id]
        lost = RawResponse(command.link_id, command.token, None, CloseReason.EOF)
        self.control.handle_event(lost, self.machine.now)
        self.machine.close(key)

    def run(self, operation: Operation[Any, Any], seconds: float = 5.0) -> Any:
        """Return an operation's results."""
        results = self.start(operation, seconds)
        self.machine.run(seconds)
        return results[0]
