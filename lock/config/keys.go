package config

// The words that keys with few values take, the default first.
var (
	overlayDrivers = []string{"auto", "native", "fuse-overlayfs"}
	denials        = []string{"reject", "blackhole"}
	gitModes       = []string{"quarantine", "writeback", "none"}
	trees          = []string{"shared", "worktree"}
	states         = []string{"profile", "workspace"}
)

// of tells whether v is a T; its instances are spec.is.
func of[T any](v any) bool { _, ok := v.(T); return ok }

func text(about string) *spec {
	return &spec{want: "a string", is: of[string], about: about}
}

func oneWordOf(words []string, about string) *spec {
	s := text(about)
	s.words, s.fallback = words, `"`+words[0]+`"`
	return s
}

func texts(about string) *spec {
	return &spec{want: "an array of strings", is: of[[]*node], each: text(""), about: about, fallback: "[]"}
}

// multiline lets the strings have several lines.
func multiline(s *spec) *spec {
	s.allow = lines
	if s.each != nil {
		s.each.allow = lines
	}
	return s
}

func required(s *spec, example string) *spec {
	s.required, s.example, s.fallback = true, example, ""
	return s
}

// key is a key of a table, in the order in which people read them.
type key struct {
	name string
	spec *spec
}

func tableOf(about string, keys ...key) *spec {
	s := &spec{want: "a table", is: of[map[string]*node], keys: map[string]*spec{}, about: about}
	for _, k := range keys {
		s.keys[k.name] = k.spec
		s.order = append(s.order, k.name)
	}
	return s
}

// schema is everything a config file may say.
func schema() *spec {
	return tableOf("What sandboxes of a project, or of a person, may touch.",
		key{"storage", storageKeys()},
		key{"network", networkKeys()},
		key{"escalation", escalationKeys()},
		key{"trust", tableOf("What you vouch for. Only your own ~/.config/lazaret/config.toml may say this.",
			key{"helpers", texts("Digests of another lazaret's sidecar image and escalation client, as its \"lazaret version\" prints them, that run here without a question when a lock pins them.")},
		)},
		key{"profiles", &spec{
			want: "a table", is: of[map[string]*node], each: profileKeys(), pattern: profileNames.String(),
			about: "The sandboxes there are, by name: 2 to 32 of a to z, 0 to 9, _ and -, the first a letter or digit.",
		}},
	)
}

func storageKeys() *spec {
	return tableOf("Where the persistent directories of all profiles are kept.",
		key{"data_root", required(text(`An absolute path, or one that starts with ~/. It cannot lie in a workspace or in a volume.`),
			`data_root = "~/.local/share/lazaret"`)},
		key{"overlay", oneWordOf(overlayDrivers, `The overlay file system: the kernel's own where it can be used without privileges, else fuse-overlayfs ("auto"), or always one of them.`)},
	)
}

func networkKeys() *spec {
	deny := required(texts("Address ranges (CIDR) that no profile reaches, whatever a name resolves to, unless an allowed range is narrower. "+
		"The lists of all layers that a lock is made of add up, so that none unblocks what another blocked. Loopback, link-local, multicast and this machine's own addresses are denied in any case."),
		`default_deny = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]`)
	deny.union = true
	sidecar := text(`A fully qualified registry reference where the network sidecar and the escalation client can be had ("lazaret sidecar push" puts them there), written to the lock, so that other versions of lazaret can launch it.`)
	sidecar.fallback = `""`
	return tableOf("What all profiles may reach, and may not.",
		key{"default_allow", required(texts(`Address ranges (CIDR) that every profile may reach, each with a port where wanted: "10.0.0.5/32:5432", "[2001:db8::/32]:443/tcp". "0.0.0.0/0" is the Internet, and every name resolves then.`),
			`default_allow = []`)},
		key{"default_deny", deny},
		key{"allow_hosts", texts(hostsAbout + " These hold for every profile.")},
		key{"on_deny", oneWordOf(denials, `How a denied connection fails: at once ("reject"), or by never being answered ("blackhole").`)},
		key{"sidecar", sidecar},
	)
}

const hostsAbout = `DNS names that may be reached, exact or "*.suffix" for all names below one, with a port where it is not 443: "pypi.org", "*.example.org:8443", "ntp.example.org:123/udp". A private address is opened by no name, but by an allowed range.`

