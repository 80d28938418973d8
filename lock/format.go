package lock

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// header is the first line of every lockfile.
const header = `# Made by "lazaret lock". Review the diff, do not edit.`

// Format returns the canonical text of f: the same File always gives the same
// bytes, and Parse accepts no others. A general TOML encoder will not do, since
// the diff is what people read: one grant, one line.
func (f *File) Format() []byte {
	w := &writer{}
	w.WriteString(header + "\n")
	w.table(nil, reflect.ValueOf(f).Elem(), field{})
	return w.Bytes()
}

type writer struct{ bytes.Buffer }

// table writes the struct or map v, which field f holds: its own keys first,
// under a header where it has any (or nothing else to show that it exists),
// then the tables in it.
func (w *writer) table(path []string, v reflect.Value, f field) {
	keys, tables := f.entries(v)
	if len(path) > 0 && (len(keys) > 0 || v.Kind() == reflect.Struct && len(tables) == 0) {
		fmt.Fprintf(w, "\n[%s]\n", keyPath(path))
	}
	for _, e := range keys {
		fmt.Fprintf(w, "%s = ", quoteKey(e.key))
		w.value(e.value, e.field.lines)
		w.WriteByte('\n')
	}
	for _, e := range tables {
		w.table(append(slices.Clip(path), e.key), e.value, e.field)
	}
}

// entry is a key of a table with its value. In a map of strings or tables the
// field is the map's own.
type entry struct {
	key   string
	value reflect.Value
	field field
}

// entries splits what the struct or map v holds into plain keys and tables.
func (f field) entries(v reflect.Value) (keys, tables []entry) {
	add := func(e entry) {
		if e.field.isTable(e.value.Type()) {
			tables = append(tables, e)
		} else {
			keys = append(keys, e)
		}
	}
	if v.Kind() == reflect.Map {
		for _, k := range sortedKeys(v) {
			add(entry{k, v.MapIndex(reflect.ValueOf(k)), f})
		}
		return keys, tables
	}
	for _, in := range fields(v.Type()) {
		if fv, ok := in.present(v.Field(in.index)); ok {
			add(entry{in.key, fv, in})
		}
	}
	return keys, tables
}

// value writes one value; lines puts each element of an array on its own line.
func (w *writer) value(v reflect.Value, lines bool) {
	switch v.Kind() {
	case reflect.String:
		w.WriteString(quote(v.String()))
	case reflect.Int, reflect.Int64:
		w.WriteString(strconv.FormatInt(v.Int(), 10))
	case reflect.Bool:
		w.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.Slice:
		w.array(v, lines)
	case reflect.Struct:
		w.inlineTable(v)
	default:
		panic("lock: a field of type " + v.Type().String() + " has no text form")
	}
}

func (w *writer) array(v reflect.Value, lines bool) {
	before, between, after := "[", ", ", "]"
	if lines && v.Len() > 0 {
		before, between, after = "[\n  ", ",\n  ", ",\n]"
	}
	w.WriteString(before)
	for i := range v.Len() {
		if i > 0 {
			w.WriteString(between)
		}
		w.value(v.Index(i), false)
	}
	w.WriteString(after)
}

func (w *writer) inlineTable(v reflect.Value) {
	keys, _ := field{}.entries(v)
	if len(keys) == 0 {
		w.WriteString("{}")
		return
	}
	var sep = "{ "
	for _, e := range keys {
		w.WriteString(sep + quoteKey(e.key) + " = ")
		w.value(e.value, false)
		sep = ", "
	}
	w.WriteString(" }")
}

// show returns a value as the lock writes it, on one line.
func show(v reflect.Value) string {
	w := &writer{}
	w.value(v, false)
	return strings.TrimSpace(w.String())
}
