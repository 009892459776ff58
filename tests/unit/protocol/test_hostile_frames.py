"""Replay the hostile answers of the corpus through the table codec, and through the negotiation."""

from __future__ import annotations

import re

import pytest

from kafka_fast import errors
from kafka_fast.control.connections.negotiation import Negotiation
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis import response_class
from tests.corpus.replay import Answer, answers, files_of

API_VERSIONS = 18
MESSAGES = [case for case in answers() if case.layer != "link"]


def read(case: Answer) -> None:
    if case.api != API_VERSIONS:
        frame.decode_response(response_class(case.api), case.data[4:], case.version)
        return
    dialogue = Negotiation("broker", "client")
    for number in range(10):
        dialogue.request()
        if dialogue.handle_frame(case.to(number.to_bytes(4, "big"))[4:]) is not None:
            return
    raise AssertionError("the dialogue does not end")


def test_every_file_has_its_line() -> None:
    assert files_of("frame") == {case.name for case in answers()}


@pytest.mark.parametrize("case", MESSAGES, ids=str)
def test_replay(case: Answer) -> None:
    if case.kind == "ok" or case.layer == "answer":
        read(case)
        return
    with pytest.raises(getattr(errors, case.kind)) as caught:
        read(case)
    assert re.search(case.refusal, str(caught.value))


@pytest.mark.parametrize("case", [case for case in MESSAGES if case.kind == "ok"], ids=str)
def test_what_is_sound_is_not_when_it_is_cut(case: Answer) -> None:
    for size in range(4, len(case.data)):
        with pytest.raises(errors.MalformedError):
            read(case._replace(data=case.data[:size]))
