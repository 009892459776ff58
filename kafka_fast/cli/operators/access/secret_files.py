"""Files for secrets that do not exist yet: the room is there before the secret is made."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

_ROOM = 4096
"""Bytes that are written before the secret is made: a full disk is found out by then."""


class NewSecretFile:
    """A new file that only this user can read. It has its name once the whole secret is in it.

    Errors name the file.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._descriptor = -1
        self._draft: str | None = None  # name of the file as long as it is not whole

    def __enter__(self) -> NewSecretFile:
        """Make the file under another name, with room for the secret.

        Raises:
            OSError: there is such a file already, or no room, or no permission.
        """
        with self._naming_the_file():
            if os.path.lexists(self._name):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            folder, base = os.path.split(self._name)
            self._descriptor, self._draft = tempfile.mkstemp(prefix=f"{base}.", dir=folder or ".")
            try:
                self._write_all(b" " * _ROOM)
            except BaseException:
                self._drop()
                raise
        return self

    def write_secret(self, text: str) -> None:
        """Write the secret, and give the file its name.

        Raises:
            OSError: the secret is not in a file of this name.
        """
        with self._naming_the_file():
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            data = text.encode()
            self._write_all(data)
            os.ftruncate(self._descriptor, len(data))
            os.fsync(self._descriptor)
            self._give_name()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._drop()

    def _write_all(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]
        os.fsync(self._descriptor)

    def _give_name(self) -> None:
        assert self._draft is not None
        try:
            os.link(self._draft, self._name)  # unlike a renaming, this replaces no file
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.lexists(self._name):
                raise
            os.rename(self._draft, self._name)  # noqa: PTH104  as the lines around it
            self._draft = None

    def _drop(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._draft is not None:
            with suppress(FileNotFoundError):
                Path(self._draft).unlink()
            self._draft = None

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._name) from error
