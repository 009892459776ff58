"""Steps that run together: one wait for all, one end."""

from __future__ import annotations

import pytest

from kafka_fast.admin.workflows.together import run_together
from kafka_fast.errors import UsageError
from kafka_fast.net.waiting.steps import InThread, Steps, Wait, run_steps


class World:
    """What steps wait for, and what became of them."""

    def __init__(self) -> None:
        self.happened: set[str] = set()
        self.ended: list[str] = []
        self.waits: list[Wait] = []

    def steps(self, name: str, deadline: float) -> Steps[str]:
        """Wait for what is called like that, and return its name."""
        try:
            while name not in self.happened:
                yield Wait(lambda: name in self.happened, deadline, name)
            return name.upper()
        finally:
            self.ended.append(name)


def test_all_are_on_their_way_at_once() -> None:
    world = World()
    together = run_together(world.steps("a", 9.0), world.steps("b", 5.0), world.steps("a", 9.0))

    def answer(request: object) -> None:
        assert isinstance(request, Wait)
        world.waits.append(request)
        assert not request.is_over()
        world.happened.add("b" if len(world.waits) == 1 else "a")
        assert request.is_over()

    assert run_steps(together, answer) == ["A", "B", "A"]
    assert [(wait.what, wait.deadline) for wait in world.waits] == [("a, b", 5.0), ("a", 9.0)]


def test_nothing_is_done_at_once() -> None:
    assert run_steps(run_together(), lambda request: pytest.fail("a wait for nothing")) == []


def test_an_error_ends_the_others() -> None:
    world = World()

    def failing() -> Steps[None]:
        yield from world.steps("c", 1.0)
        raise UsageError("no")

    together = run_together(world.steps("a", 9.0), failing())
    with pytest.raises(UsageError, match="no"):
        run_steps(together, lambda request: world.happened.add("c"))
    assert world.ended == ["c", "a"]


def test_an_interruption_ends_all() -> None:
    world = World()

    def interrupt(request: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_steps(run_together(world.steps("a", 9.0), world.steps("b", 9.0)), interrupt)
    assert sorted(world.ended) == ["a", "b"]


def test_only_waits_can_be_shared() -> None:
    def calling() -> Steps[None]:
        yield InThread(lambda: None)

    with pytest.raises(TypeError, match="only wait"):
        run_steps(run_together(calling()), lambda request: None)
