"""One module per API: the tables of its request and its response.

Messages and their structs have the names of Apache's definitions, so
`apis.produce.TopicProduceData` is what the Java client knows by that name. A struct name that
request and response both use has the message's name in front: `ShareFetchRequestFetchTopic`.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from kafka_fast.protocol.schema import Request, Response

#: API key -> module of this package.
MODULES = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    28: "txn_offset_commit",
    29: "describe_acls",
    30: "create_acls",
    32: "describe_configs",
    36: "sasl_authenticate",
    51: "alter_user_scram_credentials",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
    71: "get_telemetry_subscriptions",
    72: "push_telemetry",
    76: "share_group_heartbeat",
    78: "share_fetch",
    79: "share_acknowledge",
}


@functools.cache
def request_class(api_key: int) -> type[Request]:
    """Return the request of an API.

    Raises:
        KeyError: there is no table for this API.
    """
    message: type[Request] = _message(api_key, "Request")
    return message


@functools.cache
def response_class(api_key: int) -> type[Response]:
    """Return the response of an API.

    Raises:
        KeyError: there is no table for this API.
    """
    message: type[Response] = _message(api_key, "Response")
    return message


def _message(api_key: int, suffix: str) -> Any:
    module = importlib.import_module(f"{__name__}.{MODULES[api_key]}")
    return getattr(module, api_name(api_key) + suffix)


def api_name(api_key: int) -> str:
    """Return an API's name for messages: "Produce"; "API 99" if there is no table for it."""
    module = MODULES.get(api_key)
    return f"API {api_key}" if module is None else module.title().replace("_", "")
