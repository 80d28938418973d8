package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Value is one key of a Config as TOML writes it, with where it came from.
type Value struct {
	Table string   // "network", "profiles.claude", "profiles.claude.env"
	Name  string   // the key in it, quoted where TOML wants that
	Text  string   // the value; "" where Items says it
	Items []Item   // of an array, not nil
	From  Position // File is "" for a default
}

// Item is an element of an array. From is set for those of a union, which each
// came from a layer of its own.
type Item struct {
	Text string
	From Position
}

// Values lists all that a Config says, in the order of the reference: every
// key but those that stand for "nothing", defaults too. Written out as TOML it
// is a config that means the same.
func (c *Config) Values() []Value {
	w := values{c: c}
	w.table = "storage"
	w.add("data_root", tomlText(c.Storage.DataRoot))
	w.add("overlay", tomlText(c.Storage.Overlay))
	w.table = "network"
	w.list("default_allow", texted(c.Network.DefaultAllow))
	w.list("default_deny", texted(c.Network.DefaultDeny))
	w.list("allow_hosts", texted(c.Network.AllowHosts))
	w.add("on_deny", tomlText(c.Network.OnDeny))
	w.add("sidecar", tomlText(c.Network.Sidecar))
	e := c.Escalation
	w.table = "escalation"
	w.add("enabled", strconv.FormatBool(e.Enabled))
	w.add("socket_dir", tomlText(e.SocketDir))
	w.list("auto_approve", commands(e.AutoApprove))
	w.list("auto_approve_exact", commands(e.AutoApproveExact))
	w.add("timeout", tomlText(e.Timeout.String()))
	w.add("max_output", strconv.FormatInt(e.MaxOutput, 10))
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		w.profile(child("profiles", name), c.Profiles[name])
	}
	return w.out
}

// values collects what Values gives.
type values struct {
	c     *Config
	table string
	out   []Value
}

func (w *values) add(name, text string) {
	quoted := child("", name)
	w.out = append(w.out, Value{Table: w.table, Name: quoted, Text: text, From: w.c.Origin[child(w.table, name)]})
}

// list adds an array.
func (w *values) list(name string, texts []string) {
	w.add(name, "")
	v := &w.out[len(w.out)-1]
	v.Items = []Item{}
	for _, t := range texts {
		v.Items = append(v.Items, Item{tomlText(t), w.c.Origin[unionKey(w.table+"."+name, t)]})
	}
}

// unionKey is the key in Origin of an element of a union, by its canonical text.
func unionKey(key, element string) string { return key + "[" + quote(element) + "]" }

func (w *values) profile(table string, p Profile) {
	w.table = table
	w.add("image", tomlText(p.Image))
	w.list("command", p.Command)
	w.list("setup", p.Setup)
	w.list("persistent_dirs", p.PersistentDirs)
	w.add("volumes", "")
	v := &w.out[len(w.out)-1]
	v.Items = []Item{}
	for _, m := range p.Volumes {
		v.Items = append(v.Items, Item{Text: m.toml()})
	}
	w.list("allow_egress", texted(p.AllowEgress))
	w.list("allow_hosts", texted(p.AllowHosts))
	w.list("ports", texted(p.Ports))
	w.add("git", tomlText(p.Git))
	w.add("branch", tomlText(p.Branch))
	w.add("tree", tomlText(p.Tree))
	w.add("state", tomlText(p.State))
	if p.Memory != "" {
		w.add("memory", tomlText(p.Memory))
	}
	if p.CPUs != "" {
		w.add("cpus", tomlText(p.CPUs))
	}
	if p.PIDs != 0 {
		w.add("pids", strconv.FormatInt(p.PIDs, 10))
	}
	w.table = table + ".env"
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		w.add(name, tomlText(p.Env[name]))
	}
}

// toml writes a volume as an inline table, with its mode decided.
func (v Volume) toml() string {
	mode := "rw"
	if v.ReadOnly {
		mode = "ro"
	}
	if v.Relabel != "" {
		mode += "," + v.Relabel
	}
	return fmt.Sprintf("{ host = %s, container = %s, mode = %s }", tomlText(v.Host), tomlText(v.Container), tomlText(mode))
}

func texted[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return out
}

// tomlText gives s as a TOML string on one line, showing nothing hidden.
func tomlText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case hidden(r): // the schema lets none through
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// commands writes argument vectors as ParseCommand reads them. No word holds a
// backslash or another metacharacter, so quotes are all there is to write.
func commands(vectors [][]string) []string {
	out := make([]string, len(vectors))
	for i, argv := range vectors {
		words := make([]string, len(argv))
		for j, w := range argv {
			words[j] = commandWord(w)
		}
		out[i] = strings.Join(words, " ")
	}
	return out
}

func commandWord(w string) string {
	switch {
	case w != "" && !strings.ContainsAny(w, ` '"`):
		return w
	case !strings.Contains(w, "'"):
		return "'" + w + "'"
	}
	return `"` + strings.ReplaceAll(w, `"`, `"'"'"`) + `"`
}
