"""The import direction and the other structural rules, as tables and one checker.

    L0 errors, logs ◀ times, types, serialization,  L3 dataplane ◀ sending, records   control
       config                                       L4 net       (control and dataplane: never
    L1 _wire                                                      each other)
    L2 record, protocol                             L5 producer, consumer, admin, aio
                                                    L6 compat, arrow, spark, cli, rest
    beside them: testing.broker (record, protocol, _wire only), testing
    to come, so that their place is known: admin, compat, arrow, rest

`violations(root)` reads .py files through their syntax tree, .pyx, .pxd and C files by regular
expressions, and returns one line per violation; `test_layers.py` runs it over this repository and
over planted faults.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "kafka_fast"

BASE = {
    "errors",
    "_error_codes",
    "instants",
    "logs",
    "values",
    "times",
    "types",
    "secret",
    "serialization",
    "config",
    "_version",
    "_lazy",
    "_hints",
    "peer_names",
    "peer_errors",
}
BYTES = {"_wire", "record", "protocol"}
CLIENTS = {"", "producer", "consumer", "admin", "aio"}  # "" is the package itself

# Unit (first matching prefix of the module's name in the package) -> units it may import. The
# names of admin, arrow, compat and rest are reserved, here and in the tables beside it: they are
# planned, and do not exist yet.
ALLOWED: dict[str, set[str]] = {
    "_error_codes": set(),
    "errors": {"_error_codes"},
    "_version": set(),
    "_lazy": set(),
    "_hints": set(),
    "peer_names": set(),
    "peer_errors": {"peer_names"},
    "instants": set(),
    "logs": {"instants"},
    "values": set(),
    "times": {"errors"},
    "types": {"errors", "_hints", "peer_names", "peer_errors"},
    "secret": set(),
    "_json_alike": set(),
    "json_text": {"_json_alike"},
    "serialization": {"errors", "types", "values", "json_text"},
    "config": {"errors", "logs", "secret", "values", "types", "serialization", "_version"},
    "_wire": {"errors"},
    "record": {"_wire", "errors", "types", "_lazy", "_hints"},
    "protocol": {"_wire", "record", "errors", "types"},
    "dataplane": BASE | BYTES,
    "control": BASE | BYTES,
    "sending": BASE | BYTES | {"dataplane"},
    "records": BASE | BYTES | {"dataplane"},
    "net": BASE | BYTES | {"dataplane", "control", "sending"},
    "producer": BASE | BYTES | {"net", "control", "dataplane", "sending"},
    "consumer": BASE | BYTES | {"net", "control", "dataplane", "records"},
    "admin": BASE | BYTES | {"net", "control", "dataplane"},
    "aio": BASE
    | BYTES
    | {"producer", "consumer", "admin", "net", "control", "dataplane", "sending", "records"},
    "": BASE | {"aws"} | CLIENTS - {""},
    "aws": {"net"},  # public names for a part of net/login
    "arrow": BASE | CLIENTS | {"record", "protocol"},
    "compat": BASE | CLIENTS | {"record", "protocol"},
    "spark": BASE | CLIENTS | {"arrow", "record", "protocol"},
    "rest": BASE | CLIENTS | {"record", "protocol"},
    # `info` names the CPU paths, which only _wire knows, and which TLS there is; `check` shows the
    # steps of a connection (net/probe), which the public clients hide.
    "cli": BASE | CLIENTS | {"_wire", "record", "protocol", "testing.broker.serving", "net"},
    "__main__": {"cli"},
    "testing.broker": BYTES | {"errors"},
    "testing.broker.serving": BYTES | {"errors", "testing.broker"},
    "testing": BASE
    | BYTES
    | CLIENTS
    | {"testing.broker", "testing.broker.serving", "net", "control", "dataplane"},
}

# A future can be awaited: whoever does so has imported asyncio already.
AWAITABLE = {"sending", "dataplane"}
SYSTEM = {
    "net",
    "testing",
    "testing.broker.serving",
}
CLIENT_EDGES = {"producer", "consumer", "admin", "aio", "cli", "spark", "rest", "compat"}

# Module of the standard library -> units that may import it; everybody else is sans-I/O.
RESTRICTED: dict[str, set[str]] = {
    **dict.fromkeys(("socket", "select", "selectors"), SYSTEM | {"rest", "cli"}),
    "ssl": SYSTEM | {"rest", "cli", "config"},  # config: the name of a type only
    "asyncio": SYSTEM | AWAITABLE | {"aio", "rest", "cli", "producer", "consumer"},
    "time": SYSTEM | CLIENT_EDGES,
    **dict.fromkeys(
        ("threading", "_thread", "concurrent", "multiprocessing", "queue"), SYSTEM | CLIENT_EDGES
    ),
    "secrets": SYSTEM | CLIENT_EDGES,
    # The embedded broker needs the name of the type: its generator comes in with a seed.
    "random": SYSTEM | CLIENT_EDGES | {"testing.broker"},
    "subprocess": {"testing", "cli"},
    # C headers that Cython modules cimport.
    **{f"posix.{header}": {"net"} for header in ("time", "unistd", "select", "fcntl")},
    "libc.time": {"net"},
}
# The modules are harmless, these functions are not.
RESTRICTED_CALLS: dict[str, set[str]] = {
    **{
        f"random.{name}": SYSTEM | CLIENT_EDGES
        for name in ("random", "randint", "randrange", "choice", "shuffle", "seed", "getrandbits")
    },
    **dict.fromkeys(("os.urandom", "uuid.uuid1", "uuid.uuid4"), SYSTEM | CLIENT_EDGES),
    **dict.fromkeys(("datetime.now", "datetime.utcnow", "date.today"), SYSTEM | CLIENT_EDGES),
    **dict.fromkeys(("os.fork", "os.kill"), SYSTEM | {"cli"}),
}

# C: the planes see the operating system through tables that net/ fills. kf_sync.h holds the locks.
C_SYSTEM_HEADERS = re.compile(
    r"#\s*include\s*<(sys/socket|sys/select|sys/epoll|sys/eventfd|sys/event|poll|netdb|netinet/.*"
    r"|arpa/.*|unistd|fcntl|signal|sys/time|sys/random)\.h>"
)
C_CLOCK_OR_CHANCE = re.compile(
    r"\b(clock_gettime|gettimeofday|time|rand|random|getrandom|arc4random)\s*\("
)
C_THREAD_START = re.compile(r"\bpthread_create\s*\(")
GIL_IS_NOT_TAKEN = {"dataplane", "sending", "records"}
"""Where code without the GIL never takes it. `net/_pump.pyx`, which runs the planes, is one more.
"""
C_SYSTEM_FILES = ("kf_sync.", "fuzz/", "tsan/")

WORLDS = "tests/sim/worlds"
IN_WORLDS = {
    "asyncio": "the exception of a cancellation; no event loop runs",
    "threading": "users are threads that take turns: never two at once",
    "socket": "the errors of look-ups",
    "random": "generators that come in with a seed",
}
"""What the simulation may import of RESTRICTED: in it a seed decides everything."""

NOT_FOR_USERS_THREADS = (
    "control.client_control",
    "control.connections",
    "control.diagnosis.waiting_reasons",
    "control.in_flight_requests",
    "control.metadata",
    "control.requests",
)
"""The control plane's state: users' threads read it through `control.view` only."""

APART = {
    "dataplane.fetch": ("dataplane.produce",),
    "dataplane.produce": ("dataplane.fetch",),
    "sending": ("dataplane.fetch", "sending.bulk"),
    "records": ("dataplane.produce",),
    **dict.fromkeys(("producer", "consumer", "admin", "aio", "net.waiting"), NOT_FOR_USERS_THREADS),
}
"""Package of one side -> what it does not import, though its layer might. `core` turns both."""

CONSTRUCTORS = ("control", "net", "producer", "consumer", "admin")
MAX_PARAMETERS = 7
"""Of a constructor there, but for `self`: what belongs to the client comes in its context."""

OWN_PACE = {
    "control.connections.backoff": "the curve itself",
    "control.context": "hands the curve on",
    "control.client_control": "makes it",
    "control.requests": "the home of retries",
    "control.connections.connection": "reconnect.backoff.ms is a connection's own",
    "control.metadata.refresh": "decides when metadata are due, not how they are asked",
    "control.metadata.cluster": "makes that schedule",
    "control.consumer.restarts": "partitions that are fetched again: no request, but a Fetch",
    "control.group.readiness": "a member's conversation has an order of its own",
    "control.group.classic.classic_member": "the same",
    "control.group.consumer_protocol.consumer_protocol_member": "the same",
    "control.producer.producer_control": "batches that are sent again: no request, but a Produce",
}
"""Who in control/ may decide when something is tried again, and why; all else is a call."""

KEEP_THEIR_NAMES = {
    "protocol.apis": "Kafka's names for its messages",
    "protocol.headers": "the same: `frame.RequestHeader` is what was read of one, in any version",
    "testing": "another program: a broker has topics, groups and members of its own",
}
"""Whose classes may be called like one of the client's, and why."""

