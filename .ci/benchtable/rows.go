package main

// Row is a line of the table: one quantity of lazaret's, and what it is put
// beside. Its explanation is the section of docs/performance.md with its ID.
type Row struct {
	ID     string
	What   string
	Beside string // "" where it is held against a number alone
	Unit   string
	Ours   string  // the series measured
	Theirs string  // the series beside it
	At     float64 // the quantile that counts; 0 is the median
	Aims   []Aim   // none: it is only told
}

// Aim is what a row should reach.
type Aim struct {
	Kind  Kind
	Limit float64
}

// Kind says how an aim is compared.
type Kind int

// Kinds of aims. The ratio is ours to theirs, the difference ours less theirs.
const (
	RatioAtMost Kind = iota
	RatioAtLeast
	MoreAtMost
	AtMost
)

func times(limit float64) Aim   { return Aim{RatioAtMost, limit} }
func atLeast(limit float64) Aim { return Aim{RatioAtLeast, limit} }
func more(limit float64) Aim    { return Aim{MoreAtMost, limit} }
func atMost(limit float64) Aim  { return Aim{AtMost, limit} }

const (
	podmanRun = "`podman --runtime runsc run --rm IMAGE true`"
	everyOn   = "`lazaret launch -- true`, everything on"
)

// rows is the table, in the order in which it is shown.
var rows = []Row{
	{ID: "launch-all", What: everyOn, Beside: podmanRun, Unit: "ms",
		Ours: "launch all", Theirs: "podman run", Aims: []Aim{more(250), times(1.5)}},
	{ID: "launch-net-git", What: "`lazaret launch -- true`, network and git only", Beside: podmanRun, Unit: "ms",
		Ours: "launch net git", Theirs: "podman run", Aims: []Aim{times(1.25)}},
	{ID: "launch-srt", What: everyOn, Beside: "`srt true` (bubblewrap, no kernel of its own)", Unit: "ms",
		Ours: "launch all", Theirs: "srt", Aims: []Aim{times(1.2)}},
	{ID: "launch-eight", What: "8 launches at once", Beside: "8 times " + podmanRun + " at once", Unit: "ms",
		Ours: "launch eight", Theirs: "podman run eight", Aims: []Aim{times(1.5)}},
	{ID: "teardown", What: "from the command's end to lazaret's", Beside: "`podman rm -f` of a running container", Unit: "ms",
		Ours: "teardown", Theirs: "podman rm", Aims: []Aim{times(1.5)}},
	{ID: "version", What: "`lazaret --version`", Beside: "`/bin/true`", Unit: "ms",
		Ours: "version", Theirs: "true", Aims: []Aim{atMost(15)}},
	{ID: "lock", What: "`lazaret lock`, 50 images, 20 ms an answer", Beside: "crane, one image after the other", Unit: "ms",
		Ours: "lock fifty", Theirs: "crane fifty", Aims: []Aim{times(1.0 / 6)}},
	{ID: "lock-check", What: "`lazaret lock --check`, 50 profiles", Beside: "`/bin/true`", Unit: "ms",
		Ours: "lock check", Theirs: "true beside check", Aims: []Aim{more(50)}},
	{ID: "tcp-up", What: "TCP out of the sandbox, through the sidecar", Beside: "the same sandbox on podman's network", Unit: "MiB/s",
		Ours: "up routed", Theirs: "up plain", Aims: []Aim{atLeast(0.9)}},
	{ID: "tcp-down", What: "TCP into the sandbox, through the sidecar", Beside: "the same sandbox on podman's network", Unit: "MiB/s",
		Ours: "down routed", Theirs: "down plain", Aims: []Aim{atLeast(0.9)}},
	{ID: "connect", What: "connecting, 100,000 ranges in the policy", Beside: "connecting, 1 range", Unit: "ms",
		Ours: "connect many", Theirs: "connect one", Aims: []Aim{times(1.1)}},
	{ID: "policy-time", What: "the sidecar loads and checks 100,000 ranges", Beside: "the same routes from one buffer, unchecked", Unit: "ms",
		Ours: "policy load", Theirs: "policy floor", Aims: []Aim{atMost(600)}},
	{ID: "policy-memory", What: "the sidecar's peak memory for that", Unit: "MiB",
		Ours: "policy memory", Aims: []Aim{atMost(32)}},
	{ID: "pty", What: "200 MB printed to a terminal", Beside: "`podman run -it`", Unit: "MiB/s",
		Ours: "pty lazaret", Theirs: "pty podman", Aims: []Aim{atLeast(0.8)}},
	{ID: "escalate-p50", What: "a command that needs no question, from inside and back, median", Beside: "fork and exec of `true` on the host", Unit: "ms",
		Ours: "ask", Theirs: "true beside ask", Aims: []Aim{more(10)}},
	{ID: "escalate-p99", What: "the same, the slowest hundredth", Beside: "fork and exec of `true` on the host", Unit: "ms",
		Ours: "ask", Theirs: "true beside ask", At: 0.99, Aims: []Aim{more(25)}},
	{ID: "escalate-client", What: "`lazaret-escalate true` as a program inside", Beside: "`lazaret-escalate --help`, which asks for nothing", Unit: "ms",
		Ours: "client", Theirs: "client help"},
	{ID: "git-status", What: "`git status`, 50,000 files", Beside: "podman and runsc, a plain bind", Unit: "ms",
		Ours: "status lazaret", Theirs: "status podman", Aims: []Aim{times(1.1)}},
	{ID: "write-native", What: "128 MiB into a persistent directory", Beside: "a podman volume", Unit: "MiB/s",
		Ours: "write native", Theirs: "write volume", Aims: []Aim{atLeast(0.9)}},
	{ID: "files-native", What: "1,000 files into a persistent directory", Beside: "a podman volume", Unit: "files/s",
		Ours: "files native", Theirs: "files volume", Aims: []Aim{atLeast(0.9)}},
	{ID: "write-fuse", What: "128 MiB, with fuse-overlayfs", Beside: "a podman volume", Unit: "MiB/s",
		Ours: "write fuse", Theirs: "write volume"},
	{ID: "files-fuse", What: "1,000 files, with fuse-overlayfs", Beside: "a podman volume", Unit: "files/s",
		Ours: "files fuse", Theirs: "files volume"},
	{ID: "memory-lazaret", What: "lazaret and its helper while a sandbox idles", Unit: "MiB",
		Ours: "memory lazaret", Aims: []Aim{atMost(40)}},
	{ID: "memory-sidecar", What: "the sidecar while a sandbox idles", Unit: "MiB",
		Ours: "memory sidecar", Aims: []Aim{atMost(12)}},
	{ID: "size-sidecar", What: "the sidecar's image", Unit: "MiB",
		Ours: "size sidecar", Aims: []Aim{atMost(3.5)}},
	{ID: "size-client", What: "the program `lazaret-escalate`", Unit: "MiB",
		Ours: "size client", Aims: []Aim{atMost(6)}},
	{ID: "build-cold", What: "`make build`, nothing cached", Unit: "ms", Ours: "build cold"},
	{ID: "build-warm", What: "`make build`, nothing changed", Unit: "ms", Ours: "build warm"},
}
