"""DeleteTopics: by name, or by topic id since version 6."""

from __future__ import annotations

from collections import Counter

from kafka_fast.errors import BrokerError, InvalidRequest
from kafka_fast.protocol.apis.topics.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_STATES_FROM_VERSION = 6
_NO_ID = bytes(16)


@answers(DeleteTopicsRequest)
def answer(request: ReceivedRequest) -> DeleteTopicsResponse:
    """Return one result for each topic."""
    body: DeleteTopicsRequest = request.body
    if request.version >= _STATES_FROM_VERSION:
        topics = body.topics
    else:
        topics = [DeleteTopicState(name=name, topic_id=_NO_ID) for name in body.topic_names]
    named = Counter((one.name, one.topic_id) for one in topics)
    different = {(one.name, one.topic_id): one for one in topics}
    return DeleteTopicsResponse(
        responses=[_delete(request, one, named[key] > 1) for key, one in different.items()]
    )


def _delete(request: ReceivedRequest, asked: DeleteTopicState, twice: bool) -> DeletableTopicResult:
    name = asked.name
    topic_id = asked.topic_id
    try:
        if twice:
            raise InvalidRequest("a topic is named twice")
        if name is not None and topic_id != _NO_ID:
            raise InvalidRequest("a topic is named by name or by id, not both")
        if name is None:
            name = request.state.topic_by_id(topic_id).name
        request.check_topic(Operation.DELETE, name)
        planned = request.planned_error(name)
        if planned is not None and not planned.applied:
            return DeletableTopicResult(name=name, topic_id=topic_id, error_code=planned.code)
        if name in request.state.topics:
            topic_id = request.state.topics[name].topic_id
        request.state.delete_topic(name)
        code = planned.code if planned is not None else 0
        return DeletableTopicResult(name=name, topic_id=topic_id, error_code=code)
    except BrokerError as error:
        message = str(error.args[0]) if error.args and error.args[0] else None
        return DeletableTopicResult(
            name=asked.name, topic_id=topic_id, error_code=error.code, error_message=message
        )
