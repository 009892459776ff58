"""Refuse a wheel whose classifiers no package index would take: they are the index's own list."""

from __future__ import annotations

import sys
import zipfile
from email.parser import BytesParser
from pathlib import Path

from trove_classifiers import classifiers


def classifiers_of(wheel: Path) -> list[str]:
    """Return what a wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return BytesParser().parsebytes(archive.read(name)).get_all("Classifier") or []


if __name__ == "__main__":
    named = classifiers_of(Path(sys.argv[1]))
    unknown = [classifier for classifier in named if classifier not in classifiers]
    if unknown or not named:
        raise SystemExit(f"no classifiers: {unknown or 'none at all'}")