MAX_LINES = {".py": 600, ".pyx": 600, ".pxd": 600, ".pyi": 600, ".c": 700, ".h": 300}
MAX_COLUMNS = 100
MADE_BY = "Made by src_c/make_messages"
"""In files that a build makes: as long as the list that they follow from."""

CLASS = re.compile(r"^(?:cdef |cpdef )?class +(\w+)", re.MULTILINE)
CIMPORT = re.compile(
    r"^\s*(?:from\s+([\w.]+)\s+c?import\s+(.+)|c?import\s+([\w.]+(?:\s*,\s*[\w.]+)*))"
)
WITH_GIL = re.compile(r"\bwith\s+gil\b")


def violations(root: Path) -> list[str]:
    """Return one line for each broken rule in the tree at `root`."""
    faults: list[str] = []
    modules = _modules(root)
    for path in sorted((root / PACKAGE).rglob("*")):
        if path.suffix in {".py", ".pyx", ".pxd", ".pyi"}:
            faults += _check_module(root, path, modules)
    for path in sorted((root / WORLDS).rglob("*.py")):
        faults += _check_world(root, path)
    for path in sorted((root / "src_c").rglob("*")):
        if path.suffix in {".c", ".h"}:
            faults += _check_c(root, path)
    faults += _check_class_names(root)
    return faults


