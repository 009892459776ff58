#!/usr/bin/env bash
# inside.sh CHECKOUT ROOT COMMAND...
# Run a command in a chroot. Called in mount and process namespaces of its own (chroot.sh).
set -euo pipefail

checkout=$1 root=$2
shift 2

# Show the chroot a file or folder of the machine, where it is there.
show() {
    local here=$1 there=$root${2:-$1}
    if [ -d "$here" ]; then
        mkdir -p "$there"
    elif [ -e "$here" ]; then
        mkdir -p "$(dirname "$there")"
        [ -f "$there" ] && [ ! -L "$there" ] || { rm -f "$there"; touch "$there"; }
    else
        return 0
    fi
    mount --rbind "$here" "$there"
}

mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
show /dev
show "$checkout" /checkout
# The network, and how pip reaches its index.
show /etc/resolv.conf
show /etc/ssl/certs
show /etc/pip.conf
show "$HOME/.config/pip" /root/.config/pip
show "$HOME/.pip" /root/.pip

kept='CI|PIP_(CERT|CONFIG_FILE|INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|.*TIMEOUT)'
kept+='|KAFKA_FAST_.*|SSL_CERT_.*|(https?|no)_proxy'
environment=(HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
while read -r name; do
    environment+=("$name=${!name}")
done < <(compgen -e | grep -E "^($kept)\$" || true)
# Not by exec: this shell is the first process of its namespace, and ends the orphans of the others.
chroot "$root" env -i "${environment[@]}" sh -c 'cd /checkout && exec "$@"' sh "$@"
