"""The clients for asyncio repeat the blocking ones: what they repeat is written by this module.

    consumer/client.py ─┐  signatures, docstrings in the words of tasks     ┌─► aio/consumer.py
    producer/client.py ─┼─ bodies that do nothing but run steps ───────────►┼─► aio/producer.py
    record_range.py … ──┘                                                   └─► aio/range.py …
    admin/calls/*.py ─── whole modules, awaited ──────────────────────────────► aio/admin/calls/*.py

The blocking client is the source. A class for asyncio stands in its file as a reader, an editor and
the type checker want it; what else its methods do is written by hand, and stays. So do, in its
docstrings, the paragraphs that begin with "In an event loop", and the examples.

    python -m tests.shells        rewrites the files; `test_shells.py` says if that was forgotten
"""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
cython_docstrings: Callable[[str], dict[str, str]] = runpy.run_path(
    str(ROOT / "docs/_site/cython_docstrings.py")
)["docstrings"]

WIDTH = 100
NOTE = "In an event loop"
RUN, AWAIT = "self._core.driver.run(", "await self._driver.run("

WORDS = [
    ("For one thread at a time.", "For one task at a time."),
    (
        "Sends records to Kafka. Thread-safe.",
        "Sends records to Kafka. Any number of tasks and event loops may share it.",
    ),
    ("on the callback thread, once.", "in the event loop, once; may be a coroutine."),
    ("on the callback thread,", "in the event loop,"),
    ("without a callback of its own.", "without a callback of its own. May be a coroutine."),
    ("All run in the thread that calls `poll` or `close`.", ""),
    ("in the thread that polls", "in the task that polls"),
    ("another thread", "another task"),
    ("Any thread.", "Any task."),
    (
        "Describes and changes a cluster. Thread-safe.",
        "Describes and changes a cluster. Any number of tasks and event loops may share it.",
    ),
    ("names of topics; an empty list is the same as `unsubscribe`.", "names of topics."),
    (
        "both or neither of topics and pattern are given.",
        (
            "both or neither of topics and pattern are given; or the list of topics is empty: "
            "`await unsubscribe()` to read none."
        ),
    ),
    ("A `for` statement", "An `async for` statement"),
    ("a `for` statement", "an `async for` statement"),
    ("a `with` block", "an `async with` block"),
    (
        (
            "; or the caller is a delivery callback, which must not wait, and the topic is not "
            "known yet."
        ),
        ".",
    ),
    ("and return a handle of its delivery.", "and return an awaitable handle of its delivery."),
    ("return one handle for all of them.", "return one awaitable handle for all of them."),
    ("DeliveryFuture of the record.", "DeliveryFuture of the record, when this call is awaited."),
    (
        (
            "A RecordRange is an Arrow stream as well: `pl.DataFrame(read_range(...))`, "
            "`pyarrow.table(...)` and DuckDB take its remaining records, step by step."
        ),
        "",
    ),
    ("at the time of the call", "at the time of the first step"),
]
"""What a blocking client says, and what one for asyncio says instead; "": nothing."""

NAMES = {
    "__iter__": "__aiter__",
    "__next__": "__anext__",
    "__enter__": "__aenter__",
    "__exit__": "__aexit__",
}

BLOCKING_ONLY = {
    "RecordRange.arrow": "an Arrow stream is read by a library, which cannot await",
}
ASYNCIO_ONLY = {
    "Producer.send_and_wait": "the blocking producer has `send(…).result()`",
    "RecordRange.ranges": "an attribute of the blocking one, whose constructor may wait",
}


@dataclass(frozen=True)
class Shell:
    """A class or function for asyncio, and where its blocking twin is."""

    path: str
    name: str
    sources: tuple[str, ...]
    """Files with the twin, or with what it inherits. A `.pyi` has its docstrings in the `.pyx`."""
    source_names: tuple[str, ...] = ()
    """Of the classes there, if they are not called like this one."""


