# Debian in a folder, for platforms that this machine is not; sourced by newest.sh and arm64.sh.
#
# The folders stay in $CHROOTS and are used again. Remove one, and the next run has the packages of
# that day. Outside of a run nothing is mounted in them: a run's mounts are its own (a mount
# namespace), so rm -rf is safe. They come from the mirror of Debian that apt uses on this machine, or
# from $MIRROR.

CHROOTS=${CHROOTS:-/var/cache/kafka_fast}
CHECKOUT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Print the address of a mirror of Debian, or nothing.
debian_mirror() {
    if [ -n "${MIRROR:-}" ]; then
        echo "$MIRROR"
    else
        apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' \
            | awk -F'|' '$1 == "Debian" && $2 == "Debian" && !n++ { print $3 }'
    fi
}

# Fail with the reason in one line if this machine cannot have a chroot. Arguments: programs that are
# needed, each with its package ("program=package").
probe_chroot() {
    [ "$(id -u)" = 0 ] || { echo "needs root"; return 1; }
    for needed in mmdebstrap=mmdebstrap unshare=util-linux "$@"; do
        command -v "${needed%%=*}" > /dev/null \
            || { echo "needs ${needed%%=*} (Debian: apt-get install ${needed##*=})"; return 1; }
    done
    command -v apt-get > /dev/null || { echo "needs Debian"; return 1; }
    [ -n "$(debian_mirror)" ] \
        || { echo "apt knows no mirror of Debian: apt-get update, or MIRROR=address"; return 1; }
    unshare --mount --pid --fork -- mount -t proc proc /proc \
        || { echo "may not mount here, as in most containers"; return 1; }
}

# make_chroot NAME SUITE VARIANT ARCHITECTURE PACKAGE...
# Set `root` to the folder, which is made anew if it is not there or was made of other packages. It
# is this script's until the script ends: another one waits here.
make_chroot() {
    root=$CHROOTS/$1
    local suite=$2 variant=$3 architecture=$4
    local made_of="$suite $variant $architecture ${*:5}"
    mkdir -p "$CHROOTS"
    exec 9> "$root.lock"
    flock 9
    if [ "$(cat "$root.made-of" 2> /dev/null)" != "$made_of" ]; then
        echo "making $root"
        rm -rf "$root" "$root.made-of"
        # A mirror may be a copy that is some weeks old.
        mmdebstrap --quiet --mode=root --variant="$variant" --architectures="$architecture" \
            --aptopt='Acquire::Check-Valid-Until "false"' --include="$(IFS=,; echo "${*:5}")" \
            "$suite" "$root" "$(debian_mirror)"
        echo "$made_of" > "$root.made-of"
    fi
}

# in_chroot COMMAND...
# Run a command in /checkout, which is this checkout. What it starts ends with it.
in_chroot() {
    unshare --mount --pid --fork --kill-child -- \
        bash "$CHECKOUT/tests/platforms/inside.sh" "$CHECKOUT" "$root" "$@"
}
