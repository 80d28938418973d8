package config

import (
	"slices"
	"strconv"
	"strings"
)

// table reads the values of one table of the merged result and reports what
// is wrong with them. Values that were reported before are as good as absent.
type table struct {
	p   *problems
	n   *node
	key string
}

// get gives the value of a key, or nil.
func (t table) get(name string) *node {
	values, ok := t.n.value.(map[string]*node)
	if !ok || t.n.bad {
		return nil
	}
	if n := values[name]; n != nil && !n.bad {
		return n
	}
	return nil
}

// sub gives a table below t; an absent one is empty.
func (t table) sub(name string) table {
	n := t.get(name)
	if n == nil {
		n = &node{value: map[string]*node{}}
	}
	return table{t.p, n, child(t.key, name)}
}

// one reads a string through parse; fallback is for an absent or wrong one.
func one[T any](t table, name string, fallback T, parse func(string) (T, error)) T {
	n := t.get(name)
	if n == nil {
		return fallback
	}
	v, err := parse(n.value.(string))
	if err != nil {
		t.p.at(n.pos, child(t.key, name), err)
		return fallback
	}
	return v
}

// list reads an array of strings through parse, leaving out the wrong ones.
func list[T any](t table, name string, parse func(string) (T, error)) []T {
	n := t.get(name)
	if n == nil {
		return nil
	}
	var out []T
	for _, e := range n.value.([]*node) {
		if e.bad {
			continue
		}
		v, err := parse(e.value.(string))
		if err != nil {
			t.p.at(e.pos, element(child(t.key, name), e.index), err)
			continue
		}
		out = append(out, v)
	}
	return out
}

// oneOf reads one of the words; the first is the default.
func oneOf(t table, name string, words []string) string {
	return one(t, name, words[0], func(s string) (string, error) {
		if slices.Contains(words, s) {
			return s, nil
		}
		hint := "write one of " + strings.Join(words, ", ")
		if near := Nearest(s, words); near != "" {
			hint = "did you mean " + near + "?"
		}
		return "", errorf(hint, "%s is not one of %s", quote(s), strings.Join(words, ", "))
	})
}

// checked makes a parse function of one that only checks.
func checked(check func(string) error) func(string) (string, error) {
	return func(s string) (string, error) { return s, check(s) }
}

// child gives the dotted key of name below key, quoted as TOML would have it.
func child(key, name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 || !bare(byte(r)) }) {
		name = quote(name)
	}
	if key == "" {
		return name
	}
	return key + "." + name
}

// element gives the key of an array's element, counted from 0.
func element(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }
