"""A planted secret, and a search for it in what an error tracker would send of an error."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from types import FrameType

CANARY = "canary-7f3a9c51"

_FORMS = (
    CANARY,
    *(
        base64.b64encode(b" " * shift + CANARY.encode())[4 if shift else 0 : -4].decode()
        for shift in range(3)
    ),
)
"""As it is, and as it stands in base64 at each of the three positions."""


def is_shown(text: str) -> bool:
    return any(form in text for form in _FORMS)


def traces(error: BaseException) -> list[str]:
    """Return where the canary is shown: in an error's texts, or in our frames' variables."""
    return [place for place, text in _places(error) if is_shown(text)]


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
    code = frame.f_code
    if "/kafka_fast/" not in code.co_filename:
        return
    for name, value in frame.f_locals.items():
        shown = [repr(value)]
        if hasattr(value, "__dict__"):
            shown += [repr(part) for part in vars(value).values()]
        for text in shown:
            yield (
                f"{code.co_qualname if hasattr(code, 'co_qualname') else code.co_name}.{name}",
                text,
            )
