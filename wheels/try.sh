#!/usr/bin/env bash
# try.sh PYTHON WHEEL: install a wheel as README.md says, into an environment that has nothing else,
# and try it outside of the checkout. What the wheel requires is all that pip may install with it.
set -euo pipefail

python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
wheel=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH

"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q "$wheel"
cd "$work"
"$work/venv/bin/python" -I "$here/smoke.py"
