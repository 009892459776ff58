"""The consumers that are compared, one module each, behind one small interface.

A reader is built for a scenario and reads a whole topic of 16 partitions, without a group, any
number of times. What `read` does is what that library's own users would write; every value is
touched, and nothing else is done with it. A mode that the library has no call for is an
`UnsupportedError`, and its row is empty in the tables.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod

from bench.contenders import CONTENDERS, UnsupportedError
from bench.workload import NO_SECURITY, Reading, Security

AT_A_TIME = 500
"""Records of one call, where the call has such a limit and hands out objects."""


class Reader(ABC):
    """One library's consumer, for one scenario."""

    is_secured = False  # whether it takes properties of TLS and SASL

    def __init__(
        self, bootstrap: str, topic: str, reading: Reading, security: Security = NO_SECURITY
    ) -> None:
        if security and not self.is_secured:
            raise UnsupportedError("TLS and SASL are measured for others")
        self.bootstrap = bootstrap
        self.security = security
        self.topic = topic
        self.reading = reading

    @abstractmethod
    def begin(self) -> None:
        """Go to the first record of every partition; what was fetched before is of no use."""

    @abstractmethod
    def read(self, count: int) -> int:
        """Read at least so many records and touch their values; return how many it were."""

    @abstractmethod
    def close(self) -> None:
        """End the consumer."""


def reader_class(name: str) -> type[Reader]:
    """Import a contender's module; the libraries must not be in each other's process."""
    module = CONTENDERS[name][0].replace("contenders.", "readers.")
    reader: type[Reader] = importlib.import_module(module).READER
    return reader
