"""Numbers with names, of which newer brokers may know more than this version."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class OpenNumber(enum.IntEnum):
    """An enumeration with the member UNKNOWN, which stands for every number without a name.

    Answers of newer brokers may have such numbers: an exception would hide all else in them.
    """

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls["UNKNOWN"] if isinstance(value, int) else None
