package config

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Defaults of what a config need not say.
const (
	DefaultTimeout   = 5 * time.Minute
	DefaultMaxOutput = 1 << 20 // bytes
)

// Load reads the layers, lowest precedence first, and gives the merged
// configuration: tables merge by key, scalars and arrays are replaced by the
// higher layer, default_deny adds up, so that a repository cannot unblock what
// the user has blocked. It reports everything that is wrong at once: the error
// is an *Error, or Errors ordered by layer and line.
func Load(layers []Layer) (*Config, error) {
	if len(layers) == 0 {
		return nil, errorf("write a lazaret.toml", "no configuration")
	}
	p := &problems{}
	s := schema()
	merged, broken := (*node)(nil), false
	for _, l := range layers {
		p.files = append(p.files, l.Name)
		n := parse(l, p)
		if n == nil {
			broken = true
			continue
		}
		checkLayer(n, l, p)
		if merged == nil {
			merged = n
		} else {
			merged = merge(merged, n, s)
		}
	}
	if broken { // what is missing may be in the text that could not be read
		return nil, p.err()
	}
	missing(merged, s, "", p)

	root := table{p, merged, ""}
	c := &Config{
		Storage:    readStorage(root.sub("storage")),
		Network:    readNetwork(root.sub("network")),
		Escalation: readEscalation(root.sub("escalation")),
		Profiles:   map[string]Profile{},
		Origin:     map[string]Position{},
	}
	readTrust(root.sub("trust")) // what is wrong with it
	profiles := root.sub("profiles")
	for _, name := range slices.Sorted(maps.Keys(profiles.n.value.(map[string]*node))) {
		t := profiles.sub(name)
		if err := CheckProfileName(name); err != nil {
			p.at(profiles.n.value.(map[string]*node)[name].pos, t.key, err)
		}
		c.Profiles[name] = readProfile(t, sandbox{name, c.Storage.DataRoot, c.Escalation.SocketDir})
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	merged.origins("", c.Origin)
	deny := root.sub("network").get("default_deny")
	for _, e := range deny.value.([]*node) {
		p, err := parseDeny(e.value.(string))
		key := unionKey("network.default_deny", p.String())
		if _, lower := c.Origin[key]; err == nil && !lower {
			c.Origin[key] = e.pos
		}
	}
	return c, nil
}

// CheckProfileName refuses what cannot name a profile.
func CheckProfileName(name string) error {
	if !profileNames.MatchString(name) {
		return errorf("use 2 to 32 of a to z, 0 to 9, _ and -, the first a letter or digit", "is not a profile's name")
	}
	return nil
}

// origins notes the positions of all tables and values below n.
func (n *node) origins(key string, into map[string]Position) {
	if key != "" {
		into[key] = n.pos
	}
	if t, ok := n.value.(map[string]*node); ok {
		for k, e := range t {
			e.origins(child(key, k), into)
		}
	}
}

func readStorage(t table) Storage {
	return Storage{
		DataRoot: one(t, "data_root", "", parseDataRoot),
		Overlay:  oneOf(t, "overlay", overlayDrivers),
	}
}

// parseDataRoot takes an absolute path or ~/…: data_root is the same for all
// profiles and workspaces, and outlives a login.
func parseDataRoot(s string) (string, error) {
	h, err := parseHostPath(s)
	clean := path.Clean(s)
	switch {
	case err != nil:
		return "", err
	case h.head == workspaceDir:
		return "", errorf("write an absolute path, or one that starts with ~/", "lies in the workspace, which the sandbox can write")
	case strings.Contains(s, "{"):
		return "", errorf("write an absolute path, or one that starts with ~/", "%s: takes no tokens", quote(s))
	case clean == "/" || clean == "~":
		return "", errorf("write a directory of its own, such as ~/.local/share/lazaret", "%s holds more than lazaret's state", quote(s))
	}
	return clean, nil
}

func readNetwork(t table) Network {
	return Network{
		DefaultAllow: canonical(list(t, "default_allow", ParseEndpoint), Endpoint.Compare),
		DefaultDeny:  canonical(list(t, "default_deny", parseDeny), comparePrefix),
		AllowHosts:   canonical(list(t, "allow_hosts", ParseHost), Host.Compare),
		OnDeny:       oneOf(t, "on_deny", denials),
		Sidecar: one(t, "sidecar", "", checked(func(s string) error {
			if s == "" {
				return nil
			}
			return checkReference(s)
		})),
	}
}

func readEscalation(t table) Escalation {
	e := Escalation{
		SocketDir:        one(t, "socket_dir", "", parseSocketDir),
		AutoApprove:      canonicalCommands(list(t, "auto_approve", parseApproved)),
		AutoApproveExact: canonicalCommands(list(t, "auto_approve_exact", parseApproved)),
		Timeout:          one(t, "timeout", DefaultTimeout, parseTimeout),
		MaxOutput:        DefaultMaxOutput,
	}
	if n := t.get("enabled"); n != nil {
		e.Enabled = n.value.(bool)
	}
	if n := t.get("max_output"); n != nil {
		size, err := int64(0), error(nil)
		switch v := n.value.(type) {
		case int64:
			size = v
		case string:
			size, err = parseSize(v)
		}
		if err == nil {
			err = checkOutput(size)
		}
		if err != nil {
			t.p.at(n.pos, child(t.key, "max_output"), err)
		}
		e.MaxOutput = size
	}
	return e
}

// parseSocketDir takes a host path that no sandbox can write: whoever can put
// a socket in its place answers for the person.
func parseSocketDir(s string) (string, error) {
	h, err := parseHostPath(s)
	clean := path.Clean(s)
	const want = "write {runtime_dir}/lazaret"
	switch {
	case err != nil:
		return "", err
	case h.head == workspaceDir:
		return "", errorf(want, "lies in the workspace, which the sandbox can write")
	case h.head == profileDir:
		return "", errorf(want, "lies in {profile_dir}, parts of which the sandbox can write")
	case clean == "/" || clean == "~" || clean == runtimeDir:
		return "", errorf(want, "%s holds more than lazaret's sockets", quote(s))
	}
	return clean, nil
}

func parseApproved(s string) ([]string, error) {
	argv, err := ParseCommand(s)
	if err == nil {
		err = approvable(argv)
	}
	return argv, err
}

func canonicalCommands(list [][]string) [][]string {
	slices.SortFunc(list, slices.Compare)
	return slices.CompactFunc(list, slices.Equal)
}
