#!/bin/sh
# Builds what `make check-manifests` holds the manifests against, in .cache/manifests: kubeconform,
# Helm, and a kube-apiserver with kubectl and etcd. Fetches what schemas are made of, too.
#
# Needs Go and takes ten minutes the first time, the next time none. What is pinned here is pinned
# by Go's checksum database too.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
cache=$root/.cache/manifests
bin=$cache/bin

kubernetes=1.36.3
kubeconform=0.8.0
helm=3.22.0
# Of these two, published forms; nothing of them runs.
compose=2.9.0
operator=0.85.0

say() {
    printf 'manifest tools: %s\n' "$*" >&2
}

fail() {
    printf 'manifest tools: error: %s\n' "$*" >&2
    exit 1
}

# Prints the folder of a Go module, which is fetched if need be.
module() {
    go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}

install_go() {
    [ ! -x "$bin/$1" ] || return 0
    say "building $1, which takes minutes"
    GOBIN=$bin go install -trimpath "$2"
}

# The module replaces its parts by folders that only a checkout has; each is a module of its own.
build_kubernetes() {
    [ ! -x "$bin/kubectl" ] || [ ! -x "$bin/kube-apiserver" ] || return 0
    say 'building kube-apiserver and kubectl, which takes six minutes'
    work=$cache/kubernetes
    rm -rf "$work"
    cp -R "$(module "k8s.io/kubernetes@v$kubernetes")" "$work"
    chmod -R u+w "$work"
    cd "$work"
    rm -rf vendor go.work go.work.sum
    sed -i -E "s#^(\s*)(k8s\.io/[a-z-]+) => \./staging/src/.*#\1\2 => \2 v0.${kubernetes#1.}#" go.mod
    version=k8s.io/component-base/version
    flags="-s -w -X $version.gitVersion=v$kubernetes -X $version.gitMajor=1"
    for program in kube-apiserver kubectl; do
        GOFLAGS=-mod=mod GOWORK=off go build -p 2 -trimpath \
            -ldflags "$flags -X $version.gitMinor=36" -o "$bin/$program" "./cmd/$program"
    done
    cd "$root"
    rm -rf "$work"
}

# Unpacked and not installed: the package would start a server.
get_etcd() {
    [ ! -x "$bin/etcd" ] || return 0
    say 'fetching etcd'
    work=$cache/etcd.new
    rm -rf "$work"
    mkdir -p "$work"
    (cd "$work" && apt-get -q -o APT::Sandbox::User=root download etcd-server >&2)
    dpkg-deb --extract "$work"/etcd-server_*.deb "$work/unpacked"
    cp "$work/unpacked/usr/bin/etcd" "$bin/etcd"
    rm -rf "$work"
}

get_definitions() {
    [ ! -e "$cache/compose-spec.json" ] || return 0
    say "fetching the Prometheus operator's resource definitions, and the form of compose files"
    mkdir -p "$cache/crds"
    folder=$(module "github.com/prometheus-operator/prometheus-operator@v$operator")
    for kind in podmonitors prometheusrules servicemonitors; do
        cp "$folder/example/prometheus-operator-crd/monitoring.coreos.com_$kind.yaml" \
            "$cache/crds/$kind.yaml"
    done
    folder=$(module "github.com/compose-spec/compose-go/v2@v$compose")
    cp "$folder/schema/compose-spec.json" "$cache/compose-spec.json"
}

command -v go >/dev/null || fail 'Go 1.26 or newer is needed to build these tools'
mkdir -p "$bin"
get_definitions
get_etcd
install_go kubeconform "github.com/yannh/kubeconform/cmd/kubeconform@v$kubeconform"
install_go helm "helm.sh/helm/v3/cmd/helm@v$helm"
build_kubernetes
