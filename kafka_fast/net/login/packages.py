"""Packages that only some logins need, which kafka_fast does not require."""

from __future__ import annotations

import importlib.util

from kafka_fast.errors import MissingPackageError

__all__ = ["require_package"]


def require_package(package: str, *, extra: str, what: str) -> None:
    """Make sure that a package is installed, without importing it.

    Args:
        package: its name, for pip as for Python.
        extra: the extra of kafka_fast that requires it.
        what: needs the package; the error begins with this.

    Raises:
        MissingPackageError: the package is not installed.
    """
    if importlib.util.find_spec(package) is None:
        raise MissingPackageError(
            f"{what} needs the package {package}: pip install {package}",
            package=package,
            extra=extra,
        )
