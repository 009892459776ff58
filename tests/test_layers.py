"""The structure of the source: imports point one way, and the system is met where it may be."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.layers import ALLOWED, import_circles, violations

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Keep finalizers out of ast.parse: CPython 3.11 loses count of its recursion there."""
    gc.disable()
    yield
    gc.enable()


def plant(root: Path, files: dict[str, str]) -> list[str]:
    """Write a small tree with these files and return what the checker says of it."""
    skeleton = {
        "kafka_fast/__init__.py": "",
        "kafka_fast/errors.py": "",
        "kafka_fast/net/__init__.py": "",
        "kafka_fast/control/__init__.py": "",
        "kafka_fast/control/metadata/cluster.py": "",
        "kafka_fast/dataplane/__init__.py": "",
        "kafka_fast/dataplane/core/_sender.pyx": "",
        "kafka_fast/testing/broker/__init__.py": "",
        "src_c/kf_wire.h": "",
    }
    for name, text in {**skeleton, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return violations(root)


def test_this_repository() -> None:
    assert violations(ROOT) == []


def test_every_stub_has_an_extension() -> None:
    """What has no stub is for other extensions alone: mypy refuses to import it."""
    sources = {path.with_suffix("") for path in (ROOT / "kafka_fast").rglob("_*.pyx")}
    stubs = {path.with_suffix("") for path in (ROOT / "kafka_fast").rglob("*.pyi")}
    assert {str(path.relative_to(ROOT)) for path in stubs - sources} == set()
    both = [path for path in stubs if path.with_suffix(".py").exists()]
    assert both == []


def test_the_table_of_layers_has_no_cycle() -> None:
    done: set[str] = set()
    left = {unit: set(allowed) for unit, allowed in ALLOWED.items()}
    while left:
        free = [unit for unit, allowed in left.items() if not allowed & set(left) - {unit}]
        assert free, f"these import each other: {sorted(left)}"
        done.update(free)
        left = {unit: allowed for unit, allowed in left.items() if unit not in free}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import time", "worlds/a.py:1: the simulation must not import time"),
        ("import random\nx = random.random()", "a.py:2: the simulation must not call random.ra"),
        ("import os\nx = os.urandom(8)", "worlds/a.py:2: the simulation must not call os.urandom"),
    ],
)
def test_what_would_make_a_simulation_depend_on_more_than_its_seed(
    tmp_path: Path, text: str, said: str
) -> None:
    (violation,) = plant(tmp_path, {"tests/sim/worlds/a.py": text})
    assert said in violation


