"""What callers put where a mapping of properties belongs, and the call that they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kafka_fast.config._key import CONSUMER

_ADDRESS = r".*:\d+"


def check_mapping(given: object, what: str, instead: str) -> None:
    """Refuse what is no mapping of properties; None is an empty one.

    Args:
        given: by the caller.
        what: the argument is called, for the message.
        instead: the right call, as code.

    Raises:
        TypeError: it is something else.
    """
    if given is not None and not isinstance(given, Mapping):
        shown = repr(given)
        shown = shown if len(shown) <= 100 else f"{type(given).__name__}"
        raise TypeError(f"{what} is a mapping of properties, not {shown}: {instead}")


def check_first_argument(given: object, client: str) -> None:
    """Refuse what a client's constructor takes for its mapping of properties.

    Raises:
        TypeError: it is none; the message shows the call that was most likely meant.
    """
    name = client.capitalize()
    check_mapping(given, f"the first argument of {name}", _constructor(given, client, name))


def _constructor(given: object, client: str, name: str) -> str:
    """Return the right call of a constructor that was given this: brokers, topics, or whatever."""
    several = list(given) if isinstance(given, (list, tuple, set, frozenset)) else [given]
    texts = [it for it in several if isinstance(it, str)]
    are_names = bool(texts) and len(texts) == len(several)
    if are_names and client == CONSUMER and not any(re.fullmatch(_ADDRESS, it) for it in texts):
        return (
            f"{name}(bootstrap_servers='localhost:9092', group_id='...'), and then "
            f"consumer.subscribe({texts!r})"
        )
    servers = ",".join(texts) if are_names else "localhost:9092"
    return f"{name}(bootstrap_servers={servers!r}) or {name}({{'bootstrap.servers': {servers!r}}})"
