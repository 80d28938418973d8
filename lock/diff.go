package lock

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Change is one thing that a lock grants, no longer grants, or grants
// differently, in plain words.
type Change struct {
	Op      string `json:"op"`                // "+", "-" or "~"
	Profile string `json:"profile,omitempty"` // "" for what all profiles share
	Risk    string `json:"risk"`              // host, net, image or none: the riskiest of its parts
	Alarm   bool   `json:"alarm,omitempty"`   // grants something of this machine beyond what a sandbox usually has
	Own     bool   `json:"own,omitempty"`     // what every sandbox has whatever the config says: launch accepts nothing else
	Text    string `json:"text"`              // one line; what is not visible is escaped, digests are shortened
	Parts   []Part `json:"parts"`             // what it speaks of, never empty
}

// Part is one value of a lock that differs. Values are as the lock writes
// them, whole; nil is a value that is not there.
type Part struct {
	Key string  `json:"key"` // dotted
	Old *string `json:"old,omitempty"`
	New *string `json:"new,omitempty"`
}

// Grants says everything that f grants.
func Grants(f *File) []Change { return Diff(nil, f) }

// Diff says everything in which new differs from old, grouped by profile,
// riskiest first: it is empty only where both have the same canonical text. A
// nil File is one that says nothing.
func Diff(old, new *File) []Change {
	d := &diff{old: orEmpty(old), new: orEmpty(new)}
	return sortChanges(d.compose(d.atoms()))
}

func orEmpty(f *File) *File {
	if f == nil {
		return &File{}
	}
	return f
}

type diff struct{ old, new *File }

// atom is one value that differs, or one element of a list.
type atom struct {
	path     []string
	field    field
	old, new reflect.Value // not valid where there is none
	order    bool          // the list's elements are the same, in another order
}

func (a atom) op() string {
	switch {
	case !a.old.IsValid():
		return "+"
	case !a.new.IsValid():
		return "-"
	}
	return "~"
}

// profile is the name of the profile that the atom belongs to, or "".
func (a atom) profile() string {
	if len(a.path) > 1 && a.path[0] == "profiles" {
		return a.path[1]
	}
	return ""
}

// at reports whether the atom's path is keys; "*" stands for any one key. Keys
// within a profile begin with "profiles", "*".
func (a atom) at(keys ...string) bool {
	if len(keys) != len(a.path) {
		return false
	}
	for i, k := range keys {
		if k != "*" && k != a.path[i] {
			return false
		}
	}
	return true
}

// atoms lists the values that differ, in the order of the new file; what only
// the old one has comes at its place there.
func (d *diff) atoms() []atom {
	old, new := leavesOf(d.old), leavesOf(d.new)
	var out []atom
	for _, key := range unionInOrder(old, new) {
		a, b := old.at[key], new.at[key]
		any := append(slices.Clip(a), b...)[0]
		if any.elem {
			out = append(out, elements(any, a, b)...)
			continue
		}
		at := atom{path: any.path, field: any.field}
		if len(a) > 0 {
			at.old = a[0].value
		}
		if len(b) > 0 {
			at.new = b[0].value
		}
		if len(a) == 0 || len(b) == 0 || show(at.old) != show(at.new) {
			out = append(out, at)
		}
	}
	return out
}

// leafTable is the values of a file by dotted key, and the keys in order.
type leafTable struct {
	keys []string
	at   map[string][]leaf
}

func leavesOf(f *File) leafTable {
	l := leafTable{at: map[string][]leaf{}}
	if f.Version == 0 && len(f.Profiles) == 0 {
		return l // a file that says nothing, not one that says 0
	}
	walk(nil, reflect.ValueOf(f).Elem(), func(v leaf) {
		key := keyPath(v.path)
		if _, ok := l.at[key]; !ok {
			l.keys = append(l.keys, key)
		}
		l.at[key] = append(l.at[key], v)
	})
	return l
}

// unionInOrder merges the keys of both; a key that only the old file has
// follows the one it followed there.
func unionInOrder(old, new leafTable) []string {
	out := slices.Clone(new.keys)
	after := map[string][]string{} // by the new key they follow, "" for the top
	last := ""
	for _, k := range old.keys {
		if _, ok := new.at[k]; ok {
			last = k
		} else {
			after[last] = append(after[last], k)
		}
	}
	if len(after) == 0 {
		return out
	}
	merged := slices.Clone(after[""])
	for _, k := range out {
		merged = append(append(merged, k), after[k]...)
	}
	return merged
}

// elements compares two lists: what was added, what was taken away, and
// whether what stayed is in another order, which matters for commands.
func elements(like leaf, old, new []leaf) []atom {
	count := map[string]int{}
	for _, l := range old {
		count[show(l.value)]++
	}
	var out []atom
	var stayed []string
	for _, l := range new {
		s := show(l.value)
		if count[s] > 0 {
			count[s]--
			stayed = append(stayed, s)
			continue
		}
		out = append(out, atom{path: like.path, field: like.field, new: l.value})
	}
	var before, gone []string
	for _, l := range slices.Backward(old) { // of several alike, the last went
		s := show(l.value)
		if count[s] > 0 {
			count[s]--
			out = slices.Insert(out, len(out)-len(gone), atom{path: like.path, field: like.field, old: l.value})
			gone = append(gone, s)
			continue
		}
		before = append(before, s)
	}
	slices.Reverse(before)
	if !slices.Equal(before, stayed) {
		out = append(out, atom{path: like.path, field: like.field, old: listOf(before), new: listOf(stayed), order: true})
	}
	return out
}

func listOf(s []string) reflect.Value { return reflect.ValueOf(s) }

// part gives the atom as it goes into a Change.
func (a atom) part() Part {
	p := Part{Key: keyPath(a.path)}
	for _, side := range []struct {
		v    reflect.Value
		into **string
	}{{a.old, &p.Old}, {a.new, &p.New}} {
		if !side.v.IsValid() {
			continue
		}
		s := show(side.v)
		if a.order { // its elements are written already
			s = "[" + strings.Join(side.v.Interface().([]string), ", ") + "]"
		}
		*side.into = &s
	}
	return p
}

// risk is the field's, but for a variable whose value the lock holds itself:
// nothing of the host's is in it.
func (a atom) risk() string {
	if a.at("profiles", "*", "env", "*") && !fromHost(a.old) && !fromHost(a.new) {
		return "image"
	}
	return a.field.risk
}

// fromHost reports whether a variable's value is the host's.
func fromHost(v reflect.Value) bool {
	return v.IsValid() && strings.HasPrefix(v.String(), "env:")
}

// rank orders changes, the riskiest first.
func (c Change) rank() int {
	switch {
	case c.Alarm:
		return 0
	case c.Own:
		return 9
	}
	return 1 + slices.Index(risks, c.Risk)
}

// risks are the values of the risk tag, the riskiest first.
var risks = []string{"host", "net", "image", "none"}

// sortChanges brings profiles together, the one with the riskiest change first,
// and what all share before profiles that are no riskier.
func sortChanges(list []Change) []Change {
	worst := map[string]int{}
	for _, c := range list {
		if r, ok := worst[c.Profile]; !ok || c.rank() < r {
			worst[c.Profile] = c.rank()
		}
	}
	slices.SortStableFunc(list, func(a, b Change) int {
		return cmp.Or(
			cmp.Compare(worst[a.Profile], worst[b.Profile]),
			cmp.Compare(a.Profile, b.Profile),
			cmp.Compare(a.rank(), b.rank()))
	})
	return list
}
