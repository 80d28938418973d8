# shellcheck shell=bash source-path=SCRIPTDIR source=lib.sh
# Which Go builds lazaret. Sourced after lib.sh.
# shellcheck disable=SC2154 # root is set by lib.sh
# wanted_go: the version that go.mod asks for.
wanted_go() { awk '$1 == "go" { print $2; exit }' "$root/go.mod"; }

# go_fits: go runs here and satisfies go.mod, fetching a toolchain if it may.
go_fits() { (cd "$root" && go version >/dev/null 2>&1); }

require_go() {
	command -v go >/dev/null ||
		die "go is not installed" "install Go $(wanted_go) or newer (https://go.dev/doc/install) and put it on PATH"
	go_fits && return
	die "$(cd /; go version 2>&1 | tail -n1) is too old: go.mod asks for $(wanted_go)" \
		"install Go $(wanted_go) or newer (https://go.dev/doc/install), or with Go 1.21 or newer set GOTOOLCHAIN=auto"
}
