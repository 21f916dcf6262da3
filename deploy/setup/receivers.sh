#!/bin/sh
# Builds the programs that `make check-receivers` sends to, in .cache/receivers: an OpenTelemetry
# Collector and Pyroscope.
#
# Needs Go and takes ten minutes the first time, the next time none. What is pinned here and in the
# Collector's go.mod is pinned by Go's checksum database too, and what that does not know by the
# go.sum that comes with Pyroscope.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
cache=$root/.cache/receivers
bin=$cache/bin

# The newest that is served as a Go module, and the part of it that is one of its own.
pyroscope=1.7.1
pyroscope_api=1.0.0

say() {
    printf 'receivers: %s\n' "$*" >&2
}

fail() {
    printf 'receivers: error: %s\n' "$*" >&2
    exit 1
}

# Beside the program lies what it was built from.
build_collector() {
    source=$here/receivers/collector
    from=$(cat "$source"/* | sha256sum)
    [ ! -x "$bin/collector" ] || [ "$from" != "$(cat "$bin/collector.from" 2>&1)" ] || return 0
    say 'building a Collector, which takes minutes'
    (cd "$source" && go build -mod=readonly -ldflags '-s -w' -o "$bin/collector" .)
    printf '%s\n' "$from" >"$bin/collector.from"
}

# The module replaces its part by a folder that only a checkout has. The part that is served is a
# little newer, and has an interface with one method more, about commits of a Git repository.
without_commits() {
    cat <<END
package $1

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	vcsv1 "github.com/grafana/pyroscope/api/gen/proto/go/vcs/v1"
)

func (*$2) GetCommits(
	context.Context, *connect.Request[vcsv1.GetCommitsRequest],
) (*connect.Response[vcsv1.GetCommitsResponse], error) {
	return nil, connect.NewError(connect.CodeUnimplemented, errors.New("not in this build"))
}
END
}

build_pyroscope() {
    [ ! -x "$bin/pyroscope" ] || return 0
    say 'building Pyroscope, which takes minutes'
    work=$cache/pyroscope
    rm -rf "$work"
    folder=$(go mod download -json "github.com/grafana/pyroscope@v$pyroscope" |
        sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    cp -R "$folder" "$work"
    chmod -R u+w "$work"
    cd "$work"
    rm -f go.work go.work.sum
    without_commits vcs Service >pkg/querier/vcs/commits.go
    without_commits frontend Frontend >pkg/frontend/commits.go
    api=github.com/grafana/pyroscope/api
    go mod edit -replace "$api=$api@v$pyroscope_api"
    # One of its parts refers to the runtime in a way that Go refuses since 1.23.
    GOFLAGS=-mod=mod GOWORK=off go build -ldflags '-s -w -checklinkname=0' \
        -o "$bin/pyroscope" ./cmd/pyroscope
    cd "$root"
    rm -rf "$work"
}

command -v go >/dev/null || fail 'Go 1.26 or newer is needed to build these programs'
mkdir -p "$bin"
build_collector
build_pyroscope