SAME_IN_AIO = {
    "Admin",
    "Consumer",
    "Producer",
    "RebalanceListener",
    "RecordRange",
    "Transaction",
    "TransactionalCalls",
}
"""Classes that the client API of asyncio names as the blocking one does, on purpose."""


def _check_class_names(root: Path) -> Iterator[str]:
    """Yield each name that two classes of client code share: a reader would mix them up.

    A private class is known to its own package only, so another package may use its name.
    """
    homes: dict[tuple[str, str], dict[str, str]] = {}  # (scope, name) -> module -> file and line
    for path in sorted((root / PACKAGE).rglob("*")):
        module = _name(root, path)
        if path.suffix not in MAX_LINES or any(_is_in(module, place) for place in KEEP_THEIR_NAMES):
            continue
        text = _without_strings(path.read_text(encoding="utf-8"))
        for match in CLASS.finditer(text):
            if _is_in(module, "aio") and match[1] in SAME_IN_AIO:
                continue
            scope = module.rpartition(".")[0] if match[1].startswith("_") else ""
            line = text.count("\n", 0, match.start()) + 1
            where = f"{path.relative_to(root).as_posix()}:{line}"
            homes.setdefault((scope, match[1]), {}).setdefault(module, where)
    for (_, name), modules in sorted(homes.items()):
        first, *others = modules.values()
        for other in others:
            yield f"{other}: {first} has a class {name} too"


def _modules(root: Path) -> set[str]:
    """Return the dotted names, below the package, of all modules and packages."""
    names = set()
    for path in (root / PACKAGE).rglob("*"):
        if path.suffix in {".py", ".pyx", ".pxd"}:
            names.add(_name(root, path))
    return names