def test_a_clean_tree_is_clean(tmp_path: Path) -> None:
    files = {
        "kafka_fast/net/pump.py": (
            "import socket, time\nfrom kafka_fast.control.metadata import cluster\n"
        ),
        "kafka_fast/control/metadata/cluster.py": "from kafka_fast import errors\nimport math\n",
        "kafka_fast/dataplane/core/_sender.pyx": '"""Never says with gil."""\ncimport cython\n',
        "kafka_fast/dataplane/core/_a.pyx": "from kafka_fast.dataplane.produce._b cimport c\n",
        "kafka_fast/sending/bulk/_a.pyx": "from kafka_fast.sending.bulk._b cimport c\n",
        "src_c/kf_link.c": "/* recv and clock_gettime() come in. */\n#include <string.h>\n",
    }
    assert plant(tmp_path, files) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("control/a.py", "from kafka_fast.dataplane import _sender", "must not import dataplane"),
        ("control/a.py", "import kafka_fast.dataplane.core._sender", "must not import dataplane"),
        (
            "control/a.py",
            "def f():\n    from kafka_fast.net import x",
            "control/a.py:2: control must not import net",
        ),
        (
            "control/a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import kafka_fast.net",
            "control/a.py:3: control must not import net",
        ),
        ("control/a.py", "from kafka_fast import net", "must not import net"),
        (
            "dataplane/_a.pyx",
            "from kafka_fast.control.metadata.cluster cimport (\n    A,\n    B,\n)",
            "_a.pyx:1: dataplane must not import control",
        ),
        ("dataplane/_a.pyx", "cimport kafka_fast.net", "must not import net"),
        ("dataplane/_a.pxd", "from kafka_fast cimport control", "must not import control"),
        ("dataplane/_a.pyx", "if x:\n    import kafka_fast.net", "_a.pyx:2: dataplane must not"),
        (
            "dataplane/fetch/_a.pxd",
            "from kafka_fast.dataplane.produce._lists cimport unlink",
            "_a.pxd:1: dataplane.fetch must not import dataplane.produce",
        ),
        (
            "dataplane/produce/_a.pyx",
            "cimport kafka_fast.dataplane.fetch.fetch",
            "_a.pyx:1: dataplane.produce must not import dataplane.fetch",
        ),
        (
            "dataplane/produce/_a.pyx",
            "from kafka_fast.sending.bulk import _bulk",
            "_a.pyx:1: dataplane must not import sending",
        ),
        (
            "sending/_a.pyx",
            "from kafka_fast.sending.bulk import _bulk",
            "_a.pyx:1: sending must not import sending.bulk",
        ),
        (
            "sending/bulk/_a.pyx",
            "cimport kafka_fast.dataplane.fetch.fetch",
            "_a.pyx:1: sending must not import dataplane.fetch",
        ),
        (
            "records/_a.pyx",
            "from kafka_fast.dataplane.produce import _queues",
            "_a.pyx:1: records must not import dataplane.produce",
        ),
        (
            "consumer/a.py",
            "from kafka_fast.control.metadata.cluster import Cluster",
            "a.py:1: consumer must not import control.metadata",
        ),
        (
            "net/waiting/a.py",
            "from kafka_fast.control.client_control import ClientControl",
            "a.py:1: net.waiting must not import control.client_control",
        ),
        ("errors.py", "from kafka_fast import net", "errors must not import net"),
        ("__init__.py", "from kafka_fast.net import x", "kafka_fast must not import net"),
        (
            "testing/broker/a.py",
            "from kafka_fast.control import cluster",
            "must not import control",
        ),
        ("testing/broker/a.py", "import socket", "testing.broker must not import socket"),
        ("newcomer/a.py", "", "newcomer has no place in the layers"),
        ("control/a.py", "import time", "control must not import time"),
        ("control/a.py", "from time import monotonic", "control must not import time"),
        ("control/a.py", "import asyncio.events", "control must not import asyncio"),
        ("control/a.py", "import threading", "control must not import threading"),
        ("control/a.py", "import random", "control must not import random"),
        (
            "control/a.py",
            "import os\nx = os.urandom(4)",
            "a.py:2: control must not call os.urandom",
        ),
        ("control/a.py", "from uuid import uuid4", "control must not call uuid.uuid4"),
        (
            "control/a.py",
            "import datetime as d\nfrom datetime import datetime\ndatetime.now()",
            ":3:",
        ),
        ("dataplane/_a.pyx", "from posix.time cimport clock_gettime", "must not import posix.time"),
        (
            "dataplane/_a.pyx",
            "cdef int f() nogil:\n    with gil:\n        pass",
            "_a.pyx:2: dataplane must not take the GIL",
        ),
        ("dataplane/_a.pyx", "cdef int f() with gil:\n    pass", "must not take the GIL"),
        ("net/_pump.pyx", "cdef int f():\n    with  gil:\n        pass", "must not take the GIL"),
        ("control/a.py", "\n" * 601, "601 lines, more than 600"),
        ("dataplane/_a.pyx", "#" * 101, "101 columns, more than 100"),
        (
            "control/a.py",
            "class Group:\n    def __init__(self, a, b, c, d, e, f, *, g, h): pass\n",
            "a constructor with 8 parameters",
        ),
        (
            "control/group/a.py",
            "from kafka_fast.control.connections.backoff import Backoff",
            "control.group.a must leave retries to control/requests",
        ),
        (
            "control/a.py",
            "def f(context):\n    return context.backoff.delay(3)",
            "control/a.py:2: control.a must leave retries",
        ),
    ],
)
def test_planted_faults_in_the_package(tmp_path: Path, name: str, text: str, said: str) -> None:
    reported = plant(tmp_path, {f"kafka_fast/{name}": text})
    assert len(reported) == 1, reported
    assert said in reported[0]


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ("control/a.py", "net/a.py", "Requests"),
        ("control/a.py", "control/group/a.py", "Requests"),
        ("control/a.py", "control/b.py", "_Requests"),
    ],
)
def test_one_class_name_for_two_things(tmp_path: Path, first: str, second: str, name: str) -> None:
    text = f"class {name}:\n    pass\n"
    reported = plant(
        tmp_path, {f"kafka_fast/{name_of_file}": text for name_of_file in (first, second)}
    )
    assert reported == [f"kafka_fast/{second}:1: kafka_fast/{first}:1 has a class {name} too"]


