"""Prints the table of docs/errors.md: every error code that Kafka's brokers answer."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_fast.errors import ERRORS


def table() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| code | class | again? | what it means |"
    yield "|---|---|---|---|"
    for code, error in ERRORS.items():
        again = "yes" if error.retriable else "fatal" if error.fatal else "no"
        yield f"| {code} | `{error.__name__}` | {again} | {error.description} |"


if __name__ == "__main__":
    print("\n".join(table()))
