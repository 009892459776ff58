"""The page about timers names every property and constant that is a wait, and nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from kafka_fast.config import KEYS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "internals" / "timers.md"

NO_WAITS = {
    "MULTIPLIER": "a factor",
    "JITTER": "a factor",
    "LEAD": "a part",
    "MARGIN": "a part",
    "LEAD_MAX": "how much earlier work begins",
    "IDLE_AT_LEAST": "classifies the end of a connection",
    "WORTH_A_WORD": "what messages leave out",
    "ANSWER_GRACE": "how old an error may be that explains",
    "RECENT": "how old an error may be that explains",
    "GRACE": "how old a trouble may be that explains",
    "STANDS": "when the log says that a node is back",
    "QUIET": "how often the log tells the same trouble",
    "LASTING": "when a trouble is a WARNING",
    "FIRST_LOOK": "when the log looks after a node",
    "LOOK_AGAIN": "a factor",
    "SETTLING": "when errors are logged",
    "GATHERING": "when errors are logged",
    "LULL": "when errors are logged",
    "LOADING": "when errors are logged",
    "SLOW": "when a rebalance is logged",
    "WARN_AT": "a part",
}
"""Constants of the control plane in seconds, or without unit, for which no request waits."""


def on_page() -> set[str]:
    """Return what the page names in code: properties and constants."""
    return set(re.findall(r"`([a-z.]+\.ms|[A-Z][A-Z_]+)`", PAGE.read_text()))


def constants(folder: str) -> set[str]:
    """Return the names of the numbers in modules that may be seconds."""
    return {
        statement.targets[0].id
        for path in (ROOT / "kafka_fast" / folder).rglob("*.py")
        for statement in ast.parse(path.read_text()).body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and _is_in_seconds(statement.value)
    }


def _is_in_seconds(value: ast.expr) -> bool:
    if isinstance(value, ast.Name):
        return value.id == "LONG"
    return isinstance(value, ast.Constant) and isinstance(value.value, float)


def test_every_property_that_is_a_time_is_on_the_page() -> None:
    times = {
        key.name
        for key in KEYS.values()
        if key.name.endswith(".ms") and not key.pending and not key.ignored
    }
    assert {name for name in on_page() if name.endswith(".ms")} == times


def test_every_constant_of_the_control_plane_is_a_timer_or_none() -> None:
    named = {name for name in on_page() if name.isupper()}
    assert not named & NO_WAITS.keys()
    assert constants("control") - named - NO_WAITS.keys() == set()
    assert NO_WAITS.keys() - constants("control") == set(), "is there no more"


def test_every_constant_on_the_page_is_there() -> None:
    named = {name for name in on_page() if name.isupper()}
    others = {"PACE_MS"}  # an integer, as a property in ms is
    assert named - constants("") == others
    cluster = ROOT / "kafka_fast/control/metadata/cluster.py"
    assert cluster.read_text(encoding="utf-8").count("\nPACE_MS = ") == 1
