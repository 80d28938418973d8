package lock

import (
	"reflect"
	"slices"
	"strings"
)

// field is one field of a lockfile struct, as its tags describe it.
type field struct {
	index     int
	key       string
	inline    bool // a table on one line; of a map, each entry
	lines     bool // an array with one element per line
	omitempty bool
	risk      string
	says      string
	text      string // what its strings may hold: "", "program", "foreign"
	less      bool   // grants:"less": losing it is the grant
}

// schema holds the fields of every struct that a File is made of: reading the
// tags anew for each of a lock's thousands of values takes longer than reading
// the lock.
var schema = func() map[reflect.Type][]field {
	all := map[reflect.Type][]field{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Map, reflect.Slice:
			visit(t.Elem())
		case reflect.Struct:
			all[t] = describeFields(t)
			for i := range t.NumField() {
				visit(t.Field(i).Type)
			}
		}
	}
	visit(reflect.TypeFor[File]())
	return all
}()

// fields describes the fields of struct type t, in order. The result is shared.
func fields(t reflect.Type) []field {
	if known, ok := schema[t]; ok {
		return known
	}
	return describeFields(t)
}

func describeFields(t reflect.Type) []field {
	out := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		opts := strings.Split(tag.Get("toml"), ",")
		out = append(out, field{
			index:     i,
			key:       opts[0],
			inline:    slices.Contains(opts, "inline"),
			lines:     slices.Contains(opts, "lines"),
			omitempty: slices.Contains(opts, "omitempty"),
			risk:      tag.Get("risk"),
			says:      tag.Get("says"),
			text:      tag.Get("text"),
			less:      tag.Get("grants") == "less",
		})
	}
	return out
}

// isTable reports whether a value of type t is a table under a header of its
// own: a map, or a struct that is not written inline.
func (f field) isTable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Map:
		return true
	case reflect.Struct:
		return !f.inline
	default:
		return false
	}
}

// holdsFields reports whether type t only holds further tagged fields.
func holdsFields(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		return true
	case reflect.Pointer, reflect.Map:
		return holdsFields(t.Elem())
	default:
		return false
	}
}

// present follows a pointer and reports whether v is there to be written.
func (f field) present(v reflect.Value) (reflect.Value, bool) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return v, false
		}
		return v.Elem(), true
	}
	if f.omitempty && (v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0) {
		return v, false
	}
	return v, true
}

// sortedKeys returns the keys of a map with string keys, sorted by bytes.
func sortedKeys(m reflect.Value) []string {
	keys := make([]string, 0, m.Len())
	for _, k := range m.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}

// leaf is one value of a File, or one element of a list written by lines, or
// one entry of a map of strings.
type leaf struct {
	path  []string // keys from the top
	value reflect.Value
	field field
	elem  bool // an element of a list
}

// walk calls visit for every value of the struct v, in canonical order. What is
// absent from the canonical text is not visited.
func walk(path []string, v reflect.Value, visit func(leaf)) {
	for _, f := range fields(v.Type()) {
		fv, ok := f.present(v.Field(f.index))
		if !ok {
			continue
		}
		at := append(slices.Clip(path), f.key)
		switch {
		case fv.Kind() == reflect.Struct:
			walk(at, fv, visit)
		case fv.Kind() == reflect.Map:
			for _, k := range sortedKeys(fv) {
				entry := fv.MapIndex(reflect.ValueOf(k))
				if entry.Kind() == reflect.Struct {
					walk(append(slices.Clip(at), k), entry, visit)
				} else {
					visit(leaf{path: append(slices.Clip(at), k), value: entry, field: f})
				}
			}
		case f.lines:
			for i := range fv.Len() {
				visit(leaf{path: at, value: fv.Index(i), field: f, elem: true})
			}
		default:
			visit(leaf{path: at, value: fv, field: f})
		}
	}
}
