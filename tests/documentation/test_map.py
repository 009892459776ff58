"""docs/internals/map.md: every room is there, and every file that it names."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "kafka_fast"
PAGE = (ROOT / "docs/internals/map.md").read_text(encoding="utf-8")

ROW = re.compile(r"^\| `([\w/]+)` \| [^|]+ \| `([\w/.]+)` \|$", re.MULTILINE)

MIRRORS = {"testing/broker/handlers": "protocol/apis"}
"""Room -> room whose subjects it has: one row is enough for all of them."""


def test_every_room_is_on_the_map() -> None:
    rooms = {str(path.parent.relative_to(PACKAGE)) for path in PACKAGE.rglob("__init__.py")}
    for mirror, original in MIRRORS.items():
        subjects = {room for room in rooms if room.startswith(f"{mirror}/")}
        assert {room.replace(mirror, original) for room in subjects} <= rooms
        rooms -= subjects
    assert sorted(room for room, _ in ROW.findall(PAGE)) == sorted(rooms - {"."})


def test_a_room_is_entered_in_itself_or_below() -> None:
    """A file is named from the package on, or from its room on."""
    entries = [
        (room, file if "/" in file else f"{room}/{file}") for room, file in ROW.findall(PAGE)
    ]
    assert [room for room, file in entries if not file.startswith(f"{room}/")] == []
    assert [file for _, file in entries if not (PACKAGE / file).is_file()] == []
