"""Every page, followed word by word on `kafka-fast broker`."""

from __future__ import annotations

import re
import runpy
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation.conftest import CommandBroker
from tests.documentation.pages import ELSEWHERE, ROOT, RUN, SHOWN, all_pages, blocks, markdown_files
from tests.documentation.reader import Reader, matches

PAGES = [page for page in all_pages() if blocks(page)]
WIDTH = 100  # columns
WIDE = {"CHANGELOG.md", *(page for page in markdown_files() if page.startswith("bench/RESULTS"))}
FIRST_READ = 200
"""Lines of ARCHITECTURE.md at most: it is read in one go, before any code."""
ADDRESS = re.compile(r"\s*(?:[*-] )?(?:\[[^\]]+\]: )?<?https?://\S+>?")
"""A line that is an address, or defines a link: it cannot be folded."""
INSIDE = ["ARCHITECTURE.md", *(page for page in all_pages() if page.startswith("docs/internals/"))]
"""Pages for those who read the code."""
FILE = re.compile(r"`([\w./]+\.(?:py|pyx|pxd|h|c))`")
NEEDS_KAFKA = {"docs/admin.md"}
"""Pages about what the embedded broker does not have; `test_pages_kafka.py` follows them."""
QUICK = {"README.md", "docs/quickstart.md", "docs/errors.md", "docs/troubleshooting.md"}
FOLLOWED = [  # together 20 seconds of processors: each Python block is a program of its own
    page if page in QUICK else pytest.param(page, marks=pytest.mark.slow)
    for page in sorted(
        {*PAGES} - NEEDS_KAFKA, key=lambda page: ("celery" not in page, page)
    )  # celery takes the longest
]


@pytest.mark.parametrize("page", FOLLOWED)
def test_a_page_is_true_with_the_embedded_broker(
    page: str, command_broker: CommandBroker, tmp_path: Path
) -> None:
    said = command_broker.said
    with Reader(tmp_path, command_broker.port, said_by_broker=said) as reader:
        reader.follow(blocks(page))


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_say_what_they_are(page: str) -> None:
    for block in blocks(page):
        assert block.language in {*RUN, *SHOWN}, f"{block.place}: {block.language or 'nothing'}"
        if block.language not in RUN:
            assert block.language == "text" or block.title, f"{block.place}: a file has a title"


@pytest.mark.parametrize("page", PAGES)
def test_what_runs_elsewhere_is_run_there(page: str) -> None:
    for block in blocks(page):
        if block.how.startswith(ELSEWHERE):
            test = ROOT / block.how.removeprefix(ELSEWHERE)
            assert Path(page).name in test.read_text(encoding="utf-8"), block.place


def test_the_wheel_is_built_by_what_the_readme_says_of_pip() -> None:
    """Regression: that page was only named there."""
    script = ROOT / "wheels/build.sh"
    taken = re.search(r"^lines=\$\((.+)\)$", script.read_text(encoding="utf-8"), re.MULTILINE)
    assert taken is not None
    run = subprocess.run(["bash", "-c", taken[1]], cwd=ROOT, capture_output=True, check=True)
    how = ELSEWHERE + "wheels/build.sh"
    said = "".join(block.text for block in blocks("README.md") if block.how == how).splitlines()
    assert run.stdout.decode().splitlines() == [line for line in said if "wheelhouse" not in line]
    assert {"python3 -m venv ~/kafka", "pip install ."} <= {*said}


@pytest.mark.parametrize("page", sorted(set(markdown_files()) - WIDE))
def test_lines_can_be_read_side_by_side(page: str) -> None:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    wide = [number for number, line in enumerate(lines, 1) if len(line) > WIDTH]
    assert [number for number in wide if not ADDRESS.fullmatch(lines[number - 1])] == []


def test_the_architecture_is_read_in_one_go() -> None:
    lines = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= FIRST_READ


