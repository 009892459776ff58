"""Messages that pages show without making them happen: they are in the sources as they stand there.

Where a message has a name or a number, the words around that are compared.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from kafka_fast.record import fallback
from kafka_fast.spark import job_errors
from tests.documentation.pages import ROOT, RUN, all_pages, blocks, markdown_files

OF_THE_SYSTEM = "Name or service not known|Connection reset by peer|Connection refused"
CLIENT = r"(?:^|(?<= ))\[[\w-]+\](?= )"
VARIABLE = re.compile(
    rf"{OF_THE_SYSTEM}|{CLIENT}|'[^']*'|\b[\w-]*\d[\w.:-]*|\.\.\.|…|\b[A-Z][A-Z_]+\b|[()]|: |; "
)
ENDINGS = re.compile(r"^\* (`.+?`):\s", re.MULTILINE | re.DOTALL)
"""How an item of a list begins: with the messages that it explains."""


FROM_AN_INDEX = re.compile(r"pip install [^`\n]*(?<![\w/])kafka[-_]fast(?!_)")
"""A file has a folder before its name: wheelhouse/kafka_fast-*.whl."""


@cache
def sources() -> str:
    """Return all code, with each text in one piece."""
    paths = [*(ROOT / "kafka_fast").rglob("*.py"), *(ROOT / "kafka_fast").rglob("*.pyx")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    return re.sub(r"[\"']\s*(?:\+ )?f?[\"']", "", code)


def shown(page: str) -> list[str]:
    """Return the messages of a page, from its texts that no block before them prints."""
    texts, printed = [], False
    for block in blocks(page):
        if block.language == "text" and not printed and not block.how:
            texts += block.text.replace("\n", " ").split("  ")
        printed = block.language in RUN or bool(block.title)
    if page == "docs/troubleshooting.md":
        for item in ENDINGS.findall((ROOT / page).read_text(encoding="utf-8")):
            texts += re.findall(r"`([^`]+)`", item)
    return texts


def fragments(message: str) -> list[str]:
    """Return what a message has of words that are the same each time."""
    parts = [part.strip() for part in VARIABLE.split(message)]
    return [part for part in parts if part.count(" ") >= 2]


def is_said(fragment: str) -> bool:
    """Say whether it is in the sources: in one piece, or as two texts that meet in a message."""
    if fragment in sources():
        return True
    words = fragment.split()
    cuts = [(" ".join(words[:cut]), " ".join(words[cut:])) for cut in range(1, len(words))]
    return any(
        re.search(rf"{re.escape(one)} ?[{{\"]", sources())
        and re.search(rf"[}}\"] ?{re.escape(other)}", sources())
        for one, other in cuts
    )


PAGES = [page for page in all_pages() if shown(page)]


@pytest.mark.parametrize("page", PAGES)
def test_messages_are_what_the_code_says(page: str) -> None:
    parts = [part for message in shown(page) for part in fragments(message)]
    assert [part for part in parts if not is_said(part)] == []


def test_there_are_messages_to_compare() -> None:
    assert "docs/troubleshooting.md" in PAGES
    said = fragments("there is no topic 'typo' (yet); it is read once there is one")
    assert said == ["there is no topic", "it is read once there is one"]
    assert not is_said("it is written once there is one")


@pytest.mark.parametrize("place", [*sorted(markdown_files()), "the sources"])
def test_nobody_is_told_to_install_from_an_index_what_no_index_has(place: str) -> None:
    """Regression: `pip install 'kafka_fast[arrow]'` stood on pages and in errors, and failed."""
    text = sources() if place == "the sources" else (ROOT / place).read_text(encoding="utf-8")
    assert FROM_AN_INDEX.findall(text) == []


PUT_TOGETHER = re.compile(r"pip install '?\{([^}]+)\}")
"""Texts of errors whose package is a variable's."""


def test_nor_is_anybody_by_a_text_that_is_put_together() -> None:
    """Regression: Spark's users were told `pip install kafka_fast`."""
    known = {
        "PACKAGES[codec]": [*fallback.PACKAGES.values()],
        "name": re.findall(r'package_for\("[^"]*", "(\w+)"\)', sources()),
        "package": re.findall(r'require_package\("(\w+)"', sources()),  # and by `remedies`
        "OUR_WHEEL": [job_errors.OUR_WHEEL],
    }
    assert set(PUT_TOGETHER.findall(sources())) == set(known)
    texts = [f"pip install {package}" for packages in known.values() for package in packages]
    assert len(texts) > 5
    assert FROM_AN_INDEX.findall("\n".join([*texts, *remedies()])) == []


def remedies() -> list[str]:
    """Return what is said of each package that a Python of Spark's may lack."""
    lacking = ("kafka_fast", "pyarrow", "'pandas>=2.2.0'")
    said = [
        job_errors._remedy(package, is_remote=is_remote)
        for package in lacking
        for is_remote in (False, True)
    ]
    assert all("pip install " in text for text in said)
    return said


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("pip install 'kafka_fast[arrow]'", True),
        ("RUN pip install -q kafka-fast", True),
        ("pip install wheelhouse/kafka_fast-*.whl pyarrow", False),
        ("pip install wheelhouse/kafka_fast-*.whl there, which `make wheel` makes", False),
        ("pip install '.[arrow]'", False),
    ],
)
def test_what_an_index_would_be_asked_for(text: str, is_one: bool) -> None:
    assert bool(FROM_AN_INDEX.search(text)) is is_one