def test_a_cython_class_and_a_python_class_of_one_name(tmp_path: Path) -> None:
    files = {
        "kafka_fast/control/a.py": "class Topic: ...",
        "kafka_fast/dataplane/_a.pxd": "cdef class Topic:\n    pass",
    }
    assert plant(tmp_path, files) == [
        "kafka_fast/dataplane/_a.pxd:1: kafka_fast/control/a.py:1 has a class Topic too"
    ]


def test_class_names_that_may_be_shared(tmp_path: Path) -> None:
    files = {
        "kafka_fast/control/a.py": "class _Row: ...\nclass State: ...\nclass Request: ...",
        "kafka_fast/net/a.py": '"""\nclass State: not one, but text\n"""\nclass _Row: ...',
        "kafka_fast/testing/broker/a.py": "class State: ...",
        "kafka_fast/protocol/apis/a.py": "class Request: ...",
        "kafka_fast/dataplane/_a.pxd": "cdef class Queues:\n    pass",
        "kafka_fast/dataplane/_a.pyx": "cdef class Queues:\n    pass",
        "kafka_fast/dataplane/_a.pyi": "class Queues: ...",
    }
    assert plant(tmp_path, files) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#include <Python.h>", "knows nothing of CPython"),
        ('#include "Python.h"', "knows nothing of CPython"),
        ("#include <sys/socket.h>", "through tables only"),
        ("int x;\n# include <poll.h>", "kf_a.h:2: "),
        ("long now(void) { return time(0); }", "come from outside"),
        ("void f(void) { clock_gettime(0, 0); }", "come from outside"),
        ("void f(void) { pthread_create(0, 0, 0, 0); }", "started by net/"),
        ("\n" * 301, "301 lines, more than 300"),
    ],
)
def test_planted_faults_in_c(tmp_path: Path, text: str, said: str) -> None:
    reported = plant(tmp_path, {"src_c/kf_a.h": text})
    assert len(reported) == 1, reported
    assert said in reported[0]


@pytest.mark.parametrize("package", ["control"])
def test_no_modules_import_each_other(package: str) -> None:
    assert import_circles(ROOT, package) == []


def test_a_circle_of_imports_is_found(tmp_path: Path) -> None:
    imports = "from kafka_fast.control.{} import X"
    files = {
        f"kafka_fast/control/{name}.py": imports.format(other)
        for name, other in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"))
    }
    for name, other in (("e", "f"), ("f", "e")):
        files[f"kafka_fast/control/{name}.py"] = f"def f():\n    {imports.format(other)}"
    plant(tmp_path, files)
    assert import_circles(tmp_path, "control") == [{"control.a", "control.b", "control.c"}]
