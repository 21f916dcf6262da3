#!/bin/sh
# Makes the tree that the image is: Python, what it loads, and nothing else of the distribution.
#
#     tree.sh FOLDER
#
# Packages are unpacked, not installed, and there is no package manager. What each was is noted
# where scanners of images read it.
set -eu

tree=$1
# gcc-12-base has the licence of libgcc-s1, and nothing else.
packages='base-files ca-certificates dash gcc-12-base libc-bin libc6 libbz2-1.0 libexpat1 libffi8
    libgcc-s1 liblzma5 libpython3.11-minimal libpython3.11-stdlib libssl3 media-types
    python3-minimal python3.11-minimal zlib1g'

work=$(mktemp -d)
mkdir -p "$tree/usr/bin" "$tree/usr/lib" "$tree/usr/lib64" "$tree/usr/sbin" "$tree/etc/ssl/certs" \
    "$tree/var/lib/dpkg/status.d"
for name in bin lib lib64 sbin; do
    ln -s "usr/$name" "$tree/$name"
done
# shellcheck disable=SC2086 # a list of words
(cd "$work" && apt-get -q -o APT::Sandbox::User=root download $packages)
for package in "$work"/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$tree"
    dpkg-deb --field "$package" >"$tree/var/lib/dpkg/status.d/$(dpkg-deb -f "$package" Package)"
done
rm -r "$work"

# Of Python: what edits, packages, tests and teaches, and modules whose libraries are not here.
python=$tree/usr/lib/python3.11
for name in _pydecimal.py distutils ensurepip idlelib lib2to3 pydoc_data pydoc.py turtle.py \
    turtledemo venv; do
    rm -rf "${python:?}/$name"
done
for name in _crypt _curses _curses_panel _dbm _gdbm _sqlite3 _uuid nis readline; do
    rm -f "$python/lib-dynload/$name".*.so
done
# Of the rest: programs, character sets besides UTF-8, and what is only read by people. Licences
# stay, as they have to.
find "$tree/usr/bin" "$tree/usr/sbin" ! -type d ! -name 'python3*' ! -name dash -delete
ln -sf dash "$tree/usr/bin/sh"
find "$tree/usr/lib" -depth \( -path '*-linux-gnu/gconv/*' -o -path '*/systemd/*' \) -delete
find "$tree/usr/share/doc" "$tree/usr/share/man" -type f ! -name copyright -delete
# Links to what was removed; others lead from one package to the licence of another.
find "$tree/usr/share/doc" "$tree/usr/share/man" -xtype l -delete
for name in bash-completion bug debianutils i18n lintian locale man pixmaps zsh; do
    rm -rf "${tree:?}/usr/share/$name"
done

# What scripts of the packages would have made.
find "$tree/usr/share/ca-certificates" -name '*.crt' -exec cat {} + \
    >"$tree/etc/ssl/certs/ca-certificates.crt"
rm -r "$tree/usr/share/ca-certificates"
mkdir -p "$tree/usr/lib/ssl"
ln -s /etc/ssl/certs/ca-certificates.crt "$tree/usr/lib/ssl/cert.pem"
printf 'root:x:0:0:root:/root:/sbin/nologin\n' >"$tree/etc/passwd"
printf 'root:x:0:\n' >"$tree/etc/group"
mkdir -p "$tree/tmp" "$tree/root"
chmod 1777 "$tree/tmp"
python3.11 -m compileall -q -s "$tree" -p / "$python"
