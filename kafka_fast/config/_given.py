"""What callers put where a mapping of properties belongs: a file's, or something else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kafka_fast.config._key import CONSUMER

_ADDRESS = r".*:\d+"
_NAMES = r"[\w.:,\[\] -]*"


class Properties(dict[str, Any]):
    """The properties of a file, which may serve several clients.

    Its log says at INFO what a client ignores in it because only other kinds of client have it; for
    other mappings, which programs change more easily, DEBUG is enough. `|` with a mapping makes
    such properties again; `{**properties}` does not.
    """

    __slots__ = ()

    def __or__(self, other: Mapping[str, Any]) -> Properties:  # type: ignore[override]
        return Properties({**self, **other})

    def __repr__(self) -> str:
        return f"Properties({', '.join(self)})"


def check_mapping(given: object, what: str, instead: str) -> None:
    """Refuse an argument that is no mapping of properties; None means an empty mapping.

    Args:
        given: by the caller.
        what: the argument is called, for the message.
        instead: the right call, as code.

    Raises:
        TypeError: it is something else.
    """
    if given is None or isinstance(given, Mapping):
        return
    text = shown(given)
    del given  # an error's traceback has this frame, and there may be a secret in it
    raise TypeError(f"{what} is a mapping of properties, not {text}: {instead}")


def shown(given: object) -> str:
    """Return an argument as code, or its type if it is long or may have a secret in it."""
    text = repr(given)
    is_open = len(text) <= 100 and all(map(_is_harmless, _texts(given)))
    return text if is_open else type(given).__name__


def check_first_argument(given: object, client: str) -> None:
    """Refuse what a client's constructor takes for its mapping of properties.

    Raises:
        TypeError: it is none; the message shows the call that was most likely meant.
    """
    name = client.capitalize()
    right = _constructor(given, client, name)
    try:
        check_mapping(given, f"the first argument of {name}", right)
    finally:
        del given


def _constructor(argument: object, client: str, name: str) -> str:
    """Return the call to write instead of `name(argument)`: with these brokers, or these topics."""
    texts = _texts(argument)
    are_names = bool(texts) and all(isinstance(text, str) and _is_harmless(text) for text in texts)
    if are_names and client == CONSUMER and not any(re.fullmatch(_ADDRESS, text) for text in texts):
        return (
            f"{name}(bootstrap_servers='localhost:9092', group_id='...'), and then "
            f"consumer.subscribe({texts!r})"
        )
    servers = ",".join(texts) if are_names else "localhost:9092"
    return f"{name}(bootstrap_servers={servers!r}) or {name}({{'bootstrap.servers': {servers!r}}})"


def _texts(argument: object) -> list[Any]:
    return list(argument) if isinstance(argument, (list, tuple, set, frozenset)) else [argument]


def _is_harmless(text: object) -> bool:
    """Whether this may be names of brokers or topics; anything else may have a secret in it."""
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    is_name = isinstance(text, str) and re.fullmatch(_NAMES, text) is not None
    return is_name or text is None or isinstance(text, int)
