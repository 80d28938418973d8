package config

import (
	"maps"
	"slices"
	"strings"
)

// spec says what a value may be. A zero spec takes nothing.
type spec struct {
	want     string           // for the message: "a string"
	is       func(v any) bool // whether the value's type is right
	keys     map[string]*spec // a table with these keys
	each     *spec            // elements of an array, or values of a table with free keys
	required bool             // in the merged result
	example  string           // how a missing key is written
	union    bool             // layers add up instead of replacing each other
	allow    string           // hidden characters the strings may hold

	// What the reference and an editor say, beyond what is checked by it.
	about    string   // what it is for: sentences
	words    []string // the only values there are, the default first
	fallback string   // the default, as TOML has it; "" where there is none
	pattern  string   // what a string or a free key looks like
	order    []string // the keys of a table as people read them
}

// check reports unknown keys, wrong types and characters that do not show,
// and marks what it reported as bad.
func check(n *node, s *spec, key string, p *problems) {
	if !s.is(n.value) {
		p.at(n.pos, key, errorf(s.typeHint(n), "is %s, must be %s", n.typeName(), s.want))
		n.bad = true
		return
	}
	switch v := n.value.(type) {
	case string:
		if err := checkVisible(v, s.allow); err != nil {
			p.at(n.pos, key, err)
			n.bad = true
		}
	case []*node:
		for i, e := range v {
			check(e, s.each, element(key, i), p)
		}
	case map[string]*node:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			switch {
			case s.each != nil:
				check(v[k], s.each, child(key, k), p)
			case s.keys[k] != nil:
				check(v[k], s.keys[k], child(key, k), p)
			default:
				p.at(v[k].pos, child(key, k), unknown(k, s))
				v[k].bad = true
			}
		}
	}
}

// typeHint says how a value of the wrong type was probably meant.
func (s *spec) typeHint(n *node) string {
	_, isText := n.value.(string)
	_, isArray := n.value.([]*node)
	_, isTable := n.value.(map[string]*node)
	switch {
	case s.is("") && !isArray && !isTable:
		return "put it in quotes"
	case s.is([]*node(nil)) && isText:
		return "put it in brackets"
	case isText && (s.is(true) || s.is(int64(0))):
		return "write it without quotes"
	}
	return ""
}

// unknown is the error for a key that a table does not have.
func unknown(k string, s *spec) error {
	known := slices.Sorted(maps.Keys(s.keys))
	for _, want := range known {
		if strings.EqualFold(k, want) {
			return errorf("write "+want, "unknown key: keys are case-sensitive")
		}
	}
	for _, table := range []string{"storage", "network", "escalation", "trust"} {
		if schema().keys[table].keys[k] != nil {
			return errorf("it belongs in ["+table+"]", "unknown key here")
		}
	}
	if schema().keys["profiles"].each.keys[k] != nil {
		return errorf("it belongs in [profiles.NAME]", "unknown key here")
	}
	if near := Nearest(k, known); near != "" {
		return errorf("did you mean "+near+"?", "unknown key")
	}
	return errorf("the keys here are "+strings.Join(known, ", "), "unknown key")
}

// missing reports the required keys that the merged result lacks.
func missing(n *node, s *spec, key string, p *problems) {
	if n.bad {
		return
	}
	switch v := n.value.(type) {
	case []*node:
		for i, e := range v {
			missing(e, s.each, element(key, i), p)
		}
	case map[string]*node:
		for k, e := range v {
			if s.each != nil {
				missing(e, s.each, child(key, k), p)
			}
		}
		for k, sub := range s.keys {
			switch e := v[k]; {
			case e != nil:
				missing(e, sub, child(key, k), p)
			case sub.required:
				p.at(n.pos, child(key, k), errorf("add "+sub.example, "missing"))
			case sub.keys != nil: // the whole table: its required keys are missing too
				pos := Position{File: n.pos.File, Layer: n.pos.Layer}
				missing(&node{pos: pos, value: map[string]*node{}}, sub, child(key, k), p)
			}
		}
	}
}

// merge puts a higher layer over a lower one. Tables merge by key; anything
// else is replaced, but for unions.
func merge(lower, upper *node, s *spec) *node {
	if s == nil || lower.bad || upper.bad {
		return upper
	}
	low, ok1 := lower.value.(map[string]*node)
	up, ok2 := upper.value.(map[string]*node)
	if ok1 && ok2 {
		out := &node{pos: upper.pos, value: maps.Clone(low)}
		for k, e := range up {
			if l := low[k]; l != nil {
				sub := s.each
				if sub == nil {
					sub = s.keys[k]
				}
				e = merge(l, e, sub)
			}
			out.value.(map[string]*node)[k] = e
		}
		return out
	}
	if s.union {
		return &node{pos: upper.pos, value: slices.Concat(lower.value.([]*node), upper.value.([]*node))}
	}
	return upper
}