SHELLS = [
    Shell("aio/consumer.py", "Consumer", ("consumer/client.py",)),
    Shell("aio/listener.py", "RebalanceListener", ("consumer/listener.py",)),
    Shell("aio/range.py", "RecordRange", ("consumer/ranges/record_range.py",)),
    Shell("aio/range.py", "read_range", ("consumer/ranges/record_range.py",)),
    Shell("aio/transactional.py", "TransactionalCalls", ("producer/transactional.py",)),
    Shell("aio/transactional.py", "Transaction", ("producer/transactional.py",)),
    Shell(
        "aio/producer.py",
        "Producer",
        ("producer/client.py", "sending/_accumulator.pyi", "sending/bulk/_bulk.pyi"),
        ("Producer", "Accumulator", "BulkAccumulator"),
    ),
    Shell("aio/admin/client.py", "Admin", ("admin/client.py",)),
    Shell("sending/_sending.pyi", "AsyncSender", ("sending/_accumulator.pyi",), ("Accumulator",)),
]


@dataclass
class Twin:
    """What a blocking function or class says of itself."""

    text: str
    node: ast.FunctionDef | ast.ClassDef
    docstring: str | None
    members: dict[str, Twin] = field(default_factory=dict)

    def segment(self, node: ast.AST) -> str:
        """Return a part of the source in one line."""
        return " ".join((ast.get_source_segment(self.text, node) or "").split())


# ---- reading ----


def twins(root: Path, shell: Shell) -> Twin:
    """Return the blocking class or function, with all members that it may inherit."""
    first: Twin | None = None
    names = shell.source_names or (shell.name,) * len(shell.sources)
    for source, name in zip(shell.sources, names, strict=True):
        twin = _twin(root / "kafka_fast" / source, name)
        if first is None:
            first = twin
        for member, text in twin.members.items():
            first.members.setdefault(member, text)
    assert first is not None
    return first


def _twin(path: Path, name: str) -> Twin:
    text = path.read_text(encoding="utf-8")
    compiled = path.with_suffix(".pyx")
    docs = cython_docstrings(compiled.read_text("utf-8")) if path.suffix == ".pyi" else {}
    (node,) = (n for n in ast.parse(text).body if getattr(n, "name", "") == name)
    assert isinstance(node, (ast.ClassDef, ast.FunctionDef))
    twin = Twin(text, node, ast.get_docstring(node) or docs.get(name))
    if isinstance(node, ast.ClassDef):
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                doc = ast.get_docstring(item) or docs.get(f"{name}.{item.name}")
                twin.members[item.name] = Twin(text, item, doc)
    return twin


# ---- docstrings ----


def blocks(docstring: str) -> list[list[str]]:
    """Return the paragraphs and sections of a docstring, each as its lines."""
    text = inspect.cleandoc(docstring)
    return [block.split("\n") for block in re.split(r"\n\s*\n", text) if block.strip()]


def in_words_of_tasks(docstring: str, own: str | None, indent: int) -> str:
    """Return a blocking client's docstring for asyncio.

    Args:
        docstring: what the blocking client says.
        own: what stands there now: its notes and examples stay.
        indent: columns before the docstring.
    """
    kept = blocks(own) if own else []
    notes = [block for block in kept if block[0].startswith(NOTE)]
    examples = [block for block in kept if block[0] == "Examples:"]
    head: list[list[str]] = []
    sections: list[list[str]] = []
    for block in blocks(docstring):
        is_section = re.fullmatch(r"[A-Z][a-z]+:", block[0]) is not None
        if block[0] == "Examples:" and examples:
            sections += examples
        elif is_section:
            entries = [_in_words(entry, 4, indent) for entry in _entries(block)]
            lines = [line for entry in entries for line in entry]
            sections += [[block[0], *lines]] if lines else []
        elif lines := _in_words(block, 0, indent):
            head.append(lines)
    return "\n\n".join("\n".join(block) for block in [*head, *notes, *sections])


def _entries(section: list[str]) -> Iterator[list[str]]:
    """Yield the lines of each entry of a section; what a call returns is one entry."""
    entry: list[str] = []
    for line in section[1:]:
        if entry and section[0] not in ("Returns:", "Examples:") and not line.startswith(" " * 8):
            yield entry
            entry = []
        entry.append(line)
    yield entry


