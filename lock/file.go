// Package lock owns lazaret.lock: its schema, its canonical text, how it is
// made from a Config, kept, checked and compared. A File means the same on
// every machine: it holds no absolute path of a machine, host name, uid, clock
// or map-ordered list. Package lock asks the outside world only through a
// Resolver and never starts anything.
package lock

// Version is the newest lockfile version this build reads and the one it writes.
const Version = 1

// File is a lockfile.
//
// Field tags drive everything that walks a File. `toml` is the key; ",inline"
// writes a table on one line (of a map: each of its entries), ",lines" writes
// an array with one element per line, ",omitempty" leaves the key out when
// there is nothing to say. `risk` is how much a change of the field can grant:
// "host" (code, files or secrets of the host), "net" (reach), "image" (what
// runs inside) or "none" (bookkeeping). `says` is the sentence that tells it to
// a person: {} is the value, {key} the last key of its path; it belongs to
// every field that holds a value and to none that only holds other fields.
// `text` widens what a value may hold beyond printable characters: "program"
// adds tab and newline, "foreign" (what an image says of itself) anything but
// NUL. Canonical text shows both as escapes, never raw. `grants:"less"` marks
// what takes away when it is there, so that losing it is the grant.
//
// In every struct the fields that are tables of their own come last, since
// TOML has no way back from a table to its parent.
type File struct {
	Version  int                `toml:"version" risk:"none" says:"lockfile format {}"`
	Inputs   Inputs             `toml:"inputs"`
	Storage  Storage            `toml:"storage"`
	Sidecar  map[string]Sidecar `toml:"sidecar"`  // by platform key: linux-amd64
	Escalate map[string]Binary  `toml:"escalate"` // by platform key
	Profiles map[string]Profile `toml:"profiles"`
}

// Inputs says which question the lock answers, so that --check can ask the
// same one again.
type Inputs struct {
	Platforms []string `toml:"platforms" risk:"none" says:"locked for {}"` // "linux/amd64", sorted
	User      *Input   `toml:"user,inline"`                                // the user-wide layer, when it took part
	Workspace *Input   `toml:"workspace,inline"`                           // ./lazaret.toml
	Override  *Input   `toml:"override,inline"`                            // --config FILE
}

// Paths of the two layers that every lock calls the same: where XDG_CONFIG_HOME
// points is a fact of one machine.
const (
	UserPath      = "~/.config/lazaret/config.toml"
	WorkspacePath = "lazaret.toml"
)

// Input is a config layer that contributed.
type Input struct {
	Path   string `toml:"path" risk:"none" says:"reads {}"`            // relative to the workspace, ~/…, or absolute where the person gave such a --config
	SHA256 string `toml:"sha256" risk:"none" says:"config content {}"` // hex, of the layer's canonical content
}

// Storage is where persistent state lies on the host.
type Storage struct {
	DataRoot string `toml:"data_root" risk:"host" says:"keeps state under {}"` // absolute or ~/…, as written
	Overlay  string `toml:"overlay" risk:"none" says:"overlay driver {}"`      // auto, native, fuse-overlayfs
}

// Sidecar pins the network sidecar for one platform. Digests are "sha256:…"
// and always this build's own: a reference only says where the same bytes can
// be had.
type Sidecar struct {
	Ref      string `toml:"ref,omitempty" risk:"host" says:"pulls the sidecar from {}"`
	Binary   string `toml:"binary" risk:"host" says:"sidecar binary {}"`
	Layer    string `toml:"layer" risk:"host" says:"sidecar layer {}"` // also the diff id: the layer is uncompressed
	Config   string `toml:"config" risk:"host" says:"sidecar image id {}"`
	Manifest string `toml:"manifest" risk:"host" says:"sidecar manifest {}"`
	Size     int64  `toml:"size" risk:"none" says:"sidecar of {} bytes"` // bytes of the layer
}

// Binary pins a helper program for one platform.
type Binary struct {
	Binary string `toml:"binary" risk:"image" says:"escalation client {}"`
}

// Profile is one sandbox, whole: all that launch turns into arguments.
type Profile struct {
	Command      []string          `toml:"command" risk:"image" says:"runs {}" text:"program"` // empty: the image's own
	Setup        []string          `toml:"setup,lines,omitempty" risk:"image" says:"sets up with {}" text:"program"`
	Runtime      []string          `toml:"runtime" risk:"host" says:"runs under {}"` // the runtime, then its flags without --
	Capabilities []string          `toml:"capabilities" risk:"image" says:"keeps capabilities {}"`
	State        string            `toml:"state" risk:"host" says:"shares its state per {}"` // profile, workspace
	Ports        []string          `toml:"ports,lines,omitempty" risk:"net" says:"publishes loopback port {}"`
	Limits       *Limits           `toml:"limits,inline"`
	Image        Image             `toml:"image"`
	Git          Git               `toml:"git"`
	Env          map[string]string `toml:"env" risk:"host" says:"sets {key} to {}" text:"program"` // literal, env:NAME or env:NAME?
	Network      Network           `toml:"network"`
	Escalation   Escalation        `toml:"escalation"`
	Mounts       map[string]Mount  `toml:"mounts,inline"` // by in-container path; sorted keys are mount order: parents first
}

