package lock

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// differ collects differences between two locks, or parts of them.
type differ struct{ list []Difference }

func (d *differ) add(path []string, format string, args ...any) {
	d.list = append(d.list, Difference{keyPath(path), fmt.Sprintf(format, args...)})
}

// values compares two structs of one type, value by value.
func (d *differ) values(path []string, old, fresh reflect.Value) {
	a, b := flatten(path, old), flatten(path, fresh)
	for _, key := range sortedUnion(a, b) {
		x, y := a[key], b[key]
		was, is := x.values, y.values
		switch {
		case x.elem || y.elem:
			d.elements(key, was, is)
		case len(was) == 0:
			d.list = append(d.list, Difference{key, "is missing from the lock"})
		case len(is) == 0:
			d.list = append(d.list, Difference{key, "should not be in the lock"})
		case was[0] != is[0] && x.secret:
			// A literal in an env table may be a password, which CI would log.
			d.list = append(d.list, Difference{key, "the lock has another value"})
		case was[0] != is[0]:
			d.list = append(d.list, Difference{key, "the lock says " + clip(was[0]) + ", it should be " + clip(is[0])})
		}
	}
}

// elements compares two lists with one element per line.
func (d *differ) elements(key string, was, is []string) {
	before := len(d.list)
	had, has := set(was), set(is)
	for _, v := range is {
		if !had[v] {
			d.list = append(d.list, Difference{key, "the lock lacks " + clip(v)})
		}
	}
	for _, v := range was {
		if !has[v] {
			d.list = append(d.list, Difference{key, "the lock has " + clip(v) + ", which should not be there"})
		}
	}
	if len(d.list) == before && !slices.Equal(was, is) {
		d.list = append(d.list, Difference{key, "is in another order, or says something twice, in the lock"})
	}
}

// set makes a list of a hundred thousand ranges quick to ask.
func set(list []string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, v := range list {
		m[v] = true
	}
	return m
}

// mounts compares mount tables, one line for each place.
func (d *differ) mounts(path []string, old, fresh map[string]Mount) {
	targets := slices.Concat(slices.Collect(maps.Keys(old)), slices.Collect(maps.Keys(fresh)))
	for _, t := range sorted(targets, strings.Compare) {
		a, inOld := old[t]
		b, inFresh := fresh[t]
		at := append(slices.Clip(path), t)
		switch {
		case !inOld:
			d.add(at, "is missing from the lock")
		case !inFresh:
			d.add(at, "should not be in the lock")
		case a != b:
			d.add(at, "the lock says %s, it should be %s", clip(show(reflect.ValueOf(a))), clip(show(reflect.ValueOf(b))))
		}
	}
}

// fact is what a key says: one value, or the elements of a list.
type fact struct {
	order  int
	values []string // as the lock writes them
	elem   bool
	secret bool
}

func flatten(path []string, v reflect.Value) map[string]fact {
	m := map[string]fact{}
	walk(path, v, func(l leaf) {
		key := keyPath(l.path)
		f, ok := m[key]
		if !ok {
			f.order = len(m)
		}
		f.values = append(f.values, show(l.value))
		f.elem = l.elem
		f.secret = len(l.path) > 1 && l.path[len(l.path)-2] == "env"
		m[key] = f
	})
	return m
}

// sortedUnion gives the keys of both maps by their place in the file.
func sortedUnion(a, b map[string]fact) []string {
	place := func(key string) int {
		if f, ok := b[key]; ok {
			return f.order
		}
		return a[key].order
	}
	keys := sorted(slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b))), strings.Compare)
	slices.SortStableFunc(keys, func(x, y string) int { return place(x) - place(y) })
	return keys
}
