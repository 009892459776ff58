"""What `__dealloc__` does works at the end of the interpreter, when modules have lost their names.

A name of a module, such as `os`, may be None by then, and nothing can be imported. So a finalizer
of a compiled class uses C, its own attributes, and functions that do the same. This is checked in
the C that Cython makes: there a look-up of such a name is a call of `__Pyx_GetModuleGlobalName`.
What the finalizers of whole clients do is tried in tests/embedded/process/test_finalizers.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GENERATED = ROOT / "build" / "cython" / "kafka_fast"

FUNCTION = re.compile(
    r"^(?:static |CYTHON_\w+ |__PYX_\w+ )*[\w *]+?\b(__pyx_\w+)\([^;{]*\) \{$", re.MULTILINE
)
CALLED = re.compile(r"\b(__pyx_(?:pf|f)_\w+)\(")
BY_TABLE = re.compile(r"__pyx_vtabstruct_(\w+)_([A-Za-z]+) \*\)[^;]*?->__pyx_vtab\)->(\w+)\(")
BY_NAME = re.compile(r"__Pyx_GetModuleGlobalName\([^,]+, (?:[\w>-]*->)?(\w+)\)|(__Pyx_Import)\(")


def functions(text: str) -> dict[str, str]:
    """Return the bodies of a generated file's functions, by name."""
    bodies = {}
    for match in FUNCTION.finditer(text):
        end = text.find("\n}\n", match.end())
        bodies[match[1]] = text[match.end() : end]
    return bodies


def lookups(name: str, bodies: dict[str, str], seen: set[str]) -> Iterator[str]:
    """Return the names of modules that a function looks up, itself or in what it calls."""
    if name in seen or name not in bodies:
        return
    seen.add(name)
    body = re.sub(r"/\*.*?\*/", "", bodies[name], flags=re.DOTALL)
    for by_name in BY_NAME.finditer(body):
        yield f"{name}: {by_name[1] or by_name[2]}"
    for called in CALLED.findall(body):
        yield from lookups(called, bodies, seen)
    for module, owner, method in BY_TABLE.findall(body):
        yield from lookups(f"__pyx_f_{module}_{len(owner)}{owner}_{method}", bodies, seen)


@pytest.fixture(name="bodies", scope="module")
def all_functions() -> dict[str, str]:
    paths = sorted(GENERATED.rglob("*.c"))
    assert paths, "no generated C: make build"
    bodies: dict[str, str] = {}
    for path in paths:
        bodies |= functions(path.read_text(errors="replace"))
    return bodies


def classes() -> list[str]:
    """Return all compiled classes that have a finalizer, as module.Class."""
    owners = []
    for path in sorted((ROOT / "kafka_fast").rglob("_*.pyx")):
        owner = ""
        for line in path.read_text().splitlines():
            if match := re.match(r"(?:cdef )?class (\w+)", line):
                owner = match[1]
            elif "def __dealloc__(self)" in line:
                owners.append(f"{path.relative_to(ROOT).with_suffix('')}.{owner}".replace("/", "."))
    return owners


def mangled(dotted: str) -> str:
    return "_".join(f"{len(part)}{part}" for part in dotted.split("."))


DROP_HANDLE = "__pyx_f_" + mangled("kafka_fast.sending._delivery") + "_drop_handle"
"""The finalizer of DeliveryFuture, which is not Cython's."""


@pytest.mark.parametrize("name", classes())
def test_a_finalizer_looks_up_no_name(bodies: dict[str, str], name: str) -> None:
    pattern = re.compile(rf"__pyx_pf_{mangled(name)}_\d*__dealloc__")
    (start,) = [one for one in bodies if pattern.fullmatch(one)]
    assert list(lookups(start, bodies, set())) == []


def test_a_dropped_handle_looks_up_no_name(bodies: dict[str, str]) -> None:
    seen: set[str] = set()
    assert list(lookups(DROP_HANDLE, bodies, seen)) == []
    assert any(one.endswith("_report_late") for one in seen), "the search follows calls"


CALLED_BY_OTHERS = (
    "kafka_fast.sending.bulk._batch_future.BatchFuture",
    "kafka_fast.dataplane.core._plane.DataPlane",
    "kafka_fast.dataplane.produce._losses.LossCounts",
    "kafka_fast.dataplane.produce._queues.Queues",
    "kafka_fast.net._pump.LoopEvent",
    "kafka_fast.net._pump.Machine",
    "kafka_fast.net._pump.Pump",
)
"""Classes that finalizers of others use, or that need other objects in their own."""


@pytest.mark.parametrize("name", CALLED_BY_OTHERS)
def test_garbage_collection_takes_nothing_from_what_is_used_to_the_end(
    bodies: dict[str, str], name: str
) -> None:
    """It empties all objects of a cycle that can be, in any order, before the first one goes."""
    assert f"__pyx_tp_dealloc_{mangled_type(name)}" in bodies
    assert f"__pyx_tp_clear_{mangled_type(name)}" not in bodies


def mangled_type(dotted: str) -> str:
    module, _, name = dotted.rpartition(".")
    return f"{mangled(module)}_{name}"


def test_a_look_up_is_found() -> None:
    text = """
static void __pyx_f_1m_1A_log(PyObject *__pyx_v_self) {
  __Pyx_GetModuleGlobalName(__pyx_t_2, __pyx_n_u_warnings);
}

static void __pyx_pf_1m_1A___dealloc__(PyObject *__pyx_v_self) {
  ((struct __pyx_vtabstruct_1m_A *)__pyx_v_self->__pyx_vtab)->log(__pyx_v_self);
}
"""
    bodies = functions(text)
    assert list(lookups("__pyx_pf_1m_1A___dealloc__", bodies, set())) == [
        "__pyx_f_1m_1A_log: __pyx_n_u_warnings"
    ]
