"""Which records `kafka-fast consume` shows, by their headers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from kafka_fast.consumer import ConsumerRecord

Select: TypeAlias = Callable[[Iterable[ConsumerRecord]], list[ConsumerRecord]]
"""Returns those of the records that are to be shown."""


class WantedHeader(NamedTuple):
    """A header that a record must have."""

    name: str
    value: bytes | None
    """None: any value, also null."""

    def is_in(self, record: ConsumerRecord) -> bool:
        """Return whether a record has it; of several with this name, one is enough."""
        return any(
            name == self.name and self.value in (None, value) for name, value in record.headers
        )


def wanted_header(text: str) -> WantedHeader:
    """Return the header of `NAME` or `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    return WantedHeader(name, os.fsencode(value) if equals else None)


def selection(headers: Sequence[WantedHeader]) -> Select | None:
    """Return what chooses the records that have all of these headers; None: all are shown."""
    if not headers:
        return None
    return lambda records: [
        record for record in records if all(header.is_in(record) for header in headers)
    ]
