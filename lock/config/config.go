// Package config reads lazaret.toml: it parses the layers, merges them,
// checks every value and gives back one Config, which is what people wrote,
// tokens unexpanded (Expand is for launch, which knows what they stand for).
// It never looks at the machine beyond the files it is told to read and knows
// nothing of lockfiles.
package config

import (
	"net/netip"
	"time"
)

// Config is the merged, validated configuration. Tokens ({profile_dir}, ~ …)
// are still in place, lists are canonical (parsed, deduplicated, sorted where
// their order means nothing), and every default is filled in.
type Config struct {
	Storage    Storage
	Network    Network
	Escalation Escalation
	Profiles   map[string]Profile

	// Origin tells where the winning value of each key was written. Keys are
	// dotted as in TOML: "network.on_deny", "profiles.claude.image",
	// "profiles.claude.env.PATH"; tables have a key too. Defaults have none.
	// The position of default_deny, a union, is the highest layer's; its
	// elements have keys too, by their text: network.default_deny["10.0.0.0/8"].
	Origin map[string]Position
}

// Position is a place in a layer, for messages: File as the layer is shown
// ("lazaret.toml", "~/.config/lazaret/config.toml"), Line from 1, Layer the
// kind of layer: what a repository's layer says about storage, socket_dir and
// sidecar is a grant, what the person's own says is not.
type Position struct {
	File  string
	Line  int
	Layer Kind
}

// Storage is the [storage] table.
type Storage struct {
	DataRoot string // absolute or ~/…, clean; no tokens
	Overlay  string // "auto" (default), "native" or "fuse-overlayfs"
}

// Network is the [network] table.
type Network struct {
	DefaultAllow []Endpoint
	DefaultDeny  []netip.Prefix // the union of all layers
	AllowHosts   []Host
	OnDeny       string // "reject" (default) or "blackhole"
	Sidecar      string // a fully qualified registry reference to pull the sidecar from, or ""
}

// Escalation is the [escalation] table.
type Escalation struct {
	Enabled          bool
	SocketDir        string     // absolute, ~/… or {runtime_dir}/…, clean; {profile_name} in place
	AutoApprove      [][]string // argument vectors, sorted; a request that starts with one matches
	AutoApproveExact [][]string // argument vectors, sorted; only the same vector matches
	Timeout          time.Duration
	MaxOutput        int64 // bytes of stdout and of stderr kept
}

// Profile is one [profiles.NAME] table.
type Profile struct {
	Image          string   // fully qualified reference, oci:DIR or builtin:shell
	PersistentDirs []string // absolute in-container paths, clean, sorted
	AllowEgress    []Endpoint
	AllowHosts     []Host
	Env            map[string]string // literal, "env:NAME" or "env:NAME?"
	Volumes        []Volume          // in the order written
	Command        []string          // empty: the image's own
	Setup          []string          // shell commands, in order
	Ports          []Port
	Git            string // "quarantine" (default), "writeback" or "none"
	Branch         string // "auto" (default), "" or a branch name
	Tree           string // "shared" (default) or "worktree"
	State          string // "profile" (default) or "workspace"
	Memory         string // "" or a size such as "4g"
	CPUs           string // "" or a decimal such as "1.5"
	PIDs           int64  // 0: no limit asked for
}

// Volume is one custom mount.
type Volume struct {
	Host      string // source on the host, clean; tokens in place
	Container string // absolute in-container path
	ReadOnly  bool   // decided: "ro" unless "rw" was said or Host lies under {profile_dir}
	Relabel   string // "", "z" or "Z"
}

// Endpoint is an address range, with a port where one was given:
// 10.20.0.0/16, 10.0.0.5/32:5432, [2001:db8::/32]:443/tcp.
type Endpoint struct {
	Prefix netip.Prefix
	Port   uint16 // 0: all ports
	Proto  string // "" (tcp and udp), "tcp" or "udp"; "" where Port is 0
}

// Host is a DNS name rule: an exact name, or "*.suffix" for the names below
// suffix at any depth (not suffix itself); lower case, without a trailing dot.
type Host struct {
	Name  string
	Port  uint16 // HTTPS where none was written; never 0
	Proto string // "" (tcp and udp), "tcp" or "udp"
}

// Port is a sandbox port published on the host's loopback: "1455", "8080:80".
type Port struct {
	Host    uint16
	Sandbox uint16
}
