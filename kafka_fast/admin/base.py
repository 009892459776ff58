"""What the blocking admin client and that of asyncio have in common: all that cannot wait."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafka_fast.config import admin_settings, peek, warn_of_weakness
from kafka_fast.logs import naming
from kafka_fast.net.process import process_life  # noqa: F401  # registers

if TYPE_CHECKING:
    from kafka_fast.admin.admin_core import AdminCore
    from kafka_fast.admin.admin_steps import AdminSteps
    from kafka_fast.config import AdminSettings
    from kafka_fast.net.waiting.looping import LoopDriver

_numbers = itertools.count(1)


class AdminCalls:
    """What each subject's calls stand on."""

    _core: AdminCore
    _steps: AdminSteps
    _driver: LoopDriver
    """Of a client for asyncio only."""


class AdminBase(AdminCalls):
    """An admin client without the calls that may wait; see `Admin` and `aio.Admin`."""

    def __init__(self, config: Mapping[str, object] | None, properties: Mapping[str, Any]) -> None:
        """Start the client.

        Args:
            config: properties, dotted or with underscores.
            properties: the same as keywords.
        """
        number = next(_numbers)
        self.client_id = peek("client.id", config, properties) or f"admin-{number}"
        with naming(self.client_id):
            try:
                settings = admin_settings(config, properties)
            finally:
                del config, properties  # a traceback that has this frame shows no secret
            # Here: see `start_core` in producer/base.py.
            from kafka_fast.admin.admin_steps import AdminSteps

            warn_of_weakness(settings.tls)
            self._core = self._make_core(settings)
        self._steps = AdminSteps(self._core, settings)
        self._finalizer = weakref.finalize(self, self._core.abandon)
        self._finalizer.atexit = False

    def _make_core(self, settings: AdminSettings) -> AdminCore:
        """Return the core, on the host of this kind of callers."""
        raise NotImplementedError

    def metrics(self) -> dict[str, Any]:
        """Return counters of troubles and nodes.

        The page "Metrics" lists each name with its unit and its meaning. Any thread, and also after
        `close`.
        """
        self._core.check_lives()
        return {"client_id": self.client_id, **self._core.stats()}

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Refuse to be pickled."""
        raise TypeError("an Admin cannot be pickled or copied: make one in each process")

    def __repr__(self) -> str:
        if not hasattr(self, "_finalizer"):
            return "<Admin, not made>"  # its constructor has failed, and an error is reported
        return f"<Admin {self.client_id} {'closed' if self._core.closed else 'open'}>"
