package lock

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// eachStruct visits every struct type that a File is made of.
func eachStruct(t reflect.Type, visit func(reflect.Type)) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		eachStruct(t.Elem(), visit)
	case reflect.Struct:
		visit(t)
		for i := range t.NumField() {
			eachStruct(t.Field(i).Type, visit)
		}
	}
}

// TestEveryFieldIsTold: whoever adds a field must say what it may grant and
// how a person is told, or a change of it would pass a review unseen.
func TestEveryFieldIsTold(t *testing.T) {
	eachStruct(reflect.TypeFor[File](), func(st reflect.Type) {
		for _, f := range fields(st) {
			sf := st.Field(f.index)
			name := st.Name() + "." + sf.Name
			tag := sf.Tag
			if f.key == "" {
				t.Errorf("%s has no toml key", name)
			}
			if !sf.IsExported() {
				t.Errorf("%s is not exported, so it is never written", name)
			}
			if holdsFields(sf.Type) {
				if f.risk != "" || f.says != "" {
					t.Errorf("%s only holds fields, and those tell for themselves", name)
				}
				continue
			}
			if !slices.Contains([]string{"none", "image", "net", "host"}, f.risk) {
				t.Errorf("%s: risk is %q", name, f.risk)
			}
			if !strings.Contains(f.says, "{}") {
				t.Errorf("%s: says %q, without the value {}", name, f.says)
			}
			if !slices.Contains([]string{"", "program", "foreign"}, tag.Get("text")) {
				t.Errorf("%s: text is %q", name, tag.Get("text"))
			}
			if f.lines && sf.Type.Kind() != reflect.Slice {
				t.Errorf("%s is no list and cannot be written by lines", name)
			}
		}
	})
}

// TestTablesComeLast: written in another order, the keys after a table would
// land in it.
func TestTablesComeLast(t *testing.T) {
	eachStruct(reflect.TypeFor[File](), func(st reflect.Type) {
		seen := ""
		for _, f := range fields(st) {
			ft := st.Field(f.index).Type
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			switch {
			case f.isTable(ft):
				seen = f.key
			case seen != "":
				t.Errorf("%s: key %s comes after table %s", st.Name(), f.key, seen)
			}
		}
	})
}

// TestRichFileSetsEverything keeps the golden and the fuzzers' seeds complete.
func TestRichFileSetsEverything(t *testing.T) {
	seen := map[string]bool{}
	var look func(v reflect.Value)
	look = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				look(v.Elem())
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				look(v.MapIndex(k))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if !v.Field(i).IsZero() {
					seen[v.Type().Name()+"."+v.Type().Field(i).Name] = true
				}
				look(v.Field(i))
			}
		}
	}
	look(reflect.ValueOf(*richFile(t)))
	eachStruct(reflect.TypeFor[File](), func(st reflect.Type) {
		for i := range st.NumField() {
			if name := st.Name() + "." + st.Field(i).Name; !seen[name] {
				t.Errorf("%s is nowhere set", name)
			}
		}
	})
}
