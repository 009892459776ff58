"""Circles of imports: modules that can be neither read nor loaded one after the other.

    what runs      no circle, not even by an import inside a function
    for types      a circle stays in its room, which is a folder: a reader has all of it at hand

A cimport counts as what runs: Cython imports the other extension. `test_circles.py` runs this over
the repository, and over planted circles.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.layers import PACKAGE, cython_imports

ON_FIRST_USE = {
    ("record._reader", "record._legacy"): "formats of before Kafka 0.11: few logs have any",
    ("sending.bulk._column", "sending.bulk._arrow"): "Arrow: few programs bring columns",
    ("sending.bulk._rows", "sending.bulk._arrow"): "the same",
}
"""(module, what a function of it imports) -> why that is not loaded before it is needed."""

Graph = dict[str, set[str]]


def imports(root: Path) -> tuple[Graph, Graph]:
    """Return module -> what it imports: when it runs, and for types as well.

    Modules are named below the package; the imports of ON_FIRST_USE are left out.
    """
    files: dict[str, list[Path]] = {}
    for path in sorted((root / PACKAGE).rglob("*")):
        if path.suffix in {".py", ".pyx", ".pxd"}:
            parts = path.relative_to(root / PACKAGE).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            files.setdefault(".".join(parts), []).append(path)
    runs: Graph = {module: set() for module in files}
    with_types: Graph = {module: set() for module in files}
    for module, paths in files.items():
        for name, is_for_types in _imported_by(paths):
            target = _module_of(name, files)
            if target is None or target == module or (module, target) in ON_FIRST_USE:
                continue
            with_types[module].add(target)
            if not is_for_types:
                runs[module].add(target)
    return runs, with_types


def _imported_by(paths: list[Path]) -> Iterator[tuple[str, bool]]:
    """Yield each name that a module's files import, and whether only type checkers do."""
    for path in paths:
        text = path.read_text(encoding="utf-8")
        yield from _in_python(ast.parse(text)) if path.suffix == ".py" else _in_cython(text)


def _in_python(tree: ast.AST, *, is_for_types: bool = False) -> Iterator[tuple[str, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            is_negated = ast.unparse(node.test).startswith("not ")
            for part, is_then in ((node.body, True), (node.orelse, False)):
                block = ast.Module(body=part, type_ignores=[])
                yield from _in_python(block, is_for_types=is_then != is_negated)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, is_for_types) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{alias.name}", is_for_types) for alias in node.names)
        else:
            yield from _in_python(node, is_for_types=is_for_types)


def _in_cython(text: str) -> Iterator[tuple[str, bool]]:
    for _, base, names in cython_imports(text):
        yield from ((f"{base}.{name}".strip("."), False) for name in names or [""])


def _module_of(name: str, files: dict[str, list[Path]]) -> str | None:
    """Return the module that an imported name is, or is in; None: it is of another package."""
    if name != PACKAGE and not name.startswith(f"{PACKAGE}."):
        return None
    module = name.removeprefix(PACKAGE).strip(".")
    while module and module not in files:
        module = module.rpartition(".")[0]
    return module if module in files else None


def circles(graph: Graph) -> list[list[str]]:
    """Return the sets of modules that all lead to each other."""
    reached = {module: _reachable(graph, module) for module in graph}
    result: list[list[str]] = []
    done: set[str] = set()
    for module in sorted(graph):
        if module in done or module not in reached[module]:
            continue
        circle = sorted(other for other in reached[module] if module in reached[other])
        done.update(circle)
        result.append(circle)
    return result


def _reachable(graph: Graph, start: str) -> set[str]:
    reached: set[str] = set()
    left = list(graph[start])
    while left:
        module = left.pop()
        if module not in reached:
            reached.add(module)
            left += graph[module]
    return reached


def faults(root: Path) -> list[str]:
    """Return one line for each circle that must not be in the tree at `root`."""
    runs, with_types = imports(root)
    lines = [f"import each other: {', '.join(circle)}" for circle in circles(runs)]
    over_rooms = [
        circle
        for circle in circles(with_types)
        if len({module.rpartition(".")[0] for module in circle}) > 1
    ]
    return lines + [f"import each other, over rooms: {', '.join(circle)}" for circle in over_rooms]
