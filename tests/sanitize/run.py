"""Run tests on instrumented extensions: `python -m tests.sanitize.run address tests/embedded`.

What follows the sanitizer's name goes to pytest. `--probe` says whether the sanitizer can run here,
and in its last line what it lacks; `--build` builds and runs nothing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

from tests.sanitize.build import make_tree, work_folder
from tests.sanitize.sanitizers import (
    SANITIZERS,
    MissingError,
    Sanitizer,
    environment,
    probe,
    reports,
)

# Another handler of SIGSEGV would come before the sanitizer's; the cache belongs to the checkout.
PYTEST = ("-m", "pytest", "-q", "-p", "no:faulthandler", "-p", "no:cacheprovider", "--timeout=600")


def say(line: str) -> None:
    """Write a line at once: pytest's own follow."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(sanitizer: Sanitizer, arguments: list[str]) -> int:
    """Run pytest in an instrumented copy of the checkout; return 0 if nothing was found."""
    tree = make_tree(sanitizer)
    folder = work_folder(sanitizer) / "reports"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    env = {**environment(sanitizer, folder), "PYTHONPATH": str(tree)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # else each child compiles the package: half its time
    ran = subprocess.run([sys.executable, *PYTEST, *arguments], cwd=tree, env=env, check=False)
    run_reports = reports(folder)
    for report in run_reports:
        say(report)
    say(f"sanitize: {sanitizer.name} {arguments[0]}: {len(run_reports)} reports")
    return ran.returncode or bool(run_reports)


def main(arguments: list[str]) -> int:
    """Do what the command line asks for; return the status."""
    sanitizer = SANITIZERS[arguments[0]]
    match arguments[1:]:
        case ["--probe"]:
            try:
                probe(sanitizer)
            except MissingError as missing:
                say(str(missing))
                return 1
            return 0
        case ["--build"]:
            started = time.monotonic()
            make_tree(sanitizer)
            say(f"sanitize: {sanitizer.name}: built in {time.monotonic() - started:.0f} s")
            return 0
        case rest:
            return run(sanitizer, rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
