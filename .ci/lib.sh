# shellcheck shell=bash
# What the scripts in .ci share: who runs lazaret, with which environment and
# which Go flags. Sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Debian keeps runc, nft and useradd out of a plain user's PATH.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

# One set of flags for every build, so that the build cache is shared. No
# version stamp: git refuses to answer for a clone that somebody else owns.
export GOFLAGS="-trimpath -buildvcs=false"

# ./... passes over directories whose names begin with a dot.
# shellcheck disable=SC2034 # for the scripts that source this
packages=(./... ./.ci/testsum ./.ci/benchtable ./.ci/sidecarsums ./.ci/screens)

# Packages with tests that start real sandboxes.
e2e_packages=(./cmd/lazaret)
# Those of them that take too long for every change are make test-long's.
# shellcheck disable=SC2034 # likewise
long_tests='^TestFault(Soak|FullDisk|Reset)$'

say() { printf '%s\n' "$*" >&2; }

die() {
	say "lazaret: error: $1"
	[[ $# -lt 2 ]] || say "lazaret: hint: $2"
	exit 1
}

in_ci() { [[ ${CI:-} && ${CI:-} != false && ${CI:-} != 0 ]]; }

is_root() { [[ $EUID -eq 0 ]]; }

# as_root CMD...: for the few things that only root may do.
as_root() {
	if is_root; then "$@"; else sudo -- "$@"; fi
}

# account: who runs lazaret. Root gets an account of its own for that, since
# lazaret refuses to run as root.
account() {
	if is_root; then printf '%s\n' "${LAZARET_ACCOUNT:-lazaret}"; else id -un; fi
}

# own_account: the account is there for lazaret only.
own_account() { is_root && [[ $(account) == lazaret ]]; }

account_exists() { id -u "$(account)" >/dev/null 2>&1; }

account_home() {
	if is_root; then getent passwd "$(account)" | cut -d: -f6; else printf '%s\n' "$HOME"; fi
}

runtime_dir() {
	local own=/run/user
	own+=/$(id -u "$(account)")
	if is_root; then printf '%s\n' "$own"; else printf '%s\n' "${XDG_RUNTIME_DIR:-$own}"; fi
}

# as_account CMD...: runs CMD as the account, in its home. From root nothing
# of root's environment goes along, but what names the terminal and the test.
as_account() {
	local home run env=() name
	local quiet=(PODMAN_IGNORE_CGROUPSV1_WARNING=1)
	home=$(account_home)
	run=$(runtime_dir)
	if ! is_root; then
		env -C "$home" XDG_RUNTIME_DIR="$run" "${quiet[@]}" "$@"
		return
	fi
	for name in TERM COLORTERM NO_COLOR CI MIRROR "${!LAZARET_@}"; do
		[[ ! ${!name:-} ]] || env+=("$name=${!name}")
	done
	setpriv --reuid="$(id -u "$(account)")" --regid="$(id -g "$(account)")" --init-groups \
		env -i -C "$home" HOME="$home" USER="$(account)" LOGNAME="$(account)" SHELL=/bin/bash \
		XDG_RUNTIME_DIR="$run" LANG=C.UTF-8 \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		"${quiet[@]}" "${env[@]}" "$@"
}

# stage: a new private directory of the account's, for what it must be able to
# read: the clone may lie under a directory that only root can enter. It is
# apart from ~/.cache/lazaret, in which lazaret lets no workspace be. Printed.
stage() {
	# shellcheck disable=SC2016 # expanded by the account's shell
	as_account bash -c 'umask 077
		mkdir -p "$HOME/.cache/lazaret-ci" && mktemp -d "$HOME/.cache/lazaret-ci/stage-XXXXXX"'
}

# into_stage DIR PATH...: copies PATHs of the clone there. The account does the
# writing, so that root never follows a link that the account made.
into_stage() {
	local dir=$1
	shift
	tar -C "$root" --exclude=./.git --exclude=./.cache --exclude=./image/helpers -cf - "$@" |
		as_account tar --no-same-owner -C "$dir" -xf -
}

# unstage DIR: sandboxes leave files of subordinate ids, which only podman's
# user namespace may remove.
unstage() {
	as_account rm -rf "$1" 2>/dev/null || as_account podman unshare rm -rf "$1"
}

# e2e_copy OUT: copies what the end-to-end tests need to a stage, laid out as in
# the clone, with each package's tests as its e2e.test. They are built below OUT.
# copy is the stage from then on, whether the rest succeeds or not.
e2e_copy() {
	local out=$1 package
	copy=$(stage) && into_stage "$copy" . || return
	for package in "${e2e_packages[@]}"; do
		mkdir -p "$out/e2e/$package" &&
			CGO_ENABLED=0 go test -c -o "$out/e2e/$package/e2e.test" "$package" || return
	done
	root=$out/e2e into_stage "$copy" .
}

# settle: stops the process with which rootless podman keeps its namespaces,
# where the account is lazaret's own and nothing of it runs any more.
settle() {
	own_account && account_exists && command -v podman >/dev/null || return 0
	[[ $(as_account podman ps -q 2>/dev/null) ]] || as_account podman system migrate >/dev/null 2>&1 || true
}

# quietly CMD...: what CMD says is shown only when it fails.
quietly() {
	local log status=0
	log=$(mktemp)
	"$@" </dev/null >"$log" 2>&1 || status=$?
	[[ $status -eq 0 ]] || { say "$*: exit status $status"; tail -n 40 "$log" >&2; }
	rm -f "$log"
	return "$status"
}

now_ms() { local t=${EPOCHREALTIME/[.,]/}; printf '%s\n' "${t%???}"; }

# phase NAME CMD...: runs CMD and tells how long it took.
phase() {
	local name=$1 start status=0 ms
	shift
	start=$(now_ms)
	say "== $name"
	"$@" || status=$?
	ms=$(($(now_ms) - start))
	say "$(printf '== %s: %d.%01d s' "$name" $((ms / 1000)) $((ms % 1000 / 100)))"
	return "$status"
}
