#!/bin/sh
# Build the harness of the planes' shared state with clang and run it: under ThreadSanitizer, then
# under ASan (leaks included) and UBSan.
#
#   run.sh [SEEDS] [RECORDS]    seeds for each build (2), and records of each caller (20000)
set -eu

seeds=${1:-2}
records=${2:-20000}
here=$(cd "$(dirname "$0")" && pwd)
src=$(dirname "$here")
build=$(dirname "$src")/build/tsan
clang=${CLANG:-clang}

if ! command -v "$clang" >/dev/null; then
    echo "tsan: needs clang (Debian: clang and libclang-rt-14-dev)" >&2
    exit 2
fi

mkdir -p "$build"
for sanitizers in thread address,undefined; do
    program=$build/harness-$(echo "$sanitizers" | tr , -)
    "$clang" -std=gnu11 -O1 -g -Wall -Wextra -Wconversion -Werror -I"$src" \
        "-fsanitize=$sanitizers" -fno-sanitize-recover=all -pthread \
        "$here/harness.c" "$here/broker.c" "$here/sender.c" \
        "$src/kf_pool.c" "$src/kf_plane.c" "$src/kf_batch.c" "$src/kf_queue.c" "$src/kf_link.c" \
        -o "$program"
    seed=1
    while [ "$seed" -le "$seeds" ]; do
        TSAN_OPTIONS=halt_on_error=1 "$program" "$seed" "$records"
        seed=$((seed + 1))
    done
    echo "tsan: $sanitizers: $seeds seeds"
done
echo "tsan: ok"
