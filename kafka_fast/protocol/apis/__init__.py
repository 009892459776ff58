"""One module per API, in a folder per subject: the tables of its request and its response.

    cluster        nodes, versions, coordinators        groups           classic, KIP-848, offsets
    topics         topics and partitions                share_groups     KIP-932
    log_dirs       where replicas are stored            streams_groups   KIP-1071
    configs        what is configured                   security         logins, ACLs, credentials
    client_quotas  who may use how much                 tokens           to log in with, KIP-48
    records        records in and out, offsets          telemetry        KIP-714
    transactions   producer ids, transactions

An API belongs here as soon as a module below defines its request and response: nothing lists the
modules. Looking an API up by its number imports no module if the API is in use already, and
otherwise all of them, once.

Messages and their structs have the names of Apache's definitions, so
`apis.records.produce.TopicProduceData` is what the Java client knows by that name. A struct name
that request and response both use has the message's name in front:
`DescribeQuorumRequestTopicData`.
"""

from __future__ import annotations

import functools
import importlib
from typing import TypeVar

from kafka_fast.protocol.schema import Request, Response

M = TypeVar("M", Request, Response)


@functools.cache
def request_class(api_key: int) -> type[Request]:
    """Return the request of an API.

    Raises:
        KeyError: there is no table for this API.
    """
    return _message(Request, api_key)


@functools.cache
def response_class(api_key: int) -> type[Response]:
    """Return the response of an API.

    Raises:
        KeyError: there is no table for this API.
    """
    return _message(Response, api_key)


@functools.cache
def api_name(api_key: int) -> str:
    """Return an API's name for messages: "Produce"; "API 99" if there is no table for it."""
    try:
        return request_class(api_key).__name__.removesuffix("Request")
    except KeyError:
        return f"API {api_key}"


@functools.cache
def api_keys() -> tuple[int, ...]:
    """Return the numbers of all APIs that have a table, in order."""
    _import_all()
    return tuple(sorted(_imported(Request)))


def _message(kind: type[M], api_key: int) -> type[M]:
    message = _imported(kind).get(api_key)
    if message is None:
        _import_all()
        message = _imported(kind)[api_key]
    return message


def _imported(kind: type[M]) -> dict[int, type[M]]:
    """Return the messages of a kind that this process has imported, by their API's number.

    Raises:
        TypeError: two modules claim one number.
    """
    messages: dict[int, type[M]] = {}
    for message in kind.__subclasses__():
        if not message.__module__.startswith(f"{__name__}."):
            continue  # somebody else's table, as a test's
        first = messages.setdefault(message.api_key, message)
        if first is not message:
            raise TypeError(
                f"API {message.api_key} is declared twice: {first.__module__}.{first.__name__} "
                f"and {message.__module__}.{message.__name__}"
            )
    return messages


@functools.cache
def _import_all() -> None:
    import pkgutil  # it costs a client's start more than this package

    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