func escalationKeys() *spec {
	timeout := text(`How long a request waits for an answer, from "1s" to "24h".`)
	timeout.fallback = `"5m"`
	return tableOf("Whether an agent may ask for a command to be run on this machine, outside the sandbox.",
		key{"enabled", required(&spec{want: "true or false", is: of[bool], about: "Whether it may ask. Each request is shown, and you decide."}, "enabled = false")},
		key{"socket_dir", required(text(`Where the sockets for that are made: a directory that no sandbox can write. Takes {runtime_dir} and {profile_name}.`),
			`socket_dir = "{runtime_dir}/lazaret"`)},
		key{"auto_approve", texts("Commands that run without asking, also with further arguments in which there is no /. Programs that can run other programs (shells, git, make, python …) are refused.")},
		key{"auto_approve_exact", texts("Commands that run without asking, exactly as they stand here.")},
		key{"timeout", timeout},
		key{"max_output", &spec{want: "an integer or a string", is: func(v any) bool { return of[int64](v) || of[string](v) },
			about: `How much of a command's output the agent gets, of each stream: bytes, or a size such as "64k", from 1 byte to "64m".`, fallback: `"1m"`}},
	)
}

func profileKeys() *spec {
	command := multiline(&spec{want: "a string or an array of strings", is: func(v any) bool { return of[string](v) || of[[]*node](v) }, each: text(""),
		about: `What starts when nothing is given after "--": words, or one string that is split into words (there is no shell). Without it, the image's own.`, fallback: "[]"})
	env := &spec{want: "a table", is: of[map[string]*node], each: multiline(text("")), pattern: envName.String(),
		about: `Environment variables: a text, or "env:NAME" to take the value of your own variable NAME at launch, "env:NAME?" where that may be unset. Values so taken are never written to the lock.`}
	image := required(text(`A fully qualified reference ("docker.io/library/debian:trixie"), "oci:DIR" for an OCI layout, or "builtin:shell". The lock pins its digest.`),
		`image = "docker.io/library/debian:trixie"`)
	branch := text(`The branch the agent starts on: "auto" is lazaret/agent-NAME, made from your HEAD; "" is your own branch; or a name.`)
	branch.fallback = `"auto"`
	memory := text(`The most memory, such as "4g". No rootless gVisor is held to it today, and launch says so.`)
	return tableOf("A sandbox.",
		key{"image", image},
		key{"command", command},
		key{"setup", multiline(texts("Shell commands that are run once inside, before the first session, and again when they or the image change."))},
		key{"persistent_dirs", texts("Directories of the image whose changes are kept between sessions.")},
		key{"volumes", &spec{want: "an array of tables", is: of[[]*node], fallback: "[]", each: volumeKeys(), about: "Files and directories of the host that are mounted."}},
		key{"env", env},
		key{"allow_egress", texts(`Address ranges (CIDR) that the profile may reach besides default_allow, each with a port where wanted.`)},
		key{"allow_hosts", texts(hostsAbout)},
		key{"ports", texts(`Ports of the sandbox that the host's loopback address answers for, TCP: "1455", or "8080:80" for port 8080 of the host and 80 of the sandbox.`)},
		key{"git", oneWordOf(gitModes, `What the agent's git writes to: a store of its own, of which only its branch reaches your repository ("quarantine"), your repository's objects and refs themselves ("writeback"), or there is no repository ("none").`)},
		key{"branch", branch},
		key{"tree", oneWordOf(trees, `The files the agent works on: yours ("shared"), or a working tree of its own ("worktree").`)},
		key{"state", oneWordOf(states, `Whether persistent directories are shared by all workspaces ("profile") or each has its own ("workspace").`)},
		key{"memory", memory},
		key{"cpus", &spec{want: "a string or a number", is: func(v any) bool { return of[string](v) || of[int64](v) || of[float64](v) },
			about: `The most processors, such as "1.5". No rootless gVisor is held to it today, and launch says so.`}},
		key{"pids", &spec{want: "an integer", is: of[int64], about: "The most processes. It is held by a bound on what all sandboxes of yours have together when this one starts, so it is no exact number. Without it, some thousand."}},
	)
}

func volumeKeys() *spec {
	return tableOf("A mount.",
		key{"host", required(text("What is mounted: a path on the host, absolute or starting with ~/ or a token: {profile_dir}, {workspace_dir}, {runtime_dir}; {profile_name} may stand in it. A directory below {profile_dir} is made when it is missing."),
			`host = "{profile_dir}/cache"`)},
		key{"container", required(text("Where it is mounted: an absolute path in the sandbox."), `container = "/root/.cache"`)},
		key{"mode", text(`A comma list of "ro" or "rw", and "z" or "Z" for SELinux. Without either, read-only, but read-write below {profile_dir}.`)},
	)
}
