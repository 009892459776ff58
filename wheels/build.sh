#!/usr/bin/env bash
# Build the source archive, install it as README.md says, and try a wheel of it alone; Python: $1.
#
# All is made from the source archive, not from the checkout, so that a file which the archive lacks
# is missed here and not by a user, and with a compiler that warns, which must stop nobody. The
# lines of README.md compile it, with the Cython that pip brings, and the wheel takes over what they
# have compiled. The repaired wheel carries the codec libraries; try.sh tries it in an environment
# that has nothing else, outside the checkout.
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
export CFLAGS="-Wall -Wextra" # of both builds: with other flags the second compiles anew
tools=$(dirname "$python")

echo "---- README.md's own lines"
lines=$(sed -n '/elsewhere, wheels.build.sh/,/^```$/p' README.md | grep -v '^<!\|^```\|wheelhouse')
mkdir "$work/home"
(cd "$work/source" && env HOME="$work/home" PATH="$tools:$PATH" PIP_LOG="$work/build.log" \
    PIP_CACHE_DIR="$("$python" -m pip cache dir)" bash -euo pipefail -c "$lines")
grep -q "warning:" "$work/build.log" || { echo "the compiler was to warn, and did not"; exit 1; }
grep -o "kafka_fast: no headers.*" "$work/build.log" || true # which codecs are missing
(cd "$work" && home/kafka/bin/kafka-fast info)

echo "---- the wheel"
"$python" -m build --no-isolation --wheel --outdir dist "$work/source" \
    > "$work/wheel.log" 2>&1 || { cat "$work/wheel.log"; exit 1; }
if grep -q -- " -c .*\.c " "$work/wheel.log"; then echo "it was compiled once more"; exit 1; fi

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
