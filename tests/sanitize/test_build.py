"""What is instrumented is built once for the same sources, flags and tools."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.sanitize import build
from tests.sanitize.sanitizers import SANITIZERS, Sanitizer

THREAD = SANITIZERS["thread"]


@pytest.fixture(name="checkout")
def small_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one header and one extension, whose compiler counts in `made`."""
    root = tmp_path / "checkout"
    extension = root / "build" / "sanitize" / "thread" / "extensions" / "kafka_fast" / "_one.so"
    for path in (root / "setup.py", root / "src_c" / "one.h", extension):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)

    def compiled(sanitizer: Sanitizer) -> list[Path]:
        with (tmp_path / "made").open("a") as made:
            made.write(f"{sanitizer.name} ")
        return [extension]

    monkeypatch.setattr(build, "ROOT", root)
    monkeypatch.setattr(build, "compiled", compiled)
    monkeypatch.setenv("KAFKA_FAST_SANITIZE_CACHE", str(tmp_path / "cache"))
    return root


def made(checkout: Path) -> list[str]:
    return (checkout.parent / "made").read_text().split()


def test_a_second_build_builds_nothing(checkout: Path) -> None:
    for _ in range(2):
        tree = build.make_tree(THREAD)
        assert (tree / "kafka_fast" / "_one.so").read_text() == "_one.so"
        assert (tree / "src_c" / "one.h").exists()
        (checkout / "src_c" / "one.h").touch()
    assert made(checkout) == ["thread"]


def test_what_is_changed_is_built_again(checkout: Path) -> None:
    build.make_tree(THREAD)
    (checkout / "src_c" / "one.h").write_text("another")
    build.make_tree(THREAD)
    build.make_tree(dataclasses.replace(THREAD, flags=(*THREAD.flags, "-O2")))
    assert len(made(checkout)) == 3


def test_the_cache_keeps_few(checkout: Path) -> None:
    for number in range(2 * build.KEPT):
        (checkout / "src_c" / "one.h").write_text(str(number))
        build.make_tree(THREAD)
    assert len(list((checkout.parent / "cache").iterdir())) == build.KEPT
