"""What commands that change something report: an outcome for each item."""

from __future__ import annotations

EXISTS = "exists"
ABSENT = "absent"

_STATES = {EXISTS: "exists already", ABSENT: "does not exist"}
"""Outcomes of items of which nothing had to be done."""


def outcome_text(outcome: str, *, is_dry_run: bool) -> str:
    """Return an outcome in words: "created", "would be created", "exists already"."""
    if outcome in _STATES:
        return _STATES[outcome]
    return f"would be {outcome}" if is_dry_run else outcome
