"""The type parameters of consumers: what a record's key and value are, after the deserializers.

    consumer: Consumer[str, Order] = Consumer(config, value_deserializer=parse_order)

Only type checkers see them. Without parameters both are Any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K_co = TypeVar("K_co", covariant=True, default=Any)
    """A record's key."""
    V_co = TypeVar("V_co", covariant=True, default=Any)
    """A record's value."""
else:  # Python before 3.13 knows no defaults
    from typing import TypeVar

    K_co = TypeVar("K_co", covariant=True)
    V_co = TypeVar("V_co", covariant=True)
