#!/bin/sh
# Build each fuzz target with clang, ASan and UBSan, and run it.
#
#   run.sh SECONDS [TARGET...]    SECONDS for each target; unless some are named all targets, one
#                                 on each processor at a time
#
# Seeds are in corpus/<target>/. What a run finds new is kept in build/fuzz/ for the next one; a
# crash leaves its input there and ends the run with status 1.
set -eu

seconds=${1:?usage: run.sh SECONDS [TARGET...]}
shift
here=$(cd "$(dirname "$0")" && pwd)
src=$(dirname "$here")
build=$(dirname "$src")/build/fuzz
clang=${CLANG:-clang}

if ! command -v "$clang" >/dev/null; then
    echo "fuzz: needs clang with libFuzzer (Debian: clang and libclang-rt-14-dev)" >&2
    exit 2
fi

# Codec libraries: those that compile and link, as setup.py looks for them.
codecs=
for codec in LZ4:lz4frame.h:lz4 ZSTD:zstd.h:zstd SNAPPY:snappy-c.h:snappy \
    LIBDEFLATE:libdeflate.h:deflate; do
    rest=${codec#*:}
    if printf '#include <stddef.h>\n#include <%s>\nint main(void) { return 0; }\n' "${rest%:*}" |
        "$clang" -x c - -o /dev/null "-l${rest#*:}" 2>/dev/null; then
        codecs="$codecs -DKF_HAVE_${codec%%:*} -l${rest#*:}"
    fi
done

# Inputs that other tests replay are good seeds too.
seeds_of() {
    echo "$here/corpus/$1"
    case $1 in
    export) echo "$here/corpus/batch $(dirname "$src")/tests/corpus/hostile/record" ;;
    batch | legacy) echo "$(dirname "$src")/tests/corpus/hostile/record" ;;
    esac
}

sources_of() {
    case $1 in
    compress | decompress)
        echo "$src/kf_compress.c $src/kf_gzip.c $src/kf_snappy.c $src/kf_lz4.c $src/kf_zstd.c"
        echo "$codecs"
        ;;
    crc32c) echo "$src/kf_crc32c.c" ;;
    pool) echo "$src/kf_pool.c" ;;
    esac
}

if [ $# -eq 0 ]; then
    for source in "$here"/fuzz_*.c; do
        basename "$source" .c | cut -d_ -f2
    done | xargs -P "$(nproc)" -n 1 "$here/run.sh" "$seconds"
    echo "fuzz: ok"
    exit
fi
mkdir -p "$build"
for target in "$@"; do
    # shellcheck disable=SC2046  # a list of arguments is wanted
    "$clang" -std=gnu11 -O1 -g -Wall -Wextra -Wconversion -Werror -I"$src" \
        -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
        "$here/fuzz_$target.c" -o "$build/fuzz_$target" $(sources_of "$target")
    mkdir -p "$build/corpus/$target" "$here/corpus/$target"
    log=$build/$target.log
    # shellcheck disable=SC2046
    if ! (cd "$build" && "./fuzz_$target" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=1024 -max_len=8192 -verbosity=0 -print_final_stats=1 \
        -artifact_prefix="crash-$target-" "corpus/$target" $(seeds_of "$target")) \
        >"$log" 2>&1; then
        cat "$log" >&2
        echo "fuzz: $target failed; its input is build/fuzz/crash-$target-*" >&2
        exit 1
    fi
    echo "fuzz: $target: $(sed -n 's/.*executed_units: *//p' "$log") inputs in $seconds s"
done
