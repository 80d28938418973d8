package config

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// readProfile reads one [profiles.NAME] table.
func readProfile(t table, s sandbox) Profile {
	p := Profile{
		Image:       one(t, "image", "", checked(checkImage)),
		AllowEgress: canonical(list(t, "allow_egress", ParseEndpoint), Endpoint.Compare),
		AllowHosts:  canonical(list(t, "allow_hosts", ParseHost), Host.Compare),
		Env:         readEnv(t.sub("env")),
		Command:     readCommand(t),
		Setup:       list(t, "setup", checked(checkSetup)),
		Ports:       readPorts(t),
		Git:         oneOf(t, "git", gitModes),
		Branch:      one(t, "branch", "auto", checked(checkBranch)),
		Tree:        oneOf(t, "tree", trees),
		State:       oneOf(t, "state", states),
		Memory:      one(t, "memory", "", parseMemory),
		CPUs:        readCPUs(t),
	}
	mounted := map[string]string{} // by in-container path: what is there
	p.PersistentDirs = readPersistentDirs(t, mounted)
	p.Volumes = readVolumes(t, s, mounted)
	if n := t.get("pids"); n != nil {
		if p.PIDs = n.value.(int64); p.PIDs < 1 {
			t.p.at(n.pos, child(t.key, "pids"), errorf("write a number above 0, or leave it out", "%d is not a number of processes", p.PIDs))
		}
	}
	if n := t.get("tree"); n != nil && p.Git == "none" && p.Tree == "worktree" {
		t.p.at(n.pos, child(t.key, "tree"), errorf(`write tree = "shared", or another git`, `a working tree of its own needs git, and git is "none"`))
	}
	return p
}

func checkSetup(s string) error {
	if strings.TrimSpace(s) == "" {
		return errorf("remove it", "is empty")
	}
	return nil
}

func readEnv(t table) map[string]string {
	env := map[string]string{}
	values, _ := t.n.value.(map[string]*node)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		n := values[name]
		if err := checkEnvName(name); err != nil {
			t.p.at(n.pos, child(t.key, name), err)
			continue
		}
		if n.bad {
			continue
		}
		value := n.value.(string)
		if err := checkEnvValue(name, value); err != nil {
			t.p.at(n.pos, child(t.key, name), err)
			continue
		}
		env[name] = value
	}
	return env
}

func readCommand(t table) []string {
	n := t.get("command")
	if n == nil {
		return nil
	}
	if _, ok := n.value.(string); ok {
		return one(t, "command", nil, ParseCommand)
	}
	argv := list(t, "command", func(s string) (string, error) { return s, nil })
	if len(argv) > 0 && argv[0] == "" {
		t.p.at(n.pos, child(t.key, "command"), errorf("", "names no program"))
	}
	return argv
}

func readPorts(t table) []Port {
	seen := map[uint16]bool{}
	ports := list(t, "ports", func(s string) (Port, error) {
		p, err := ParsePort(s)
		if err == nil && seen[p.Host] {
			err = errorf("choose another host port", "port %d of the host is published twice", p.Host)
		}
		seen[p.Host] = true
		return p, err
	})
	return canonical(ports, Port.Compare)
}

func readCPUs(t table) string {
	n := t.get("cpus")
	if n == nil {
		return ""
	}
	var text string
	switch v := n.value.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	}
	cpus, err := parseCPUs(text)
	if err != nil {
		t.p.at(n.pos, child(t.key, "cpus"), err)
	}
	return cpus
}

// readPersistentDirs reads persistent_dirs and notes them in mounted. What a
// directory has kept lies on the host under its path with / written as _, so
// that /a/b and /a_b cannot both persist.
func readPersistentDirs(t table, mounted map[string]string) []string {
	const longest = 255 - len("_changes") // bytes of a file's name
	names := map[string]string{}
	dirs := list(t, "persistent_dirs", func(s string) (string, error) {
		dir, err := checkPersistent(s)
		if err != nil {
			return "", err
		}
		name := strings.ReplaceAll(strings.TrimPrefix(dir, "/"), "/", "_")
		other, taken := names[name]
		switch {
		case taken && other == dir:
			return "", errorf("remove it", "%s is listed twice", quote(dir))
		case taken:
			return "", errorf("choose another path", "%s and %s would be kept under one name, %s", quote(other), quote(dir), quote(name))
		case len(name) > longest:
			return "", errorf("choose a shorter path", "%s is too long to be kept under one name", quote(dir))
		}
		names[name] = dir
		mounted[dir] = "a persistent directory"
		return dir, nil
	})
	slices.Sort(dirs)
	return dirs
}

func readVolumes(t table, s sandbox, mounted map[string]string) []Volume {
	n := t.get("volumes")
	if n == nil {
		return nil
	}
	var out []Volume
	for i, e := range n.value.([]*node) {
		v := table{t.p, e, element(child(t.key, "volumes"), i)}
		own := false
		host := one(v, "host", "", func(written string) (clean string, err error) {
			own, err = s.checkSource(written)
			return path.Clean(written), err
		})
		target := one(v, "container", "", func(target string) (string, error) {
			if err := checkVolumeTarget(target); err != nil {
				return "", err
			}
			if what := mounted[target]; what != "" {
				return "", errorf("choose another path", "%s is %s already", quote(target), what)
			}
			mounted[target] = fmt.Sprintf("the target of volumes[%d]", i)
			return target, nil
		})
		volume := Volume{Host: host, Container: target, ReadOnly: !own}
		if n := v.get("mode"); n != nil {
			ro, rw, relabel, err := parseMode(n.value.(string))
			if err != nil {
				t.p.at(n.pos, child(v.key, "mode"), err)
			}
			volume.Relabel = relabel
			if ro || rw {
				volume.ReadOnly = ro
			}
		}
		out = append(out, volume)
	}
	return out
}