@pytest.mark.parametrize("page", INSIDE)
def test_files_that_a_page_names_are_there(page: str) -> None:
    named = set(FILE.findall((ROOT / page).read_text(encoding="utf-8")))
    assert {name: files for name in named if len(files := _files_named(name)) != 1} == {}


def _files_named(name: str) -> list[str]:
    """Return the files that a page may mean by a name: one, or readers open the wrong one.

    A name with a folder begins at the package or at the repository. A name alone may be of any
    file; the package's own come before those of the tests and of the embedded broker.
    """
    if "/" in name:
        return [path for path in (name, f"kafka_fast/{name}") if (ROOT / path).is_file()]
    files = [path.relative_to(ROOT).as_posix() for path in _source_files() if path.name == name]
    own = [path for path in files if path.startswith(("kafka_fast/", "src_c/"))]
    return [path for path in own if not path.startswith("kafka_fast/testing/")] or own or files


def _source_files() -> Iterator[Path]:
    yield from ROOT.glob("*.py")
    for folder in ("kafka_fast", "src_c", "tests", "bench"):
        yield from (ROOT / folder).rglob("*.*")


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("control/producer/causes.py", 1),
        ("kafka_fast/control/producer/causes.py", 1),
        ("tests/layers.py", 1),
        ("reconciliation.py", 1),
        ("producer/causes.py", 0),
        ("causes.py", 2),
    ],
)
def test_a_name_of_a_file_has_one_root(name: str, count: int) -> None:
    assert len(_files_named(name)) == count


def test_every_page_is_looked_at() -> None:
    assert set(markdown_files()) >= {
        *all_pages(),
        *WIDE,
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "bench/README.md",
    }


def test_the_page_of_errors_has_every_code() -> None:
    printed = runpy.run_path(str(ROOT / "docs/_site/error_codes.py"))["table"]()
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    assert page.endswith("\n".join(printed) + "\n")


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_who_hears_of_the_wait_of_a_first_group_hears_how_to_do_without(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    _, wait, behind = text.partition("`group.initial.rebalance.delay.ms`")
    assert not wait or "`group.protocol=consumer`" in behind.partition("\n## ")[0]


def test_the_extras_bring_what_they_are_for() -> None:
    """Regression: the README promised to_pandas() from an extra that brings no pandas."""
    needed = {"to_arrow()": {"pyarrow"}, "to_pandas()": {"pandas", "pyarrow"}}
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = project.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    packages = {
        name: set(re.findall(r'"([\w-]+)', listed))
        for name, listed in re.findall(r"^(\w+) = \[(.*)\]$", extras, re.MULTILINE)
    }
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("| extra |")[2]
    rows = [row.split("|")[1:-1] for row in table.partition("\n\n")[0].splitlines()[2:]]
    of_readme = {name for names, _, _ in rows for name in re.findall(r"`(\w+)`", names)}
    assert of_readme == packages.keys() - {"codecs"}
    for names, _, purpose in rows:
        brought = set().union(*(packages[name] for name in re.findall(r"`(\w+)`", names)))
        for call, needs in needed.items():
            if call in purpose:
                assert needs <= brought | set(re.findall(r"\w+", purpose)), (names, call)


@pytest.mark.parametrize(
    ("shown", "said", "does"),
    [
        ("one\n", "one\n", True),
        ("one\n", "one\ntwo\n", False),
        ("one\n...\n", "one\ntwo\nthree\n", True),
        ("one\n...\n", "one\n", True),
        ("...\ntwo\n", "one\ntwo\n", True),
        ("...\ntwo\n", "one, two\n", False),
        ("on...\n", "one\ntwo\n", False),
        ("offset=...)\n", "offset=17)\n", True),
        ("offset=...)\n", "offset=17\n", False),
        ("", "a warning\n", False),
    ],
)
def test_what_is_shown_is_compared_whole(shown: str, said: str, does: bool) -> None:
    assert matches(shown, said) is does
