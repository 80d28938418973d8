# shellcheck shell=bash
# gVisor's runsc: found by trying it, built from its Go module where none works.
# Sourced after lib.sh and go.sh.

runsc_module=v0.0.0-20260905035102-160fafc42237
runsc_release=release-20260905.0
runsc_oldest=20260101 # the oldest that launch takes
runsc_dir=/usr/local/lib/lazaret/runsc-$runsc_release
runsc_link=/usr/local/bin/runsc

# runsc_works PATH: starts a sandbox with it, as the account. A runsc that
# prints a version may still not start anything on this kernel: Debian 12's does
# not. The sandbox holds one static program, which podman's packages bring.
runsc_works() {
	[[ -x $1 ]] || return
	# shellcheck disable=SC2016 # expanded by the account's shell
	as_account bash -c '
		set -eu
		mkdir -p "$HOME/.cache/lazaret-ci"
		rootfs=$(mktemp -d "$HOME/.cache/lazaret-ci/probe-XXXXXX")
		trap "rm -rf \"$rootfs\" 2>/dev/null || podman unshare rm -rf \"$rootfs\"" EXIT
		cp "$(command -v catatonit)" "$rootfs/catatonit"
		podman --cgroup-manager cgroupfs --events-backend file \
			--runtime "$1" --runtime-flag ignore-cgroups \
			run --rm --network none --rootfs "$rootfs" /catatonit -V
	' probe "$1" >/dev/null
}

# runsc_is_recent PATH: a release that launch takes.
runsc_is_recent() {
	local version
	version=$("$1" --version 2>/dev/null | sed -n 's/^runsc version release-\([0-9]\{8\}\).*/\1/p')
	[[ $version && $version -ge $runsc_oldest ]]
}

# runsc_found: the one that lazaret would use is good.
runsc_found() {
	local path
	path=$(command -v runsc) && runsc_is_recent "$path" && runsc_works "$path" 2>/dev/null
}

# build_runsc: into a directory named after the release, beside earlier ones.
build_runsc() {
	[[ ! -x $runsc_dir/runsc ]] || return 0
	local work
	work=$(mktemp -d)
	say "building runsc $runsc_release (about two minutes)"
	(quietly compile_runsc "$work") || { rm -rf "$work"; die "building runsc from gvisor.dev/gvisor@$runsc_module"; }
	as_root install -D -m 0755 "$work/runsc" "$runsc_dir/.new"
	as_root mv -f "$runsc_dir/.new" "$runsc_dir/runsc"
	rm -rf "$work"
}

# compile_runsc DIR: in a module of its own, since gVisor's requirements would
# hold back lazaret's. Without -X it does not know its version.
compile_runsc() {
	cd "$1" &&
		go mod init runsc-build &&
		go get "gvisor.dev/gvisor/runsc@$runsc_module" &&
		CGO_ENABLED=0 go build -o runsc \
			-ldflags "-s -w -buildid= -X gvisor.dev/gvisor/runsc/version.version=$runsc_release-go" \
			gvisor.dev/gvisor/runsc
}

# link_runsc: makes ours the one that is found. One that somebody put there and
# that does not work is kept under another name.
link_runsc() {
	if [[ -e $runsc_link && ! -L $runsc_link ]]; then
		as_root mv "$runsc_link" "$runsc_link.not-working"
	fi
	as_root ln -sfn "$runsc_dir/runsc" "$runsc_link"
}

install_runsc() {
	require_go
	build_runsc
	link_runsc
	hash -r
	[[ $(command -v runsc) == "$runsc_link" ]] ||
		die "$(command -v runsc) comes before $runsc_link in PATH and does not start a sandbox" "remove it"
	runsc_works "$runsc_link" || die "runsc $runsc_release does not start a sandbox on this machine" \
		"what podman said is above"
}
