#!/bin/sh
# Builds the helper binaries that lazaret embeds, for both platforms. This is
# the only place that knows how: lazaret.lock pins their digests, so everything
# that could change a byte is fixed here and nothing is taken from the
# environment but where modules come from. Quick when nothing changed.
#
# usage: image/build-helpers.sh [OUTPUT-DIRECTORY]
set -eu

toolchain=go1.26.8

cd "$(dirname "$0")/.."
out=${1:-image/helpers}
go=${GO:-go}

# Another go fetches this one; its own settings (go env -w) still say from where.
export GOTOOLCHAIN=$toolchain
export GOFLAGS=-mod=readonly GOWORK=off GO111MODULE=on
export GOEXPERIMENT= GOFIPS140=off GODEBUG= GO_EXTLINK_ENABLED=
export CGO_ENABLED=0 GOOS=linux GOAMD64=v1 GOARM64=v8.0

have=$("$go" env GOVERSION)
if [ "$have" != "$toolchain" ]; then
    echo "build-helpers: helpers are built by $toolchain, and \"$go\" is $have" >&2
    exit 1
fi

for arch in amd64 arm64; do
    dir=$out/linux-$arch
    mkdir -p "$dir"
    new=$(mktemp -d "$dir/.new.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    GOARCH=$arch "$go" build -trimpath -buildvcs=false -ldflags='-s -w -buildid=' -o "$new/" \
        ./cmd/lazaret-escalate ./cmd/lazaret-guest ./cmd/lazaret-sidecar
    (cd "$new" && sha256sum lazaret-escalate lazaret-guest lazaret-sidecar >SHA256SUMS)
    # Unchanged files keep their time, so that lazaret is not linked again. The
    # sums go last: without them what is there counts as unfinished.
    if ! cmp -s "$new/SHA256SUMS" "$dir/SHA256SUMS" || ! (cd "$dir" && sha256sum --status -c SHA256SUMS); then
        rm -f "$dir/SHA256SUMS"
        mv "$new"/lazaret-* "$dir/"
        mv "$new/SHA256SUMS" "$dir/SHA256SUMS"
    fi
    rm -rf "$new"
done
