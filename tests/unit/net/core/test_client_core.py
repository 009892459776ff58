"""A client's core on a host that is played by hand: turns, links under way, what a crash tells."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from kafka_fast.config import consumer_settings, producer_settings
from kafka_fast.consumer.consumer_core import ConsumerCore
from kafka_fast.control.authentication.mechanism import Work
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.messages import CloseLink, DoWork, OpenLink, ResolveHost
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.errors import InternalError
from kafka_fast.net.calls import AT_ONCE
from kafka_fast.net.core.client_core import BREATH, EVENTS_AT_ONCE, ClientCore
from kafka_fast.net.host import Addresses
from kafka_fast.net.process import process_life
from kafka_fast.net.waiting.callers import Callers, ThreadCallers
from kafka_fast.net.waiting.steps import Driver, Steps, run_steps
from kafka_fast.producer.producer_core import ProducerCore
from kafka_fast.testing._memory import VirtualMachine

T = TypeVar("T")

SERVERS = {"bootstrap.servers": "broker:9092"}
NODE = ConnectionKey(Role.DATA, 1)
OPEN = OpenLink(7, NODE, host="broker", ip="10.0.0.1", port=9092, deadline=5.0)


class HandHost:
    """A host that does nothing but to take notes."""

    is_current = False
    mechanism = None

    callers: Callers = ThreadCallers()

    def __init__(self) -> None:
        self.environment = VirtualMachine(0, 0, 0)
        self.time = 1.0
        self.notes: list[object] = []
        self.look_ups: list[Callable[[Addresses], None]] = []
        self.works: list[tuple[Callable[[], object], Callable[[object], None]]] = []

    def note(self, what: object) -> None:
        self.notes.append(what)

    def start(self, client: object, plane: DataPlane) -> None:
        self.note("start")

    def stop(self, patience: float | None = None) -> bool:
        self.note("stop")
        return True

    def close(self) -> None:
        self.note("close")

    def now(self) -> float:
        return self.time

    def wall_ms(self) -> int:
        return 0

    def random(self) -> float:
        return 0.5

    def random_bits(self) -> int:
        return 1

    def wake(self) -> None:
        self.note("wake")

    def connect(self, command: OpenLink, now: float) -> None:
        self.note(command)

    def drop_link(self, link_id: int) -> None:
        self.note(("drop_link", link_id))

    def resolve(self, host: str, done: Callable[[Addresses], None]) -> None:
        self.look_ups.append(done)

    def run_work(self, work: Work, done: Callable[[object], None]) -> None:
        self.works.append((work.function, done))

    def call_in_thread(
        self, function: Callable[[], object], done: Callable[[object], None]
    ) -> None:
        self.works.append((function, done))

    def wait_ended(self, timeout: float) -> bool:
        return True

    def make_driver(self, plane: DataPlane) -> Driver:
        return Still()

    def compress_with(self, codec: str, level: int) -> None:
        self.note(codec)

    def make_callbacks(self, queues: Queues) -> Any:
        return Idle()

    def make_loop_bridge(self, queues: Queues) -> None:
        pass

    def make_streams(self, plane: DataPlane, **limits: int) -> Streams:
        return Streams(plane, **limits)


class Still:
    """The driver of users for whom the world stands still while they wait."""

    def run(self, steps: Steps[T]) -> T:
        return run_steps(steps, lambda request: None)

    def wake(self) -> None:
        pass


class Idle:
    """Callbacks that nobody has."""

    is_current = False

    def start(self) -> None:
        pass

    wake = start

    def join(self, patience: float | None) -> None:
        pass

    def await_run(self, deadline: float) -> Steps[None]:
        yield from ()


@pytest.fixture
def host() -> HandHost:
    return HandHost()


@pytest.fixture(params=["producer", "consumer"])
def core(request: pytest.FixtureRequest, host: HandHost) -> Iterator[ClientCore]:
    made: ProducerCore | ConsumerCore
    if request.param == "producer":
        made = ProducerCore(producer_settings(SERVERS), "me", host)
    else:
        made = ConsumerCore(consumer_settings(SERVERS), "me", host)
    yield made
    end(made)


def end(core: ProducerCore | ConsumerCore) -> None:
    if isinstance(core, ProducerCore):
        core.close(0.0)
    else:
        core.close()


def test_a_call_wakes_the_host_and_is_made_in_the_next_turn(
    core: ClientCore, host: HandHost
) -> None:
    made: list[float] = []

    def call_again(now: float) -> None:
        made.append(now)
        core.call(made.append)

    core.call(call_again)
    assert (made, host.notes[-1]) == ([], "wake")
    core.turn(2.0)
    assert made == [2.0, 2.0]


def test_a_link_is_dropped_when_its_time_is_up(core: ClientCore, host: HandHost) -> None:
    core.carry_out(OPEN, 1.0)
    assert host.notes[-1] is OPEN
    core.turn(4.9)
    assert core.next_deadline() <= 5.0
    assert ("drop_link", 7) not in host.notes
    core.turn(5.0)
    core.turn(5.1)
    assert host.notes.count(("drop_link", 7)) == 1


def test_a_link_that_is_closed_while_it_opens_never_reaches_the_data_plane(
    core: ClientCore, host: HandHost
) -> None:
    core.carry_out(OPEN, 1.0)
    core.carry_out(CloseLink(7), 1.0)
    assert host.notes[-1] == ("drop_link", 7)


def test_the_host_has_nothing_to_drop_of_a_link_that_is_open(
    core: ClientCore, host: HandHost
) -> None:
    for tell in (
        lambda: core.handle_connected(7, 2.0),
        lambda: core.handle_connect_failed(7, ConnectionRefusedError(), 2.0),
    ):
        core.carry_out(OPEN, 1.0)
        tell()
        core.carry_out(CloseLink(7), 2.0)
        core.turn(6.0)
    assert ("drop_link", 7) not in host.notes


def test_addresses_come_in_on_the_control_thread(core: ClientCore, host: HandHost) -> None:
    taken: list[object] = []
    core.control.connections.handle_resolved = lambda *told: taken.append(told)  # type: ignore[method-assign]
    core.carry_out(ResolveHost(NODE, "broker", 9.0), 1.0)
    host.look_ups.pop()(("10.0.0.1",))
    assert taken == []
    core.turn(2.0)
    assert taken == [(NODE, "broker", ("10.0.0.1",), 2.0)]


def test_news_of_many_links_is_handled_in_slices(
    core: ClientCore, host: HandHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other Python thread runs during a turn."""
    handled: list[int] = []

    def handle(event: tuple[int, int], now: float) -> None:
        handled.append(event[1])
        host.time += 0.4 * EVENTS_AT_ONCE

    news = [(-1, number) for number in range(12)]
    monkeypatch.setattr(core, "plane", SimpleNamespace(take_events=lambda: news))
    monkeypatch.setattr(core, "_read_event", lambda event: event)
    monkeypatch.setattr(core, "handle_event", handle)
    core.turn(host.time)
    assert handled == list(range(3))
    assert core.next_deadline() == pytest.approx(host.time + BREATH)
    news = [(-1, 12)]
    while len(handled) < 13:
        core.turn(host.time)
        news = []
    assert handled == list(range(13)), "in their order"
    assert core.next_deadline() > host.time + BREATH


