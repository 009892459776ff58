#!/usr/bin/env bash
# The tests that need no broker, with a Python, a gcc and an OpenSSL newer than this machine's.
#
#   newest.sh --probe            say in the last line why this machine cannot, or succeed
#   newest.sh PYTHON [TESTS…]    run them with python3.14 or python3.15
#
# The suite is named, so that what it holds changes when we want it to.
set -euo pipefail
. "$(dirname "$0")/chroot.sh"

SUITE=forky
PYTHONS=(python3.14 python3.15)
PACKAGES=(gcc libc6-dev make git pkg-config libssl-dev
    liblz4-dev libzstd-dev libsnappy-dev libdeflate-dev zlib1g-dev)

if [ "${1:-}" = --probe ]; then
    probe_chroot
    exit
fi

python=$1
shift
make_chroot "$SUITE" "$SUITE" apt "$(dpkg --print-architecture)" \
    "${PACKAGES[@]}" "${PYTHONS[@]/%/-dev}" "${PYTHONS[@]/%/-venv}"
in_chroot make --no-print-directory PYTHON="$python" VENV="/venv-$python" \
    TESTS="$*" test-python
