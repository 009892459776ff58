#!/usr/bin/env bash
# Build the source archive, from it a wheel for the Python in $1, and try that wheel alone.
#
# The wheel is made from the source archive, not from the checkout, so that a file which the archive
# lacks is missed here and not by a user, and with a compiler that warns, which must stop nobody. The
# repaired wheel carries the codec libraries; try.sh tries it in an environment that has nothing else,
# outside the checkout. What README.md says of pip is tried with that.
set -euo pipefail

python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH KAFKA_FAST_STRICT KAFKA_FAST_DEBUG # as whoever builds it elsewhere

cd "$root"
rm -rf dist wheelhouse
"$python" -m build --no-isolation --sdist --outdir dist .
mkdir "$work/source"
tar -xzf dist/*.tar.gz -C "$work/source" --strip-components=1
[ -f "$work/source/src_c/kf_wire.h" ] || { echo "the source archive lacks src_c"; exit 1; }
CFLAGS="-Wall -Wextra" "$python" -m build --no-isolation --wheel --outdir dist "$work/source" \
    > "$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
grep -q "warning:" "$work/build.log" || { echo "the compiler was to warn, and did not"; exit 1; }
grep "^kafka_fast: " "$work/build.log" || true # which codecs are missing

echo "---- what a package index would say"
"$python" -m twine check --strict dist/*
"$python" wheels/classifiers.py dist/*.whl

echo "---- what it links"
if "$python" -m auditwheel repair --strip -w wheelhouse dist/*.whl; then
    "$python" -m auditwheel show wheelhouse/*.whl
else
    # No policy fits a C library as new as this machine's, or patchelf is missing.
    echo "this wheel carries no library: it is for this machine"
    mkdir -p wheelhouse
    cp dist/*.whl wheelhouse/
    mkdir "$work/unpacked"
    "$python" -m zipfile -e dist/*.whl "$work/unpacked"
    find "$work/unpacked" -name '*.so' -exec sh -c 'echo "$1"; ldd "$1"' _ {} \;
fi

echo "---- smoke test in a clean environment"
wheels/try.sh "$python" wheelhouse/*.whl
ls -l "$root/wheelhouse"
