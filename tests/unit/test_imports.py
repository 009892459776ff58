"""What an import may load: the standard library and the package, nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
OPTIONAL = (
    "numpy", "pyarrow", "pyspark", "pandas", "tqdm", "lz4", "zstandard", "cramjam", "snappy",
    "typing_extensions", "pytest", "orjson", "botocore", "gssapi", "cryptography",
    "rich", "shtab", "yaml",
)  # fmt: skip

# Blocks the optional packages, imports every module of the package that a user imports himself,
# and uses the record codec with what is left.
PROGRAM = """
import importlib, pkgutil, sys

blocked = set(sys.argv[1].split(","))

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Block())
import kafka_fast

edges = ("kafka_fast.testing", "kafka_fast.__main__")
spark = "kafka_fast.spark."  # PySpark imports these modules of it
of_pyspark = {spark + name for name in ("sink.writers", "source.batch", "source.stream")}
for module in pkgutil.walk_packages(kafka_fast.__path__, "kafka_fast."):
    if not module.name.startswith(edges) and module.name not in of_pyspark:
        importlib.import_module(module.name)

from kafka_fast.record import Codec, RecordBatchBuilder, read_batches
builder = RecordBatchBuilder(codec=Codec.GZIP)
builder.append(b"k", b"v", 1)
(batch,) = read_batches(builder.build()).batches
assert [record.value for record in batch.records()] == [b"v"]
print(sorted(blocked & set(sys.modules)))
"""


def run(program: str, *arguments: str) -> str:
    """Run a program in an interpreter of its own, in the checkout; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_everything_imports_and_works_without_the_optional_packages() -> None:
    assert run(PROGRAM, ",".join(OPTIONAL)) == "[]"


@pytest.mark.parametrize("module", ["kafka_fast", "kafka_fast.record", "kafka_fast.protocol"])
def test_an_import_loads_no_optional_package_that_is_there(module: str) -> None:
    loaded = run(f"import sys, {module}; print(' '.join({{n.split('.')[0] for n in sys.modules}}))")
    assert set(OPTIONAL) & set(loaded.split()) == set()


def test_a_plaintext_client_loads_nothing_of_tls_and_of_logins() -> None:
    program = """
import sys
from kafka_fast import Consumer, Producer
Producer(bootstrap_servers="127.0.0.1:1").close(0)
Consumer(bootstrap_servers="127.0.0.1:1").close(0)
secure = "kafka_fast.net.tls", "kafka_fast.net.login", "ssl", "kafka_fast.control.authentication."
needed = {"kafka_fast.control.authentication.mechanism"}  # the type of a login's work
print(sorted(name for name in set(sys.modules) - needed if name.startswith(secure)))
"""
    assert run(program) == "[]"


def test_names_that_are_here_load_no_hints() -> None:
    """Regression: Python asks a module for `__path__`, and got an answer from the hints."""
    program = "import sys; from kafka_fast.errors import KafkaError; print(*sys.modules)"
    assert "kafka_fast.peer_errors" not in run(program).split()


CLIENTS = [
    f"{module}.{kind}"
    for module in ("kafka_fast", "kafka_fast.aio")
    for kind in ("Admin", "Consumer", "Producer")
]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_planes_are_loaded_with_the_first_client(client: str) -> None:
    module, _, name = client.rpartition(".")
    loaded = run(
        f"import sys; from {module} import {name}; "
        "planes = 'control.client_control', 'net.threaded_host', 'net.core.client_core'; "
        "print(*(name for name in planes if f'kafka_fast.{name}' in sys.modules))"
    )
    assert loaded == ""


@pytest.mark.parametrize("client", CLIENTS)
def test_at_exit_clients_end_after_functions_that_are_older_than_they(client: str) -> None:
    module, _, name = client.rpartition(".")
    program = f"""
import atexit
from {module} import {name}

@atexit.register
def last_look():
    print(client)

client = {name}(bootstrap_servers="127.0.0.1:1", client_id="younger")
"""
    shown = run(program)
    assert "younger" in shown
    assert "closed" not in shown
