"""One member's calls of its assignors: one at a time, beside the control thread.

    call ──► waiting ──► under way, in a thread of its own ──► done, or failed
               └── clear ──► dropped

To assign the partitions of a large group takes long, and a user's assignor takes as long as it
likes. Meanwhile the control thread has metadata, connections and commits to see to. The data plane
keeps the member alive with heartbeats.

An assignor may keep what one call tells it for the next one, as the sticky ones do. So calls never
overlap, even if the result of one is not wanted any more. Thread: control.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kafka_fast.control.group.assignors.interface import Assignor
from kafka_fast.errors import KafkaError
from kafka_fast.values import Value

T = TypeVar("T")


class _AssignorCall(Value, eq=False):
    """A call that has not ended."""

    function: Callable[[], Any]
    done: Callable[[Any, float], None]
    failed: Callable[[KafkaError, float], None]


class AssignorCalls:
    """The calls of one member. Control thread only."""

    def __init__(
        self,
        assignors: Mapping[str, Assignor],
        call_in_thread: Callable[[Callable[[], object], Callable[[object, float], None]], None],
    ) -> None:
        """Start without calls; `call` adds them.

        Args:
            assignors: this member's, by name. Only functions that are called here may use them.
            call_in_thread: see `Context.call_in_thread`.
        """
        self.assignors = assignors
        self._call_in_thread = call_in_thread
        self._under_way: _AssignorCall | None = None
        self._waiting: deque[_AssignorCall] = deque()

    @property
    def is_busy(self) -> bool:
        """Whether an assignor is at work. Any thread."""
        return self._under_way is not None

    def call(
        self,
        function: Callable[[], T],
        done: Callable[[T, float], None],
        failed: Callable[[KafkaError, float], None],
    ) -> None:
        """Call a function that uses assignors, after all calls before.

        Args:
            function: called in another thread. It raises nothing but `KafkaError`; see `guard`.
            done: called with its result and the time.
            failed: called with its error and the time.
        """
        self._waiting.append(_AssignorCall(function, done, failed))
        self._begin_next()

    def drop_waiting(self) -> None:
        """Drop the calls that have not begun. One under way still calls `done` or `failed`."""
        self._waiting.clear()

    def _begin_next(self) -> None:
        if self._under_way is None and self._waiting:
            self._under_way = self._waiting.popleft()
            self._call_in_thread(self._under_way.function, self._end)

    def _end(self, result: object, now: float) -> None:
        call, self._under_way = self._under_way, None
        assert call is not None
        self._begin_next()
        if isinstance(result, KafkaError):
            call.failed(result, now)
        elif isinstance(result, BaseException):
            raise result  # a fault of our own code, which the control thread must not hide
        else:
            call.done(result, now)
