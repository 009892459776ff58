"""People in a simulation: code that waits, as any program does, while virtual time goes by.

    world ── resume ──► actor runs ── suspend ──► world goes on ── resume ──► …

An actor has a thread, for a call that waits somewhere below cannot be left in another way; but
only one of all threads runs at any time, the one that was handed the baton. So the order of
everything is the world's, and a seed decides it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

STACK_LIMIT = 60.0
"""Real seconds after which an actor that does not come back is taken for hung."""


class Killed(BaseException):
    """Raised where an actor waits that is not to run any more, as kill -9 would end it."""


class Actor:
    """One thread of the simulation. The world's thread calls `resume`; the actor's `suspend`."""

    def __init__(self, name: str, play: Callable[[], None]) -> None:
        """Prepare; nothing runs before the first `resume`.

        Args:
            name: for people.
            play: what the actor does, from its beginning to its end.
        """
        self.name = name
        self.is_over = False
        self.error: BaseException | None = None
        self._play = play
        self._is_killed = False
        self._go = threading.Lock()  # both are held but for the moment of a handover
        self._back = threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._thread: threading.Thread | None = None

    # ---- the world's side ----

    def resume(self) -> None:
        """Let the actor run until it waits or ends."""
        if self.is_over:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()
        else:
            self._go.release()
        if not self._back.acquire(timeout=STACK_LIMIT):
            raise AssertionError(f"{self.name} neither waits nor ends")

    def kill(self) -> None:
        """End the actor where it waits."""
        if self._thread is None:
            self.is_over = True
        elif not self.is_over:
            self._is_killed = True
            self.resume()

    # ---- the actor's side ----

    @property
    def is_killed(self) -> bool:
        """Whether nothing that the actor still does has any effect."""
        return self._is_killed

    def suspend(self) -> None:
        """Wait until the world lets this actor go on."""
        if not self._is_killed:
            self._back.release()
            self._go.acquire()
        if self._is_killed:
            raise Killed

    def _run(self) -> None:
        try:
            self._play()
        except Killed:
            pass
        except Exception as error:  # noqa: BLE001  the world says what it means
            self.error = error
        finally:
            self.is_over = True
            self._back.release()
