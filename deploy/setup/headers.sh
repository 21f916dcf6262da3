#!/bin/sh
# Makes a tree of kernel headers at the path that is given, from the distribution's packages.
#
# The packages are unpacked, not installed: nothing else of the system changes. Any version of them
# serves: probes use the layout of the registers and nothing else of the kernel.
set -eu

tree=$1
architecture=$(dpkg --print-architecture)

fail() {
    printf 'headers: error: %s\n' "$*" >&2
    exit 1
}

# Prints the two packages that the newest headers are split into.
header_packages() {
    apt-cache depends "linux-headers-$architecture" 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-headers-[0-9].*\)-\([a-z0-9]*\)$/\1-\2 \1-common/p'
}

download_headers() {
    packages=$(header_packages)
    # shellcheck disable=SC2086 # a list of words
    [ -n "$packages" ] && apt-get -q -o APT::Sandbox::User=root download $packages >&2
}

mkdir -p "$(dirname -- "$tree")"
work=$(CDPATH='' cd -- "$(dirname -- "$tree")" && pwd)/$(basename -- "$tree").new
rm -rf "$work" "$tree"
mkdir -p "$work/packages" "$work/unpacked" "$work/tree"
(
    cd "$work/packages"
    download_headers || { apt-get -q update >&2 && download_headers; }
) || fail 'cannot download linux-headers'
for package in "$work"/packages/*.deb; do
    dpkg-deb --extract "$package" "$work/unpacked"
done
# Joins the halves in one tree, the only form that BCC_KERNEL_SOURCE can name.
for half in "$work"/unpacked/usr/src/linux-headers-*-common \
    "$work"/unpacked/usr/src/linux-headers-*-"$architecture"; do
    for part in include/asm-generic include/generated include/linux include/uapi include/vdso \
        arch/x86/include arch/arm64/include; do
        [ -d "$half/$part" ] || continue
        mkdir -p "$work/tree/$part"
        cp -R "$half/$part/." "$work/tree/$part"
    done
done
mv "$work/tree" "$tree"
rm -rf "$work"
