"""The permission in an error's text; that brokers ask for it is tested at real Kafka."""

from __future__ import annotations

from kafka_fast.control.diagnosis import permissions
from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.errors import ErrorCode, error_description
from kafka_fast.protocol.apis import api_keys, api_name


def test_a_refusal_names_what_is_needed() -> None:
    text = described(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Produce")
    assert text == "not authorized for the topic (needs WRITE on the topic)"


def test_the_words_of_the_broker_come_first() -> None:
    text = described(ErrorCode.GROUP_AUTHORIZATION_FAILED, "FindCoordinator", "no.")
    assert text == "no. (needs DESCRIBE on the group, and READ to be a member)"


def test_other_errors_need_no_permission() -> None:
    code = ErrorCode.NOT_COORDINATOR
    assert described(code, "OffsetCommit") == error_description(code)


def test_the_table_has_names_of_apis() -> None:
    named = {api for _, api in permissions._NEEDED}
    assert named <= {api_name(key) for key in api_keys()}
