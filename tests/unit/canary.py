"""A planted secret, and where it must not be: in texts, in errors, in the locals of our frames."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import kafka_fast

CANARY = "canary-6d2f"
SHOWN = (CANARY, base64.b64encode(CANARY.encode()).decode().rstrip("="))
OURS = str(Path(kafka_fast.__file__).parent)


def assert_hidden(*texts: object) -> None:
    for text in texts:
        for shown in SHOWN:
            assert shown not in str(text)


def texts_of(error: BaseException) -> Iterator[str]:
    """Yield an error's texts, and the locals of our frames on its traceback; of its causes, too."""
    yield repr(error)
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_filename.startswith(OURS):
            for name, value in frame.f_locals.items():
                with suppress(AttributeError):  # of a client that is not yet complete
                    yield f"{name}={value!r}"
        traceback = traceback.tb_next
    for other in (error.__cause__, error.__context__):
        if other is not None:
            yield from texts_of(other)
