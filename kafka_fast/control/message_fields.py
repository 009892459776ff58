"""The types of the fields of commands and events: what each of them is in C.

A message between the planes is declared once, as a class of `control.messages`,
`producer_messages` or `consumer_messages`, that stands in a union of its side. A command stands in
`TransportCommand`, `ProduceCommand` or `FetchCommand`, an event in `TransportEvent`, `DumpEvent`,
`ProduceEvent` or `FetchEvent`. A build makes the rest from these classes (`src_c/make_messages`):
the enums and structs in C, their declarations for Cython, the dispatch to `on_…`, which carries a
command out, and the carriers, which pack commands and make objects of events.

`float` is a double and `bool` a bool. `bytes` is a copy and its size, which the message owns. An
event may have an `enum.IntEnum` of its module, `tuple[Int64, …]`, and a NamedTuple of numbers, or
many.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Int16: TypeAlias = int
Int32: TypeAlias = int
Int64: TypeAlias = int
Size: TypeAlias = int
"""A number of bytes or items: size_t."""

# ---- of commands ----

QueueId: TypeAlias = int
"""`queue_id` becomes `queue`, the partition's queue."""

TopicName: TypeAlias = str
"""`topic` becomes the produce side's topic, which is made on first use."""

StreamId: TypeAlias = int
"""`stream_id` becomes `stream`, with a reference that the command holds."""

OwnedLink: TypeAlias = Any
"""A new link in C. The host's pump sends it, so no carrier packs it."""

# ---- of events ----

AddedText: TypeAlias = str
"""Not in C: the client's carrier adds it, see `net/core/client_carrier.py`."""