def _name(root: Path, path: Path) -> str:
    """Return the dotted name of a file's module below the package; "" for the package."""
    parts = path.relative_to(root / PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _unit(module: str) -> str:
    """Return the unit of ALLOWED that a module belongs to."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length])
        if prefix in ALLOWED:
            return prefix
    return parts[0]


def _check_module(root: Path, path: Path, modules: set[str]) -> Iterator[str]:
    """Yield what one Python or Cython file breaks."""
    where = path.relative_to(root).as_posix()
    text = path.read_text(encoding="utf-8")
    unit = _unit(_name(root, path))
    yield from _check_size(where, path, text)
    if unit not in ALLOWED:
        yield f"{where}: {unit} has no place in the layers: add it to tests/layers.py"
        return
    if path.suffix in {".py", ".pyi"}:
        imports, calls = _python_imports(text)
    else:
        imports, calls = cython_imports(text), []
        yield from _check_gil(where, unit, path, text)
    for line, base, names in imports:
        for other in sorted({_unit(target) for target in _targets(base, names, modules)}):
            if other != unit and other not in ALLOWED[unit]:
                yield f"{where}:{line}: {unit or PACKAGE} must not import {other or PACKAGE}"
        for target in sorted(_targets(base, names, modules)):
            yield from _check_apart(where, line, _name(root, path), target)
        yield from _check_restricted(where, line, unit, base)
    if path.suffix == ".py" and unit in CONSTRUCTORS:
        yield from _check_constructors(where, text)
    if path.suffix == ".py" and unit == "control":
        yield from _check_pace(where, _name(root, path), text)
    for line, call in calls:
        permitted = RESTRICTED_CALLS.get(call)
        if permitted is not None and unit not in permitted:
            yield f"{where}:{line}: {unit or PACKAGE} must not call {call}"


def import_circles(root: Path, package: str) -> list[set[str]]:
    """Return the sets of modules of a package that import each other as they are loaded.

    Imports for typing, and those in a function, are no part of a circle.
    """
    modules = {name for name in _modules(root) if _is_in(name, package)}
    imported: dict[str, set[str]] = {}
    for path in sorted((root / PACKAGE / package.replace(".", "/")).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tops = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        imported[_name(root, path)] = {
            target
            for node in tops
            for target in _targets(node.module or "", [name.name for name in node.names], modules)
            if target in modules
        }
    reached = {name: _reached(name, imported) for name in imported}
    circles = [
        {other for other in reached[name] if name in reached[other]}
        for name in imported
        if name in reached[name]
    ]
    return [circle for number, circle in enumerate(circles) if circle not in circles[:number]]


def _reached(name: str, imported: dict[str, set[str]]) -> set[str]:
    """Return the modules that loading a module loads."""
    reached: set[str] = set()
    left = [name]
    while left:
        for target in imported.get(left.pop(), set()) - reached:
            reached.add(target)
            left.append(target)
    return reached


def _check_apart(where: str, line: int, module: str, target: str) -> Iterator[str]:
    """Yield a violation if a package imports what it is to be apart from; `others` may be in it."""
    for side, others in APART.items():
        if _is_in(module, side):
            for other in others:
                if _is_in(target, other) and not _is_in(module, other):
                    yield f"{where}:{line}: {side} must not import {other}"


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _check_world(root: Path, path: Path) -> Iterator[str]:
    """Yield what one file of the simulation breaks."""
    where = path.relative_to(root).as_posix()
    text = path.read_text(encoding="utf-8")
    yield from _check_size(where, path, text)
    imports, calls = _python_imports(text)
    for line, base, _ in imports:
        if base in RESTRICTED and base not in IN_WORLDS:
            yield f"{where}:{line}: the simulation must not import {base}"
    for line, call in calls:
        if call in RESTRICTED_CALLS:
            yield f"{where}:{line}: the simulation must not call {call}"


def _check_constructors(where: str, text: str) -> Iterator[str]:
    """Yield each constructor that takes too much."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            count = len(node.args.args) + len(node.args.kwonlyargs) - 1
            if count > MAX_PARAMETERS:
                yield f"{where}:{node.lineno}: a constructor with {count} parameters"


def _check_pace(where: str, module: str, text: str) -> Iterator[str]:
    """Yield each use of a backoff by a module that is to leave retries to the requester."""
    if any(_is_in(module, place) for place in OWN_PACE):
        return
    for node in ast.walk(ast.parse(text)):
        is_import = isinstance(node, ast.ImportFrom) and (node.module or "").endswith(".backoff")
        if is_import or (isinstance(node, ast.Attribute) and node.attr == "backoff"):
            yield f"{where}:{node.lineno}: {module} must leave retries to control/requests"


def _targets(base: str, names: list[str], modules: set[str]) -> Iterator[str]:
    """Yield the modules of the package that `from base import names` (or `import base`) loads."""
    if base != PACKAGE and not base.startswith(PACKAGE + "."):
        return
    inner = base[len(PACKAGE) + 1 :]
    for name in names or [""]:
        candidate = f"{inner}.{name}".strip(".")
        yield candidate if candidate in modules else inner


def _check_restricted(where: str, line: int, unit: str, module: str) -> Iterator[str]:
    """Yield a violation if `module` is one that only some units may use."""
    for name in (module, module.split(".", maxsplit=1)[0]):
        permitted = RESTRICTED.get(name)
        if permitted is not None and unit not in permitted:
            yield f"{where}:{line}: {unit or PACKAGE} must not import {name}"
            return


def _python_imports(
    text: str,
) -> tuple[list[tuple[int, str, list[str]]], list[tuple[int, str]]]:
    """Return the imports, at any depth, and the calls of the form `module.function`."""
    imports: list[tuple[int, str, list[str]]] = []
    calls: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imports += [(node.lineno, alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            imports.append((node.lineno, "." * node.level + (node.module or ""), names))
            calls += [(node.lineno, f"{node.module}.{name}") for name in names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            calls.append((node.lineno, f"{node.value.id}.{node.attr}"))
    return imports, calls


def cython_imports(text: str) -> list[tuple[int, str, list[str]]]:
    """Return the imports and cimports of a .pyx or .pxd file."""
    imports: list[tuple[int, str, list[str]]] = []
    joined = re.sub(r"\(([^()]*)\)", lambda m: m[0].replace("\n", "\v"), _without_strings(text))
    line = 1
    for logical in joined.split("\n"):
        match = CIMPORT.match(logical.replace("\v", " "))
        if match is not None and match[1]:
            names = [name.split()[0] for name in match[2].strip("() ").split(",") if name.strip()]
            imports.append((line, match[1], names))
        elif match is not None:
            imports += [(line, name.strip(), []) for name in match[3].split(",")]
        line += 1 + logical.count("\v")
    return imports


def _without_strings(text: str) -> str:
    """Return Cython source without docstrings and comments, with the same lines."""
    text = re.sub(r'("""|\'\'\').*?\1', lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    return re.sub(r"#.*", "", text)


def _check_gil(where: str, unit: str, path: Path, text: str) -> Iterator[str]:
    """Yield each place where code that runs without the GIL would take it."""
    if unit not in GIL_IS_NOT_TAKEN and not (unit == "net" and path.stem == "_pump"):
        return
    for number, line in enumerate(_without_strings(text).split("\n"), 1):
        if WITH_GIL.search(line):
            yield f"{where}:{number}: {unit} must not take the GIL"


def _check_size(where: str, path: Path, text: str) -> Iterator[str]:
    """Yield a violation for a file, or a line of it, that is too long."""
    lines = text.splitlines()
    limit = MAX_LINES[path.suffix]
    if len(lines) > limit and MADE_BY not in text:
        yield f"{where}: {len(lines)} lines, more than {limit}: it is two nouns"
    if path.suffix in {".py", ".pyi"}:
        return  # ruff measures their lines
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield f"{where}:{number}: {len(line)} columns, more than {MAX_COLUMNS}"


def _check_c(root: Path, path: Path) -> Iterator[str]:
    """Yield what one C file breaks."""
    where = path.relative_to(root).as_posix()
    text = path.read_text(encoding="utf-8")
    inner = path.relative_to(root / "src_c").as_posix()
    yield from _check_size(where, path, text)
    code = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(code.split("\n"), 1):
        if re.search(r"#\s*include\s*[<\"]Python\.h", line):
            yield f"{where}:{number}: src_c knows nothing of CPython"
        if inner.startswith(C_SYSTEM_FILES):
            continue
        if C_SYSTEM_HEADERS.search(line):
            yield f"{where}:{number}: the planes reach the operating system through tables only"
        if C_CLOCK_OR_CHANCE.search(line):
            yield f"{where}:{number}: clocks and random numbers come from outside"
        if C_THREAD_START.search(line):
            yield f"{where}:{number}: threads are started by net/"
