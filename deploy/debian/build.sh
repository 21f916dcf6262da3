#!/bin/sh
# Makes dist/gilscope_VERSION-1_ARCHITECTURE.deb of a wheel, with Debian's own tools.
#
#     deploy/debian/build.sh dist/gilscope-0.2.0-*.whl
#
# Its Python packages are those of the image, pinned there, in a folder of its own: other Pythons
# of the machine do not see them, and any python3 from 3.11 on runs them.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
wheel=$1
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$root/agent/gilscope/__init__.py")
work=$root/build/deb/gilscope-$version
tree=$work/tree
library=$tree/usr/lib/gilscope

fail() {
    printf 'deb: error: %s\n' "$*" >&2
    exit 1
}

# In the time of the commit, so that the same checkout gives the same package.
changelog() {
    if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
        SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)
    fi
    maintainer=$(sed -n 's/^Maintainer: //p' "$here/control")
    cat <<END
gilscope ($version-1) unstable; urgency=medium

  * Version $version; what is new in it is in changelog.gz.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
END
}

install_packages() {
    for words in "--require-hashes -r $root/deploy/image/requirements.txt" "--no-index $wheel"; do
        # shellcheck disable=SC2086 # a list of words
        PIP_DISABLE_PIP_VERSION_CHECK=1 "$root/.venv/bin/python" -m pip install --quiet --no-deps \
            --no-compile --upgrade --target "$library" $words
    done
    # Licences are in debian/copyright, once for all. What else has to be passed on stays.
    find "$library" -path '*.dist-info/*' -name 'LICENSE*' -prune -exec rm -r {} +
    find "$library" -path '*.dist-info/*' -type d -empty -delete
    # What pip installs for itself: programs with this checkout in their first lines, and lists.
    rm -r "$library/bin" "$library"/*.dist-info/RECORD "$library"/*.dist-info/direct_url.json
    # They are modules: some begin like programs of no interpreter that Debian has.
    find "$library" -name '*.py' -exec sed -i '1{/^#!/d}' {} +
}

command -v dh >/dev/null || fail 'debhelper is missing: deploy/setup/install.sh packages'
unzip -l "$wheel" | grep -q 'gilscope/bpf/ahead/gil-' ||
    fail "$wheel does not bring the compiled probes: make wheel"
rm -rf "$root/build/deb"
mkdir -p "$library" "$tree/usr/bin"
install_packages
# Pages and completions, where the wheel has them.
mv "$library/share" "$tree/usr/share"
install -m 755 "$here/gilscope" "$tree/usr/bin/gilscope"
cp -R "$here" "$work/debian"
rm "$work/debian/build.sh" "$work/debian/gilscope"
changelog >"$work/debian/changelog"
sed 's#/opt/gilscope/bin/#/usr/bin/#; /^#$/d; /^# .*cp deploy/d; /^# .*enable --now/d' \
    "$root/deploy/systemd/gilscope.service" >"$work/debian/gilscope.service"
cp "$root/CHANGELOG.md" "$work"
(cd "$work" && dpkg-buildpackage --build=binary --no-sign >"$root/build/deb/log" 2>&1) || {
    tail -n 20 "$root/build/deb/log" >&2
    fail 'dpkg-buildpackage failed'
}
mkdir -p "$root/dist"
mv "$root"/build/deb/gilscope_*.deb "$root/dist"