def _in_words(lines: list[str], columns: int, indent: int) -> list[str]:
    """Return a paragraph or an entry in the words of tasks; it is left alone without any."""
    before = " ".join(line.strip() for line in lines)
    after = before
    for blocking, tasks in WORDS:
        after = after.replace(blocking, tasks)
    if after == before:
        return lines
    is_entry = columns and re.match(r"[*\w, ]+: ", after)
    return textwrap.wrap(
        after.strip(),
        WIDTH - indent,
        initial_indent=" " * columns,
        subsequent_indent=" " * (columns + 4 if is_entry else columns),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _docstring_lines(text: str, indent: int) -> list[str]:
    quoted = f'"""{text}"""' if "\n" not in text else f'"""{text}\n"""'
    return [(" " * indent + line).rstrip() for line in quoted.split("\n")]


# ---- signatures and bodies ----


def signature(twin: Twin, head: str, returns: str | None) -> list[str]:
    """Return the lines of a function's head, without indent.

    Args:
        twin: the blocking function.
        head: `def` or `async def`, and the name of the function for asyncio.
        returns: the annotation of its result, if that is its own; None: as the blocking one's.
    """
    node = twin.node
    assert isinstance(node, ast.FunctionDef)
    parameters = list(_parameters(twin, node.args))
    if returns is None and node.returns is not None:
        returns = re.sub(r"\bIterator\b", "AsyncIterator", twin.segment(node.returns))
    tail = f") -> {returns}:"
    head += "("
    written = twin.text.split("\n")[node.lineno - 1 : node.body[0].lineno - 1]
    if len(written) < 4:  # else the formatter has put each into a line
        for lines in (
            [head + ", ".join(parameters) + tail],
            [head, "    " + ", ".join(parameters), tail],
        ):
            if max(map(len, lines)) <= WIDTH - node.col_offset:
                return lines
    return [head, *(f"    {parameter}," for parameter in parameters), tail]


def _parameters(twin: Twin, arguments: ast.arguments) -> Iterator[str]:
    places = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(places) - len(arguments.defaults)) + list(arguments.defaults)
    for place, default in zip(places, defaults, strict=True):
        yield _parameter(twin, place, default)
    if arguments.kwonlyargs:
        yield "*"
    for place, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(twin, place, default)
    if arguments.kwarg is not None:
        yield "**" + _parameter(twin, arguments.kwarg, None)


def _parameter(twin: Twin, place: ast.arg, default: ast.AST | None) -> str:
    typed = place.annotation is not None
    text = f"{place.arg}: {twin.segment(place.annotation)}" if typed else place.arg
    equals = " = " if typed else "="
    return text if default is None else text + equals + twin.segment(default)


def steps_body(twin: Twin) -> list[str] | None:
    """Return the lines of a body that does nothing but run steps, awaited; None: it does more."""
    node = twin.node
    assert isinstance(node, ast.FunctionDef)
    body = node.body[1:] if ast.get_docstring(node) else node.body
    simple = (ast.Assign, ast.Expr, ast.Return)
    if not body or not all(isinstance(statement, simple) for statement in body):
        return None
    lines = twin.text.split("\n")[body[0].lineno - 1 : body[-1].end_lineno]
    text = "\n".join(lines)
    return text.replace(RUN, AWAIT).split("\n") if text.count(RUN) == 1 else None


# ---- writing ----


def rewritten(root: Path, path: str, text: str) -> str:
    """Return a file for asyncio as the blocking clients want it.

    Args:
        root: of the tree with the blocking clients.
        path: of the file, below the package.
        text: what stands in the file now.
    """
    for shell in SHELLS:
        if shell.path == path:
            text = _rewrite(text, shell, twins(root, shell))
    return text


def _rewrite(text: str, shell: Shell, twin: Twin) -> str:
    lines = text.split("\n")
    (node,) = (n for n in ast.parse(text).body if getattr(n, "name", "") == shell.name)
    pairs = [(node, twin)]
    if isinstance(node, ast.ClassDef):
        blocking = {NAMES.get(name, name): member for name, member in twin.members.items()}
        pairs += [
            (item, blocking[item.name])
            for item in node.body
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
            and item.name in blocking
            and (not item.name.startswith("_") or item.name in NAMES.values())
        ]
    for own, other in sorted(pairs, key=lambda pair: -pair[0].lineno):
        _rewrite_one(lines, text, own, other)
    return "\n".join(lines)


