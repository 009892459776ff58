#!/bin/sh
# Build the harnesses of the planes' shared state (harness: producing; fetching) with clang and run
# them: under ThreadSanitizer, then under ASan (leaks included) and UBSan.
#
#   run.sh [SEEDS] [RECORDS]    seeds for each build (2), and records of each caller (20000), which
#                               is also the number of frames fetched
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
python3 "$src/make_messages"
shared="$src/kf_pool.c $src/kf_event.c $src/kf_events.c $src/kf_commands.c"
shared="$shared $src/kf_plane.c $src/kf_batch.c $src/kf_queue.c $src/kf_producer.c"
shared="$shared $src/kf_split.c $src/kf_link.c $src/kf_frame.c $src/kf_fetch.c"
for sanitizers in thread address,undefined; do
    suffix=$(echo "$sanitizers" | tr , -)
    flags="-std=gnu11 -O1 -g -Wall -Wextra -Wconversion -Wswitch-enum -Werror -I$src -fsanitize=$sanitizers"
    flags="$flags -fno-sanitize-recover=all -pthread"
    # shellcheck disable=SC2086 # lists of words
    "$clang" $flags "$here/harness.c" "$here/broker.c" "$here/sender.c" $shared \
        -o "$build/harness-$suffix"
    # shellcheck disable=SC2086
    "$clang" $flags "$here/fetching.c" $shared -o "$build/fetching-$suffix"
    seed=1
    while [ "$seed" -le "$seeds" ]; do
        TSAN_OPTIONS=halt_on_error=1 "$build/harness-$suffix" "$seed" "$records"
        TSAN_OPTIONS=halt_on_error=1 "$build/fetching-$suffix" "$seed" "$records"
        seed=$((seed + 1))
    done
    echo "tsan: $sanitizers: $seeds seeds"
done
echo "tsan: ok"
