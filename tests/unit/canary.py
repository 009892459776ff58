"""A planted secret, and a search for it in what an error tracker would send of an error."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType

import kafka_fast

CANARY = "canary-7f3a9c51"

OURS = str(Path(kafka_fast.__file__).parent)


def is_shown(text: str, secret: str = CANARY) -> bool:
    """Tell whether a text has the secret, as it is or in base64 at any of the three positions."""
    assert len(secret) > 9, "base64 of less is found by chance"
    if secret in text:
        return True
    shifted = (base64.b64encode(b" " * shift + secret.encode()).decode() for shift in range(3))
    return any(encoded[4 if shift else 0 : -4] in text for shift, encoded in enumerate(shifted))


def assert_hidden(*texts: object, secret: str = CANARY) -> None:
    assert [text for text in map(str, texts) if is_shown(text, secret)] == []


def traces(error: BaseException, secret: str = CANARY) -> list[str]:
    """Return where the secret is shown: in an error's texts, or in our frames' variables."""
    return [place for place, text in _places(error) if is_shown(text, secret)]


def _places(error: BaseException) -> Iterator[tuple[str, str]]:
    seen: set[int] = set()
    links: list[BaseException | None] = [error]
    while links:
        link = links.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        links += [link.__cause__, link.__context__]
        yield "text", f"{link} {link!r} {link.args}"
        trace = link.__traceback__
        while trace is not None:
            yield from _variables(trace.tb_frame)
            trace = trace.tb_next


def _variables(frame: FrameType) -> Iterator[tuple[str, str]]:
    if not frame.f_code.co_filename.startswith(OURS):
        return
    for name, value in frame.f_locals.items():
        for part in (value, *getattr(value, "__dict__", {}).values()):
            with suppress(AttributeError):  # of a client that is not yet complete
                yield f"{frame.f_code.co_name}.{name}", repr(part)
