#!/usr/bin/env bash
# Unit and network tests on arm64: compiled across, run by an emulator on this machine.
#
#   arm64.sh --probe       say in the last line why this machine cannot run them, or succeed
#   arm64.sh [ARGUMENT…]   build, and run pytest with these arguments
#
# The chroot is of this machine's release of Debian, whose Python then compiles for the chroot's.
# Its packages are only unpacked: their own scripts would take the emulator twenty minutes. On x86-64
# an emulator keeps the memory order of x86-64, so this finds no missing barrier.
set -euo pipefail
. "$(dirname "$0")/chroot.sh"

PYTHON=/usr/bin/python3
EMULATOR=/usr/bin/qemu-aarch64-static
TRIPLET=aarch64-linux-gnu
PACKAGES=(gcc bash coreutils findutils grep sed procps libc-bin tzdata openssl python3 python3-dev
    libc6-dev libssl-dev liblz4-dev libzstd-dev libsnappy-dev libdeflate-dev zlib1g-dev)
# Programs of arm64 in the words of the kernel's binfmt_misc; F opens the emulator once, outside of
# the chroot.
ZEROS='\x00\x00\x00\x00\x00\x00\x00\x00'
MAGIC="\\x7fELF\\x02\\x01\\x01\\x00$ZEROS\\x02\\x00\\xb7\\x00"
MASK='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
FORMAT=kafka-fast-arm64

if [ "${1:-}" = --probe ]; then
    probe_chroot "$EMULATOR=qemu-user-static" "$TRIPLET-gcc=gcc-aarch64-linux-gnu" \
        "$PYTHON=python3-venv python3-dev"
    exit
fi

# Newer kernels forget a format when nobody has binfmt_misc mounted. So it is mounted for this script,
# in a namespace of its own.
if [ -z "${KAFKA_FAST_ARM64:-}" ]; then
    KAFKA_FAST_ARM64=1 exec unshare --mount -- "$0" "$@"
fi

make_chroot arm64 "$(. /etc/os-release && echo "$VERSION_CODENAME")" extract arm64 "${PACKAGES[@]}"
# What the packages' scripts would have made.
[ -e "$root/bin/sh" ] || ln -s bash "$root/bin/sh"
[ -e "$root/etc/passwd" ] || echo root:x:0:0:root:/root:/bin/bash > "$root/etc/passwd"
[ -e "$root/etc/hosts" ] || echo 127.0.0.1 localhost > "$root/etc/hosts"
if ! chroot "$root" /usr/bin/true 2> /dev/null; then
    formats=/proc/sys/fs/binfmt_misc
    [ -e "$formats/register" ] || mount -t binfmt_misc binfmt_misc "$formats"
    echo ":$FORMAT:M::$MAGIC:$MASK:$EMULATOR:OCF" > "$formats/register"
    trap 'echo -1 > "$formats/$FORMAT"' EXIT
fi

cd "$CHECKOUT"
venv=build/arm64
make --no-print-directory PYTHON="$PYTHON" VENV="$venv" "$venv/build.stamp"
version=$("$venv/bin/python" -c 'import sys; print(f"{sys.version_info[0]}.{sys.version_info[1]}")')
PKG_CONFIG_SYSROOT_DIR=$root \
    PKG_CONFIG_LIBDIR="$root/usr/lib/$TRIPLET/pkgconfig:$root/usr/share/pkgconfig" \
    CC="$TRIPLET-gcc --sysroot=$root" \
    LDSHARED="$TRIPLET-gcc --sysroot=$root -shared -Wl,--no-warn-search-mismatch" \
    AR="$TRIPLET-ar" CPPFLAGS="-I$root/usr/include/python$version" \
    SETUPTOOLS_EXT_SUFFIX=".cpython-${version/./}-$TRIPLET.so" _PYTHON_HOST_PLATFORM=linux-aarch64 \
    "$venv/bin/python" setup.py -q build_ext --inplace

# The groups `build` and `test`, without what has no wheels: a C package would have to be compiled
# across.
mapfile -t packages < <("$venv/bin/python" -c 'import tomllib
groups = tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]
for package in [*groups["build"], *groups["test"]]:
    if isinstance(package, str) and not package.startswith("pyjks"):
        print(package)')
if ! cmp -s pyproject.toml "$root/site/pyproject.toml"; then
    rm -rf "$root/site"
    "$venv/bin/python" -m pip install -q --target "$root/site" --python-version "$version" \
        --platform manylinux_2_28_aarch64 --platform manylinux2014_aarch64 --only-binary=:all: \
        "${packages[@]}"
    cp pyproject.toml "$root/site"
fi
# Not by PYTHONPATH: tests give their children one of their own.
printf '%s\n' /site /checkout > "$root/usr/lib/python3/dist-packages/kafka_fast_tests.pth"
export KAFKA_FAST_EMULATOR=qemu
in_chroot python3 -m pytest -q -p no:cacheprovider "$@"
