"""How a user's call becomes an operation, and its results come back: as steps, for all callers.

Thread: the caller's.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

from kafka_fast.admin.admin_core import AdminCore
from kafka_fast.admin.result import AdminResult, NodesResult
from kafka_fast.config import AdminSettings
from kafka_fast.control.admin.admin_control import RunningOperation
from kafka_fast.control.admin.operation import ONLY, Operation, OperationResults
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.errors import UnsupportedEndpointType, fresh_copy
from kafka_fast.instants import NEVER
from kafka_fast.net.waiting.steps import InThread, Steps
from kafka_fast.net.waiting.waits import Answer
from kafka_fast.times import timeout_seconds

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

FOREVER = 1e9


class AdminSteps:
    """Runs the operations of one admin client's users."""

    def __init__(self, core: AdminCore, settings: AdminSettings) -> None:
        """Bind to one client.

        Args:
            core: carries operations out.
            settings: the client's configuration.
        """
        self._core = core
        self._settings = settings

    def begin_call(self, timeout: float | None) -> float:
        """Refuse a client that is closed, and return when a call that begins now must end.

        Args:
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: the client is closed; or this is no timeout.
        """
        self._core.check_open()
        return self.deadline(timeout)

    def deadline(self, timeout: float | None) -> float:
        """Return when a call must end; None: default.api.timeout.ms from now."""
        limit = self._settings.default_api_timeout if timeout is None else timeout_seconds(timeout)
        return self._core.now() + min(limit, FOREVER)

    def run_items(
        self, operation: Operation[K, V], timeout: float | None
    ) -> Steps[AdminResult[K, V]]:
        """Carry an operation out, and return what became of each item.

        Raises:
            AuthenticationError, TlsError: a node refuses this client.
            UsageError: the client is closed.
            WakeupError: it was closed meanwhile.
        """
        results = yield from self.results(operation, self.begin_call(timeout))
        return AdminResult(operation.name, results)

    def run_one(self, operation: Operation[str, V], timeout: float | None) -> Steps[V]:
        """Carry out an operation that has one item, and return its value; errors are raised.

        Raises:
            KafkaError: the operation has failed, or as in `run_items`.
        """
        return (yield from self.run_one_until(operation, self.begin_call(timeout)))

    def run_one_until(self, operation: Operation[str, V], deadline: float) -> Steps[V]:
        """Do as `run_one`, for a workflow whose operations share a deadline."""
        results = yield from self.results(operation, deadline)
        error = results.errors.get(ONLY)
        if error is not None:
            raise fresh_copy(error)
        return results.values[ONLY]

    @property
    def uses_controllers(self) -> bool:
        """Whether this client asks controllers in place of brokers (KIP-919)."""
        return self._settings.uses_controllers

    @property
    def client_id(self) -> str:
        """The client's, for the log."""
        return self._core.client_id

    def no_results(self, keys: Iterable[K]) -> OperationResults[K, Any]:
        """Return results without values, for a workflow that fills them in."""
        return OperationResults(list(keys), client_id=self.client_id)

    def merge_nodes(
        self, operation: Operation[int, dict[K, V]], timeout: float | None
    ) -> Steps[NodesResult[K, V]]:
        """Carry out an operation of all nodes, and merge what they answer into one mapping.

        Raises:
            KafkaTimeoutError: the metadata named no node in time.
            KafkaError: as in `run_items`.
        """
        results = yield from self.results(operation, self.begin_call(timeout))
        merged: dict[K, V] = {}
        for answer in results.values.values():
            merged.update(answer)
        return NodesResult(operation.name, merged, results)

    def results(self, operation: Operation[K, V], deadline: float) -> Steps[OperationResults[K, V]]:
        """Carry an operation out, and return its results. After an interruption it is given up.

        Raises:
            WakeupError: the client was closed since the call has begun.
            UnsupportedEndpointType: this client asks controllers, and they do not answer this.
            KafkaError: as in `run_items`.
        """
        core = self._core
        core.check_lives()
        core.waits.check_closed()
        if self.uses_controllers and not operation.at_controllers:
            raise UnsupportedEndpointType(
                f"{operation.name}: controllers are not asked for this, only brokers are: give "
                "bootstrap.servers in place of bootstrap.controllers"
            )
        answer: Answer[OperationResults[K, V]] = Answer()
        running: list[RunningOperation] = []

        def begin(now: float) -> None:
            started = core.control.run_operation(operation, deadline, answer.set, now)
            if started is not None:
                running.append(started)

        def cancel(now: float) -> None:
            for started in running:
                started.give_up()

        def missing() -> Reason | None:
            return running[0].missing() if running else None

        try:
            core.call(begin)
            # Its items end at the deadline, each with the reason why it has no answer.
            results = yield from core.waits.wait(answer, NEVER, operation.name, missing=missing)
        except BaseException:
            core.call(cancel)
            raise
        results.client_id = core.client_id
        if results.no_nodes is not None:
            raise fresh_copy(results.no_nodes)
        return results

    def close(self) -> Steps[None]:
        """End the client's threads. They end even if the caller is interrupted."""
        yield InThread(self._core.close)
