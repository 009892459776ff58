"""How APIs are found: by their folder, without a list; in use already, without an import."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

from kafka_fast.protocol import apis
from kafka_fast.protocol.schema import Request, Response

MODULES = [
    module.name
    for module in pkgutil.walk_packages(apis.__path__, f"{apis.__name__}.")
    if not module.ispkg
]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_one_api(name: str) -> None:
    module = importlib.import_module(name)
    messages = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, (Request, Response))
        if value.__module__ == name
    ]
    assert len({message.api_key for message in messages}) == 1
    api = apis.api_name(messages[0].api_key)
    assert {message.__name__ for message in messages} == {f"{api}Request", f"{api}Response"}
    assert name.rsplit(".", maxsplit=1)[1].replace("_", "") == api.lower()


def test_every_module_is_found() -> None:
    assert len(apis.api_keys()) == len(MODULES) > 30


def test_an_api_in_use_is_looked_up_without_an_import() -> None:
    program = """
import sys
from kafka_fast import Producer
from kafka_fast.protocol import apis
Producer(bootstrap_servers="127.0.0.1:1").close()  # what a client needs comes with the first one
before = set(sys.modules)
assert apis.api_name(0) == "Produce" and apis.response_class(3).api_key == 3
assert set(sys.modules) == before
assert apis.api_name(78) == "ShareFetch"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_number_that_two_modules_claim() -> None:
    twice = [
        type(name, (Request,), {"__module__": f"{apis.__name__}.topics.{name.lower()}"}, api_key=99)
        for name in ("First", "Second")
    ]
    with pytest.raises(TypeError, match=r"API 99 is declared twice: .*\.First and .*\.Second"):
        apis._imported(Request)
    for message in twice:
        message.__module__ = __name__
    assert 99 not in apis._imported(Request)
