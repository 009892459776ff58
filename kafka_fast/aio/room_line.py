"""The sends that wait for room in buffer.memory: first come, first served.

    send ─► enter ─► at the head: watches for room, sends, leaves ─► wakes those behind it
                └──► behind: sleeps until it comes to the head

Only the head looks whether there is room. If thousands of tasks looked whenever a batch has ended,
these looks would hold the loop, and nearly all would be in vain. Who leaves wakes as many as seem
to find room. They follow in the loop's next iteration, each of them only from the head.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable

from kafka_fast.net.waiting.looping import LoopDriver, Sleeper
from kafka_fast.sending._sending import AsyncSender


class WaitingSend(Sleeper):
    """A send that waits in the line for room."""

    __slots__ = ("is_gone", "size")

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        """Bytes of buffer.memory that it needs, about."""
        self.is_gone = False
        """Whether it waits no more."""


class RoomLine:
    """The sends of one producer that wait in one event loop. That loop's thread."""

    def __init__(
        self, driver: LoopDriver, has_room: Callable[[int], bool], sender: AsyncSender
    ) -> None:
        """Start with an empty line; `enter` adds a send.

        Args:
            driver: suspends tasks.
            has_room: returns whether so many bytes are free, or seem so.
            sender: is told how many are in the line, and what they need.
        """
        self._driver = driver
        self._has_room = has_room
        self._sender = sender
        self._sends: deque[WaitingSend] = deque()

    async def enter(self, size: int, deadline: float) -> WaitingSend | None:
        """Wait until this send is at the head; `leave_line` must follow.

        Args:
            size: bytes of buffer.memory that it needs, about.
            deadline: when to give up.

        Returns:
            The send in the line; None: the deadline has come, and it is in the line no more.
        """
        send = WaitingSend(size)
        self._sends.append(send)
        self._sender.in_line += 1
        self._sender.wanted += size
        try:
            while self._sends[0] is not send:
                send.is_awake = False
                await self._driver.sleep(send, deadline)
                if not send.is_awake:
                    self.leave_line(send)
                    return None
        except BaseException:
            self.leave_line(send)
            raise
        send.is_awake = True
        return send

    def leave_line(self, send: WaitingSend) -> None:
        """Leave the line, and wake those that may go on."""
        self._sender.in_line -= 1
        self._sender.wanted -= send.size
        send.is_gone = True
        sends = self._sends
        while sends and sends[0].is_gone:
            sends.popleft()
        if sends and not sends[0].is_awake:
            self._wake_some()

    def _wake_some(self) -> None:
        """Wake the head, and those behind it that seem to find room, too."""
        needed = 0
        for send in self._sends:
            if send.is_gone:
                continue
            needed += send.size
            if send is not self._sends[0] and not self._has_room(needed):
                return
            send.wake()


class RoomLines:
    """The lines of one producer, one for each event loop. The loops' threads."""

    def __init__(
        self, driver: LoopDriver, has_room: Callable[[int], bool], sender: AsyncSender
    ) -> None:
        """Keep the arguments of `RoomLine` for the line of each loop, and `sender` only weakly."""
        self._driver = driver
        self._has_room = has_room
        # The sender has this object. A cycle would keep a producer that was dropped, until the
        # garbage collector comes. Whoever is in the line holds the sender itself.
        self._sender: AsyncSender = weakref.proxy(sender)
        self._lines: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, RoomLine] = (
            weakref.WeakKeyDictionary()
        )

    def here(self) -> RoomLine:
        """Return the line of the loop that runs in this thread."""
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None:
            line = self._lines[loop] = RoomLine(self._driver, self._has_room, self._sender)
        return line