// Limits bound the sandbox where the host can enforce them.
type Limits struct {
	Memory string `toml:"memory,omitempty" risk:"none" says:"memory limit {}"`
	CPUs   string `toml:"cpus,omitempty" risk:"none" says:"cpu limit {}"`
	PIDs   int64  `toml:"pids,omitempty" risk:"none" says:"process limit {}"`
}

// Image pins a profile's image.
type Image struct {
	Ref       string                   `toml:"ref" risk:"image" says:"image {}"`
	Index     string                   `toml:"index,omitempty" risk:"image" says:"index {}"` // only where the reference names an index
	Platforms map[string]PlatformImage `toml:"platforms"`                                    // by platform key
}

// PlatformImage is an image for one platform, and what it would do by itself.
type PlatformImage struct {
	Manifest    string            `toml:"manifest" risk:"image" says:"manifest {}"`
	Config      string            `toml:"config" risk:"image" says:"image id {}"` // the id podman shows
	Size        int64             `toml:"size" risk:"none" says:"{} bytes of layers"`
	Entrypoint  []string          `toml:"entrypoint,omitempty" risk:"image" says:"image entrypoint {}" text:"foreign"`
	Command     []string          `toml:"command,omitempty" risk:"image" says:"image command {}" text:"foreign"`
	User        string            `toml:"user,omitempty" risk:"image" says:"image user {}"`
	WorkingDir  string            `toml:"workdir,omitempty" risk:"image" says:"image working directory {}"`
	Env         []string          `toml:"env,lines,omitempty" risk:"image" says:"image environment {}" text:"foreign"`
	Volumes     []string          `toml:"volumes,omitempty" risk:"image" says:"image volumes {}"`
	Annotations map[string]string `toml:"annotations" risk:"image" says:"image annotation {key} = {}" text:"foreign"`
}

// Git is how the sandbox sees the repository.
type Git struct {
	Mode   string `toml:"mode" risk:"host" says:"git {}"`          // quarantine, writeback, none
	Branch string `toml:"branch" risk:"host" says:"on branch {}"`  // auto, a name, or "": the host's
	Tree   string `toml:"tree" risk:"none" says:"{} working tree"` // shared, worktree
}

// Network is the sandbox's reach. Lists are canonical text, sorted by address
// or name.
type Network struct {
	OnDeny     string   `toml:"on_deny" risk:"none" says:"answers denied connections by {}"` // reject, blackhole
	DNS        string   `toml:"dns" risk:"net" says:"resolves {} names"`                     // listed: only hosts; open: every name
	Allow      []string `toml:"allow,lines" risk:"net" says:"reaches {}"`
	Deny       []string `toml:"deny,lines" risk:"net" says:"never reaches {}" grants:"less"`
	Hosts      []string `toml:"hosts,lines" risk:"net" says:"reaches host {}"`
	AlwaysDeny []string `toml:"always_deny,lines" risk:"net" says:"never reaches {} unless a narrower range is allowed" grants:"less"`
}

// Escalation is what the sandbox may ask of the host.
type Escalation struct {
	Enabled          bool       `toml:"enabled" risk:"host" says:"may ask for host commands: {}"`
	SocketDir        string     `toml:"socket_dir,omitempty" risk:"host" says:"escalation sockets lie in {}"` // tokens in place
	Timeout          string     `toml:"timeout,omitempty" risk:"none" says:"requests wait {}"`
	MaxOutput        int64      `toml:"max_output,omitempty" risk:"none" says:"{} bytes of output kept"`
	AutoApprove      [][]string `toml:"auto_approve,lines,omitempty" risk:"host" says:"runs {} … on the host without asking"`
	AutoApproveExact [][]string `toml:"auto_approve_exact,lines,omitempty" risk:"host" says:"runs exactly {} on the host without asking"`
}

// Mount is one entry of the sandbox's mount table.
type Mount struct {
	Kind string `toml:"kind" risk:"host" says:"mounts {key}: {}"`                 // see the Kind constants
	From string `toml:"from,omitempty" risk:"host" says:"mounts {} at {key}"`     // bind: the source, tokens in place
	Name string `toml:"name,omitempty" risk:"none" says:"keeps {key} as {}"`      // overlay: the NAME of NAME_changes
	Mode string `toml:"mode,omitempty" risk:"host" says:"mounts {key} {}"`        // ro or rw, with ,z or ,Z where relabelled
	Size string `toml:"size,omitempty" risk:"none" says:"{key} holds at most {}"` // git, tmpfs: size limit
}

// Kinds of mount.
const (
	KindBind           = "bind"            // From, on the host
	KindOverlay        = "overlay"         // the image's directory, changes kept under Name
	KindTmpfs          = "tmpfs"           // an empty directory in memory
	KindGit            = "git"             // the .git directory made for the sandbox
	KindGitShadow      = "git-shadow"      // the host's git directory, to read
	KindEscalate       = "escalate"        // the escalation client
	KindEscalateSocket = "escalate-socket" // the socket it dials
	KindCerts          = "certs"           // the certificates it shows
)
