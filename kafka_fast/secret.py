"""A value that must not be seen: passwords, private keys, tokens.

A `Secret` shows `****` wherever it is printed, and refuses to be pickled. Code that needs the
value asks for it with `reveal`, uses it at once, and keeps it in no attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

__all__ = ["HIDDEN", "Secret"]

HIDDEN = "****"
"""What stands for a secret in every text."""


class Secret:
    """A text that is not shown, or a function that returns such a text.

    Two secrets are equal only if they are the same object: a comparison could tell what is in them.
    """

    __slots__ = ("_source",)

    def __init__(self, source: str | Callable[[], str]) -> None:
        """Keep a text, or a function that is called whenever the text is needed.

        Args:
            source: the text, or a function that returns it. The function may block: it runs on a
                thread where this does no harm.
        """
        self._source = source

    def reveal(self) -> str:
        """Return the text.

        Raises:
            TypeError: the user's function has returned something else. Its own exceptions pass.
        """
        if isinstance(self._source, str):
            return self._source
        text = self._source()
        if isinstance(text, str):
            return text
        kind = type(text).__name__
        del text  # error trackers send the variables of a frame
        raise TypeError(f"a function that returns a secret returned {kind}")

    @property
    def may_block(self) -> bool:
        """Whether `reveal` calls a function of the user's."""
        return not isinstance(self._source, str)

    def is_same(self, other: Secret) -> bool:
        """Return whether both hold the same text, or the same function, which is not called."""
        return self._source == other._source

    def __repr__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a secret is not pickled: give the process that needs it its own configuration"
        )
