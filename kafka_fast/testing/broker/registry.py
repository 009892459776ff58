"""Who answers which API: a handler declares the class of the requests that it answers.

@answers(HeartbeatRequest)
def answer(request: ReceivedRequest) -> HeartbeatResponse: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafka_fast.protocol import schema
from kafka_fast.testing.broker.received_request import Answer, ReceivedRequest

Handler = Callable[[ReceivedRequest], Answer]
H = TypeVar("H", bound=Handler)

HANDLERS: dict[int, Handler] = {}
"""By API key. A handler returns the response, a `Waiting`, or None where Kafka sends nothing."""

OFFERED: dict[int, tuple[int, int]] = {}
"""API key -> lowest and highest version that is answered."""


def answers(
    request_class: type[schema.Request], versions: tuple[int, int] | None = None
) -> Callable[[H], H]:
    """Declare the API that the decorated handler answers.

    Args:
        request_class: the API.
        versions: lowest and highest version. Otherwise all that Kafka offers to clients.

    Raises:
        TypeError: another handler answers this API.
    """

    def register(handler: H) -> H:
        api_key = request_class.api_key
        first = HANDLERS.setdefault(api_key, handler)
        if first is not handler:
            raise TypeError(
                f"{request_class.__name__} is answered twice: by {first.__module__} "
                f"and {handler.__module__}"
            )
        OFFERED[api_key] = versions or (request_class.versions.low, request_class.stable)
        return handler

    return register
