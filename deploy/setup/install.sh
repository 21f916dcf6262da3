#!/bin/sh
# Prepares a Debian machine and this checkout for `make test`, or with the word `run` for `make demo`
# alone: what it takes to run gilscope, and nothing that only its tests need.
#
# Checks what is there and adds what is missing: packages of the distribution (the only change to
# the system), a virtual environment in .venv, and, where the kernel's own headers are missing, a
# tree of headers in .cache/headers, and tools for the tests in .cache/tools. A run that finds
# everything changes nothing. Packages that are named as arguments are installed as well, and for
# the word `containers` what builds and runs the image of the Dockerfile, for `packages` what makes
# the Debian package, for `real` what programs of `make test-real` are that pip does not bring, for
# `kernels` what `make test-kernels` boots them by.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
cache=$root/.cache
venv=$root/.venv
# By its path: another Python may come first on PATH, and only this one can import BCC.
python=/usr/bin/python3

say() {
    printf 'setup: %s\n' "$*" >&2
}

fail() {
    printf 'setup: error: %s\n' "$*" >&2
    exit 1
}

is_installed() {
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

to_run='binutils ca-certificates gcc libc6-dev python3 python3-bpfcc python3-dev python3-venv'
to_test='chromium clang-14 curl fonts-dejavu-core go-md2man libclang-rt-14-dev man-db openssl systemd'

install_packages() {
    missing=
    for package in $to_run $for_tests "$@"; do
        is_installed "$package" || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] || fail "run as root, or: sudo apt-get install$missing"
    say "installing$missing"
    apt-get -q update >&2
    # shellcheck disable=SC2086 # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends $missing >&2
}

have_headers() {
    [ -n "${BCC_KERNEL_SOURCE:-}" ] || [ -e "$cache/headers/include/linux/kconfig.h" ] ||
        [ -e "/lib/modules/$(uname -r)/build/include/generated/autoconf.h" ]
}

make_headers() {
    have_headers && return 0
    say 'fetching kernel headers to compile probes against'
    "$here/headers.sh" "$cache/headers" || fail 'set BCC_KERNEL_SOURCE to a tree of kernel headers'
}

# Installs packages that bring services, which are not started.
install_without_services() {
    missing=
    for package in "$@"; do
        is_installed "$package" || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] || fail "run as root, or: sudo apt-get install$missing"
    policy=/usr/sbin/policy-rc.d
    # A policy that forbids to start services, unless the machine has one of its own.
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
    else
        policy=
    fi
    # shellcheck disable=SC2086 # a list of words
    install_packages $missing
    [ -z "$policy" ] || rm -f "$policy"
    trap - EXIT
}

# Stamps say for which checkout it was made, and what with.
make_venv() {
    stamp=$venv/.installed
    if has_stamp "$stamp"; then
        [ -z "$for_tests" ] || has_stamp "$stamp.dev" || add_dev
        return 0
    fi
    say 'making .venv'
    rm -f "$stamp" "$stamp.dev"
    # BCC is the system's, so the environment sees the system's packages.
    "$python" -m venv --clear --system-site-packages "$venv"
    if [ -n "$for_tests" ]; then
        add_dev
    else
        install "$root"
    fi
    printf '%s\n' "$root" >"$stamp"
}

has_stamp() {
    [ -e "$1" ] && [ ! "$root/pyproject.toml" -nt "$1" ] && [ "$(cat "$1")" = "$root" ] &&
        "$venv/bin/python" -c '' 2>/dev/null
}

add_dev() {
    install "$root[dev]"
    printf '%s\n' "$root" >"$stamp.dev"
}

# By uv where it is: it takes a fraction of the time.
install() {
    if command -v uv >/dev/null; then
        uv pip install --quiet --python "$venv/bin/python" --editable "$1" >&2
    else
        PIP_DISABLE_PIP_VERSION_CHECK=1 "$venv/bin/python" -m pip install --quiet \
            --editable "$1" >&2
    fi
}

# Compiles what is written in C again when it has changed; the installation did it the first time.
build_extensions() {
    for made in process/_remote_memory.abi3.so gil/tracing/_lock_sampler.abi3.so \
        stm_log/_stm_log.abi3.so bpf/uprobes/_keeper; do
        is_built "$root/agent/gilscope/$made" && continue
        say 'compiling what is written in C'
        "$venv/bin/python" "$root/agent/native/build.py" >&2
        return
    done
}

is_built() {
    [ -e "$1" ] && [ -z "$(find "$root/agent/native" -name '*.[ch]' -newer "$1" -type f)" ]
}

have_monitoring() {
    for program in promtool prometheus-alertmanager prometheus-node-exporter \
        prometheus-pushgateway; do
        command -v "$program" >/dev/null || [ -x "$cache/tools/usr/bin/$program" ] || return 1
    done
}

# Prometheus and what belongs to it, for the tests and `make stack`. Installed, their packages would
# start servers on this machine.
get_monitoring() {
    have_monitoring && return 0
    say 'fetching Prometheus, Alertmanager, node_exporter and the Pushgateway'
    work=$cache/tools.new
    rm -rf "$work" "$cache/tools"
    mkdir -p "$work/unpacked"
    if (cd "$work" && apt-get -q -o APT::Sandbox::User=root download prometheus \
        prometheus-alertmanager prometheus-node-exporter prometheus-pushgateway >&2); then
        for package in "$work"/*.deb; do
            dpkg-deb --extract "$package" "$work/unpacked"
        done
        mv "$work/unpacked" "$cache/tools"
    else
        say 'no Prometheus: the tests that need it will be skipped'
    fi
    rm -rf "$work"
}

mkdir -p "$cache"
for_tests=$to_test
case "${1:-}" in
run)
    shift
    for_tests=
    ;;
containers)
    shift
    install_without_services buildah mmdebstrap podman runc
    ;;
kernels)
    shift
    set -- "$@" busybox-static cpio libitm1 qemu-system-x86
    ;;
packages)
    shift
    install_packages debhelper lintian unzip
    ;;
real)
    shift
    install_without_services apache2-bin gdb libapache2-mod-wsgi-py3
    ;;
esac
install_packages "$@"
# They need nothing of each other, and both wait for downloads.
make_headers &
headers=$!
make_venv
wait "$headers"
build_extensions
[ -z "$for_tests" ] || get_monitoring