def test_work_of_a_login_ends_on_the_control_thread(core: ClientCore, host: HandHost) -> None:
    taken: list[object] = []
    core.control.connections.handle_work_done = lambda *told: taken.append(told)  # type: ignore[method-assign]
    core.carry_out(DoWork(7, Work(lambda: b"token", "a token is asked for")), 1.0)
    function, done = host.works.pop()
    done(function())
    assert taken == []
    core.turn(2.0)
    assert taken == [(7, b"token", 2.0)]


def test_whoever_waits_hears_of_a_crash(core: ClientCore) -> None:
    core.handle_crash(ZeroDivisionError("a bug"))
    with pytest.raises(
        InternalError, match=f"the {core.kind}'s control thread has failed.*a bug.*please report"
    ) as caught:
        core.driver.run(core.topics.await_topic("t", deadline=9.0))
    assert caught.value.dump.startswith(f"{core.kind} ")


def test_a_crash_that_leaves_nothing_to_show(
    core: ClientCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core.control, "describe", lambda now: 1 / 0)
    core.handle_crash(ValueError("a bug"))
    with pytest.raises(InternalError) as caught:
        core.driver.run(core.topics.await_topic("t", deadline=9.0))
    assert "no state to show: ZeroDivisionError" in caught.value.dump


@pytest.mark.parametrize("step", ["start", "make_streams", "make_callbacks"])
def test_a_step_that_fails_takes_back_those_before_it(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def refuse(*_: object, **__: object) -> Any:
        raise OSError(24, "Too many open files")

    before = len(process_life.living)
    monkeypatch.setattr(HandHost, step, refuse)
    for make, settings in (
        (ProducerCore, producer_settings(SERVERS)),
        (ConsumerCore, consumer_settings(SERVERS)),
    ):
        host = HandHost()
        try:
            end(make(settings, "me", host))  # type: ignore[arg-type]
        except OSError:
            assert host.notes[-1] == "close"
        else:
            assert step != "start"
    assert len(process_life.living) == before


def test_many_calls_and_commands_leave_turns_to_others(core: ClientCore, host: HandHost) -> None:
    """A turn that has taken long leaves the rest to the next one, in order."""
    done: list[object] = []

    def take_half(what: object, now: float) -> None:
        done.append(what)
        host.time += 0.6 * AT_ONCE

    core.carry_out = take_half  # type: ignore[method-assign]
    commands = deque(f"command {number}" for number in range(4))
    core.control.poll_command = lambda: commands.popleft() if commands else None  # type: ignore[method-assign]
    for number in range(4):
        core.call(partial(take_half, f"call {number}"))
    core.turn(host.time)
    assert done == ["call 0", "call 1", "command 0", "command 1"]
    assert core.next_deadline() <= host.time
    core.turn(host.time)
    core.turn(host.time)
    assert [text for text in done if str(text).startswith("call")] == [
        f"call {n}" for n in range(4)
    ]
    assert [text for text in done if str(text).startswith("comm")] == [
        f"command {n}" for n in range(4)
    ]
    assert core.next_deadline() > host.time
