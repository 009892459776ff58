"""The types of the fields of commands: what each of them is in C.

A command for the data plane is declared once, as a class of `control.messages`,
`producer_messages` or `consumer_messages`, that stands in the union of its side:
`TransportCommand`, `ProduceCommand` or `FetchCommand`. A build makes the rest from these classes
(`src_c/make_commands.py`): the enum and the structs in C, their declarations for Cython, the
dispatch to `on_…`, which carries the command out, and the carrier that packs it.

`float` is a double and `bool` a bool. `bytes` is a copy and its size, which the command owns.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Int16: TypeAlias = int
Int32: TypeAlias = int
Int64: TypeAlias = int
Size: TypeAlias = int
"""A number of bytes or items: size_t."""

QueueId: TypeAlias = int
"""`queue_id` becomes `queue`, the partition's queue."""

TopicName: TypeAlias = str
"""`topic` becomes the produce side's topic, which is made on first use."""

StreamId: TypeAlias = int
"""`stream_id` becomes `stream`, with a reference that the command holds."""

OwnedLink: TypeAlias = Any
"""A new link in C. The host's pump sends it, so no carrier packs it."""
