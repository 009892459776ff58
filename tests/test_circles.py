"""Modules do not import each other in circles, and a circle would be found."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.circles import ON_FIRST_USE, circles, faults, imports

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Keep finalizers out of ast.parse: CPython 3.11 loses count of its recursion there."""
    gc.disable()
    yield
    gc.enable()


def plant(root: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        path = root / "kafka_fast" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return faults(root)


def test_this_repository() -> None:
    assert faults(ROOT) == []


def test_every_exception_would_close_a_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    exceptions = list(ON_FIRST_USE)
    monkeypatch.setattr("tests.circles.ON_FIRST_USE", {})
    in_circles = [set(circle) for circle in circles(imports(ROOT)[0])]
    assert [pair for pair in exceptions if not any(set(pair) <= c for c in in_circles)] == []


A_TO_B = "from kafka_fast.net.b import thing\n"
B_TO_A = "from kafka_fast.net import a\n"
FOR_TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    "


@pytest.mark.parametrize(
    "text",
    [
        A_TO_B,
        "import kafka_fast.net.b\n",
        f"def late() -> None:\n    {A_TO_B}",
        f"class Late:\n    def late(self) -> None:\n        {A_TO_B}",
        f"try:\n    {A_TO_B}except ImportError:\n    pass\n",
        f"from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    {A_TO_B}",
        f"{FOR_TYPES}pass\nelse:\n    {A_TO_B}",
    ],
)
def test_a_circle_that_runs_is_refused(tmp_path: Path, text: str) -> None:
    said = plant(tmp_path, {"net/__init__.py": "", "net/a.py": text, "net/b.py": B_TO_A})
    assert said == ["import each other: net.a, net.b"]


def test_a_circle_through_an_extension_is_refused(tmp_path: Path) -> None:
    back = "def late() -> None:\n    from kafka_fast.net._a import other\n"
    said = plant(tmp_path, {"net/_a.pyx": A_TO_B, "net/b.py": back})
    assert said == ["import each other: net._a, net.b"]


def test_a_circle_through_a_header_is_refused(tmp_path: Path) -> None:
    files = {
        "net/_a.pyx": "",
        "net/_a.pxd": "from kafka_fast.net._b cimport thing\n",
        "net/_b.pyx": "from kafka_fast.net._a cimport (\n    other,\n)\n",
    }
    assert plant(tmp_path, files) == ["import each other: net._a, net._b"]


def test_a_circle_for_types_may_be_in_a_room(tmp_path: Path) -> None:
    assert plant(tmp_path, {"net/a.py": FOR_TYPES + A_TO_B, "net/b.py": B_TO_A}) == []


def test_a_circle_for_types_over_rooms_is_refused(tmp_path: Path) -> None:
    files = {
        "net/a.py": f"{FOR_TYPES}from kafka_fast.net.tls.c import thing\n",
        "net/b.py": B_TO_A,
        "net/tls/c.py": "from kafka_fast.net.b import other\n",
    }
    assert plant(tmp_path, files) == ["import each other, over rooms: net.a, net.b, net.tls.c"]
