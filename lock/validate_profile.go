package lock

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"lazaret/lock/config"
)

// validate checks one profile; key is its own, for messages.
func (p Profile) validate(key string, platforms []string) error {
	if len(p.Runtime) == 0 {
		return wrong(key+".runtime", "is empty")
	}
	if !strictlySorted(p.Capabilities, strings.Compare) {
		return wrong(key+".capabilities", "is not sorted")
	}
	if err := oneOf(key+".state", p.State, "profile", "workspace"); err != nil {
		return err
	}
	if err := canonicalList(key+".ports", p.Ports, config.ParsePort, config.Port.Compare); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		if !envName.MatchString(name) {
			return wrong(key+"."+keyPath([]string{"env", name}), "is not the name of a variable")
		}
	}
	for _, check := range []func(string) error{
		p.Limits.validate,
		func(k string) error { return p.Image.validate(k, platforms) },
		p.Git.validate,
		p.Network.validate,
		p.Escalation.validate,
		p.validateMounts,
	} {
		if err := check(key); err != nil {
			return err
		}
	}
	return nil
}

func (l *Limits) validate(key string) error {
	switch {
	case l == nil:
		return nil
	case *l == Limits{}:
		return wrong(key+".limits", "is empty")
	case l.Memory != "" && !sizeText.MatchString(l.Memory):
		return wrong(key+".limits.memory", "is not a size")
	case l.CPUs != "" && !cpusText.MatchString(l.CPUs):
		return wrong(key+".limits.cpus", "is not a number")
	case l.PIDs < 0:
		return wrong(key+".limits.pids", "is negative")
	}
	return nil
}

var cpusText = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]+)?$`)

func (i Image) validate(key string, platforms []string) error {
	key += ".image"
	if i.Ref == "" {
		return wrong(key+".ref", "is empty")
	}
	if i.Index != "" {
		if err := digests(key, "index", i.Index); err != nil {
			return err
		}
	}
	if err := platformKeys(key+".platforms", i.Platforms, platforms); err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(i.Platforms)) {
		p := i.Platforms[k]
		if err := digests(key+".platforms."+k, "manifest", p.Manifest, "config", p.Config); err != nil {
			return err
		}
		if p.Size < 0 {
			return wrong(key+".platforms."+k+".size", "is negative")
		}
	}
	return nil
}

func (g Git) validate(key string) error {
	if err := oneOf(key+".git.mode", g.Mode, "quarantine", "writeback", "none"); err != nil {
		return err
	}
	return oneOf(key+".git.tree", g.Tree, "shared", "worktree")
}

func (e Escalation) validate(key string) error {
	key += ".escalation"
	if !e.Enabled {
		if e.SocketDir != "" || e.Timeout != "" || e.MaxOutput != 0 || e.AutoApprove != nil || e.AutoApproveExact != nil {
			return wrong(key, "is off and says more than that")
		}
		return nil
	}
	if err := checkHostPath(key+".socket_dir", e.SocketDir, true); err != nil {
		return err
	}
	if d, err := time.ParseDuration(e.Timeout); err != nil || d <= 0 || durationText(d) != e.Timeout {
		return wrong(key+".timeout", "is not a duration")
	}
	if e.MaxOutput <= 0 {
		return wrong(key+".max_output", "is not a number of bytes")
	}
	for _, list := range []struct {
		key     string
		vectors [][]string
	}{{"auto_approve", e.AutoApprove}, {"auto_approve_exact", e.AutoApproveExact}} {
		for _, v := range list.vectors {
			if len(v) == 0 || v[0] == "" {
				return wrong(key+"."+list.key, "names no program")
			}
		}
		if !strictlySorted(list.vectors, slices.Compare) {
			return wrong(key+"."+list.key, "is not sorted")
		}
	}
	return nil
}

// mountFields says which fields each kind of mount has besides Kind.
func mountFields(kind string) (from, name, mode, size, known bool) {
	switch kind {
	case KindBind:
		return true, false, true, false, true
	case KindOverlay:
		return false, true, false, false, true
	case KindTmpfs, KindGit:
		return false, false, false, true, true
	case KindGitShadow, KindEscalate, KindEscalateSocket, KindCerts:
		return false, false, true, false, true
	}
	return
}

func (p Profile) validateMounts(key string) error {
	names := map[string]string{}
	for _, target := range slices.Sorted(maps.Keys(p.Mounts)) {
		at := key + "." + keyPath([]string{"mounts", target})
		m := p.Mounts[target]
		if !strings.HasPrefix(target, "/") || target == "/" || !cleanPath(target) {
			return wrong(at, "is not an absolute path")
		}
		from, name, mode, size, known := mountFields(m.Kind)
		switch {
		case !known:
			return wrong(at+".kind", "is not a kind of mount")
		case from != (m.From != ""), name != (m.Name != ""), mode != (m.Mode != ""), size != (m.Size != ""):
			return wrong(at, "has too few or too many fields for its kind")
		case mode && !slices.Contains([]string{"ro", "rw", "ro,z", "rw,z", "ro,Z", "rw,Z"}, m.Mode):
			return wrong(at+".mode", "is not a mode")
		case size && !sizeText.MatchString(m.Size):
			return wrong(at+".size", "is not a size")
		case name && m.Name != overlayName(target):
			return wrong(at+".name", "is not the name that belongs to this path")
		}
		if other, taken := names[m.Name]; name && taken {
			return wrong(at+".name", "is that of %s too", other)
		}
		names[m.Name] = target
		if from {
			if err := checkHostPath(at+".from", m.From, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkHostPath checks the form of a path on the host: absolute or below home,
// or below a token where tokens may stand.
func checkHostPath(key, p string, tokens bool) error {
	plain := p
	if tokens {
		for _, t := range []string{"{profile_dir}", "{workspace_dir}", "{runtime_dir}"} {
			if rest, ok := strings.CutPrefix(plain, t); ok {
				plain = "/token" + rest
				break
			}
		}
		plain = strings.ReplaceAll(plain, "{profile_name}", "name")
	}
	if rest, ok := strings.CutPrefix(plain, "~"); ok && (rest == "" || rest[0] == '/') {
		plain = "/home" + rest
	}
	switch {
	case !strings.HasPrefix(plain, "/"):
		return wrong(key, "is not an absolute path, nor one below ~ or a known {token}")
	case !cleanPath(plain):
		return wrong(key, "is not a plain path: it holds .., . or an empty element")
	case strings.ContainsAny(plain, "{}"):
		return wrong(key, "holds an unknown {token}")
	}
	return nil
}
