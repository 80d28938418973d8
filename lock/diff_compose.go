package lock

import (
	"slices"
	"strings"
)

// compose makes changes of atoms: one for each thing a person thinks of as one
// (a mount, an image), and one where several say the same. Every atom ends up
// in exactly one change.
func (d *diff) compose(atoms []atom) []Change {
	type unit struct {
		key   string
		atoms []atom
	}
	var units []*unit
	byKey := map[string]*unit{}
	for _, a := range atoms {
		key := d.unitKey(a)
		u := byKey[key]
		if u == nil {
			u = &unit{key: key}
			byKey[key] = u
			units = append(units, u)
		}
		u.atoms = append(u.atoms, a)
	}
	out := make([]Change, 0, len(units))
	for _, u := range units {
		out = append(out, d.change(u.atoms))
	}
	return out
}

// unitKey is the same for atoms that are told in one line.
func (d *diff) unitKey(a atom) string {
	key := keyPath(a.path)
	switch {
	case a.at("profiles", "*", "mounts", "*", "*"):
		return keyPath(a.path[:4]) + d.ownMark(a)
	case isPin(a):
		return keyPath(a.path[:3])
	case a.at("sidecar", "*", "*") && a.path[2] != "ref", a.at("escalate", "*", "*"):
		return a.path[0]
	case a.at("inputs", "*", "*"):
		return keyPath(a.path[:2])
	case onPlatform(a):
		// What both platforms say alike is told once.
		rest := slices.DeleteFunc(slices.Clone(a.path), func(k string) bool { return k == platformOf(a) })
		return keyPath(rest) + "\x00" + a.op() + d.sentence(a)
	case a.order:
		return key + "\x00order"
	case a.field.less && a.op() == "+":
		return key + "\x00" + d.ownMark(a)
	case d.own(a):
		return key + "\x00own"
	}
	return key + "\x00" + a.op() + d.sentence(a)
}

// isPin reports whether the atom is what an image reference resolved to, or
// the reference.
func isPin(a atom) bool {
	return a.at("profiles", "*", "image", "ref") || a.at("profiles", "*", "image", "index") ||
		a.at("profiles", "*", "image", "platforms", "*", "*") && slices.Contains([]string{"manifest", "config", "size"}, a.path[5])
}

// onPlatform reports whether the atom is of one platform among several.
func onPlatform(a atom) bool {
	return a.at("profiles", "*", "image", "platforms", "*", "*") || a.at("profiles", "*", "image", "platforms", "*", "*", "*") ||
		a.at("sidecar", "*", "*") || a.at("escalate", "*", "*")
}

// platformOf is the platform key in the path of such an atom.
func platformOf(a atom) string {
	if a.path[0] == "profiles" {
		return a.path[4]
	}
	return a.path[1]
}

func (d *diff) ownMark(a atom) string {
	if d.own(a) {
		return "own"
	}
	return ""
}

// change tells a unit.
func (d *diff) change(atoms []atom) Change {
	c := Change{Op: atoms[0].op(), Profile: atoms[0].profile(), Risk: "none", Own: true}
	for _, a := range atoms {
		if a.op() != c.Op {
			c.Op = "~"
		}
		if r := a.risk(); slices.Index(risks, r) < slices.Index(risks, c.Risk) {
			c.Risk = r
		}
		c.Own = c.Own && d.own(a)
		c.Alarm = c.Alarm || d.alarm(a)
		c.Parts = append(c.Parts, a.part())
	}
	c.Text = d.text(atoms)
	return c
}

// text is the sentence of a unit.
func (d *diff) text(atoms []atom) string {
	a := atoms[0]
	switch {
	case a.at("profiles", "*", "mounts", "*", "*"):
		was, is := d.old.Profiles[a.path[1]].Mounts[a.path[3]], d.new.Profiles[a.path[1]].Mounts[a.path[3]]
		switch {
		case was == Mount{}:
			return is.says(a.path[3])
		case is == Mount{}:
			return was.says(a.path[3])
		}
		return was.says(a.path[3]) + arrow + is.says(a.path[3])
	case isPin(a):
		return d.pinText(atoms)
	case a.at("sidecar", "*", "*") && a.path[2] != "ref":
		return "network sidecar: " + d.list(atoms)
	case a.at("inputs", "*", "*") && len(atoms) == 1:
		return d.inputPath(a.path[1]) + ": " + d.list(atoms)
	case a.at("escalate", "*", "*"), a.at("inputs", "*", "*"):
		return d.list(atoms)
	case onPlatform(a):
		// The same on several platforms; on all of them it need not be said.
		var on []string
		for _, a := range atoms {
			on = append(on, platformOf(a))
		}
		if len(on) == max(len(d.old.Inputs.Platforms), len(d.new.Inputs.Platforms)) {
			return d.sentence(a)
		}
		return d.sentence(a) + " (" + strings.Join(on, ", ") + ")"
	case len(atoms) > 1: // elements of one list
		values := make([]string, len(atoms))
		for i, a := range atoms {
			values[i] = a.value()
		}
		return a.say(strings.Join(values, ", "))
	}
	return d.sentence(a)
}

// pinText tells what became of an image: the reference, then what it resolved
// to.
func (d *diff) pinText(atoms []atom) string {
	name := atoms[0].path[1]
	was, is := d.old.Profiles[name].Image.Ref, d.new.Profiles[name].Image.Ref
	text := "image "
	switch {
	case was == "" || was == is:
		text += word(is)
	case is == "":
		text += word(was)
	default:
		text += word(was) + arrow + word(is)
	}
	rest := slices.DeleteFunc(slices.Clone(atoms), func(a atom) bool { return a.path[len(a.path)-1] == "ref" })
	if len(rest) == 0 {
		return text
	}
	return text + ": " + d.list(rest)
}

// list tells atoms one after the other, and of which platform they are.
func (d *diff) list(atoms []atom) string {
	var b strings.Builder
	on := ""
	for i, a := range atoms {
		if i > 0 {
			b.WriteString(", ")
		}
		if onPlatform(a) && platformOf(a) != on {
			on = platformOf(a)
			b.WriteString(on + " ")
		}
		b.WriteString(d.sentence(a))
	}
	return b.String()
}

// inputPath is the path of a layer whose content alone changed.
func (d *diff) inputPath(key string) string {
	in := map[string]*Input{"user": d.new.Inputs.User, "workspace": d.new.Inputs.Workspace, "override": d.new.Inputs.Override}[key]
	if in == nil {
		return key
	}
	return word(in.Path)
}
