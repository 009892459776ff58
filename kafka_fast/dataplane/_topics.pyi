"""A topic and its queues, one for each partition."""

class Topic:
    name: str
    def __init__(self, name: str, seed: int) -> None: ...
    @property
    def partition_count(self) -> int: ...