def _rewrite_one(lines: list[str], text: str, own: ast.AST, twin: Twin) -> None:
    """Rewrite one class or function in `lines`, of which the lines before it are as in `text`."""
    assert isinstance(own, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    is_stub = isinstance(own.body[0], ast.Expr) and ast.unparse(own.body[0]) == "..."
    inner = own.col_offset + 4
    docstring = ast.get_docstring(own)
    if not isinstance(own, ast.ClassDef):
        body = steps_body(twin)
        if body is not None:
            first = own.body[1 if docstring else 0]
            lines[first.lineno - 1 : own.body[-1].end_lineno] = body
    if twin.docstring and not is_stub and isinstance(own.body[0], ast.Expr):
        words = in_words_of_tasks(twin.docstring, docstring, inner)
        start, end = own.body[0].lineno - 1, own.body[0].end_lineno
        lines[start:end] = _docstring_lines(words, inner)
    if isinstance(own, ast.ClassDef):
        return
    returns = ast.get_source_segment(text, own.returns) if own.returns else None
    is_own = returns is not None and re.match(r"Awaitable|Coroutine", returns) is not None
    kind = "async def" if isinstance(own, ast.AsyncFunctionDef) else "def"
    head = signature(twin, f"{kind} {own.name}", returns if is_own else None)
    if is_stub:
        head[-1] += " ..."
    end = own.lineno if is_stub else own.body[0].lineno - 1
    end = own.end_lineno if is_stub else end
    lines[own.lineno - 1 : end] = [" " * own.col_offset + line for line in head]


def awaited(root: Path, source: str) -> str:
    """Return a module of the admin client's calls for asyncio: all of them run steps."""
    text = (root / "kafka_fast" / source).read_text(encoding="utf-8")
    text = text.replace('"""The calls of `Admin`', '"""The calls of `aio.Admin`', 1)
    text = text.replace('."""', f'.\n\nMade of `{source}` by `python -m tests.shells`.\n"""', 1)
    text = re.sub(r"^class (\w+)", r"class Async\1", text, flags=re.MULTILINE)
    assert text.count(RUN) == text.count("\n    def "), source
    return text.replace("\n    def ", "\n    async def ").replace(RUN, AWAIT)


def modules_to_await(root: Path) -> dict[str, str]:
    """Return the modules of the admin client's calls, by what is made of them."""
    folder = root / "kafka_fast/admin/calls"
    return {
        f"aio/admin/calls/{path.name}": f"admin/calls/{path.name}"
        for path in sorted(folder.glob("[!_]*.py"))
    }


def rewritten_compiled(root: Path, text: str) -> str:
    """Return the source of the compiled `AsyncSender` with the docstring of the blocking `send`."""
    docstring = twins(root, SHELLS[-1]).members["send"].docstring
    own = cython_docstrings(text)["AsyncSender.send"]
    assert docstring is not None
    indent = 8
    words = _docstring_lines(in_words_of_tasks(docstring, own, indent), indent)
    return text.replace(f'{" " * indent}"""{own}"""', "\n".join(words))


COMPILED = "sending/_sending.pyx"


def stale(root: Path) -> dict[str, str]:
    """Return the text that each file should have, of those that have another; by path."""
    result = {}
    for path in sorted({shell.path for shell in SHELLS} | {COMPILED}):
        text = (root / "kafka_fast" / path).read_text(encoding="utf-8")
        new = rewritten_compiled(root, text) if path == COMPILED else rewritten(root, path, text)
        if new != text:
            result[path] = new
    for path, source in modules_to_await(root).items():
        made = root / "kafka_fast" / path
        new = awaited(root, source)
        if not made.exists() or made.read_text(encoding="utf-8") != new:
            result[path] = new
    return result


if __name__ == "__main__":
    for name, contents in stale(ROOT).items():
        (ROOT / "kafka_fast" / name).write_text(contents, encoding="utf-8")
