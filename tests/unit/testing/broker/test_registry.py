"""The table of handlers, which their modules fill."""

from __future__ import annotations

import pkgutil

import pytest

from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest
from kafka_fast.testing.broker import handlers, registry
from kafka_fast.testing.broker.received_request import Answer, ReceivedRequest
from kafka_fast.testing.broker.registry import HANDLERS, answers


def test_every_module_answers() -> None:
    modules = {
        module.name
        for module in pkgutil.walk_packages(handlers.__path__, f"{handlers.__name__}.")
        if not module.ispkg
    }
    assert {handler.__module__ for handler in HANDLERS.values()} == modules
    assert list(handlers.OFFERED) == sorted(HANDLERS)


def test_two_handlers_of_an_api() -> None:
    def answer(request: ReceivedRequest) -> Answer:
        raise AssertionError

    with pytest.raises(TypeError, match=r"HeartbeatRequest is answered twice: by .* and tests"):
        answers(HeartbeatRequest)(answer)
    assert HANDLERS[HeartbeatRequest.api_key] is not answer


def test_fewer_versions_than_the_message_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in ("HANDLERS", "OFFERED"):
        monkeypatch.setattr(registry, table, {})
    answers(HeartbeatRequest, versions=(1, 2))(lambda request: None)
    assert registry.OFFERED == {12: (1, 2)}
