package config

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// validator checks TOML by the schema that is given out.
func validator(t *testing.T) func(text string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("lazaret.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("lazaret.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		var v map[string]any
		if _, err := toml.Decode(text, &v); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		return s.Validate(plainJSON(v))
	}
}

// plainJSON gives what TOML decodes to in the types that JSON does.
func plainJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = plainJSON(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plainJSON(e)
		}
		return out
	case []map[string]any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plainJSON(e)
		}
		return out
	}
	return v
}

// The schema takes what Load takes.
func TestJSONSchemaTakes(t *testing.T) {
	valid := validator(t)
	files := []string{"../../example.toml", "../../lazaret.toml"}
	more, err := filepath.Glob("../../cmd/lazaret/starters/*.toml")
	if err != nil || len(more) < 5 {
		t.Fatal(more, err)
	}
	for _, f := range append(files, more...) {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := valid(string(data)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	for _, text := range []string{
		"", // one layer may say little
		"[profiles.a1]\ncpus = 1.5",
		"[profiles.a1]\ncpus = 2",
		"[profiles.a1]\ncpus = \"2\"",
		"[profiles.a1]\ncommand = \"npm start\"",
		"[profiles.a1]\nvolumes = [{ host = \"~/x\", container = \"/x\" }]",
		"[escalation]\nmax_output = 4096",
	} {
		if err := valid(text); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// What an editor can know to be wrong, the schema calls wrong, and so does
// the check that it was made from.
func TestJSONSchemaRefuses(t *testing.T) {
	valid := validator(t)
	for _, text := range []string{
		"[storage]\ndata_rot = \"~/x\"",
		"[strage]",
		"[storage]\noverlay = \"zfs\"",
		"[network]\non_deny = \"drop\"",
		"[network]\nallow_hosts = \"pypi.org\"",
		"[escalation]\nenabled = \"yes\"",
		"[profiles.A]\nimage = \"builtin:shell\"",
		"[profiles.a1]\ngit = \"shared\"",
		"[profiles.a1]\npids = \"12\"",
		"[profiles.a1]\nenv = { \"A B\" = \"x\" }",
		"[profiles.a1]\nvolumes = [{ host = \"~/x\" }]",
		"[profiles.a1]\nvolumes = [{ host = \"~/x\", container = \"/x\", ro = true }]",
	} {
		if err := valid(text); err == nil {
			t.Errorf("the schema takes\n%s", text)
		}
		if _, err := Load([]Layer{{Name: "lazaret.toml", Data: []byte(text)}}); err == nil {
			t.Errorf("Load takes\n%s", text)
		}
	}
}

// Every key says what it is for, and has its place among the others.
func TestSchemaIsWhole(t *testing.T) {
	var visit func(key string, s *spec)
	visit = func(key string, s *spec) {
		if s.keys != nil && len(s.order) != len(s.keys) {
			t.Errorf("%s: %d keys in %d places", key, len(s.keys), len(s.order))
		}
		for name, k := range s.keys {
			if k.about == "" {
				t.Errorf("%s: nothing says what it is for", child(key, name))
			}
			visit(child(key, name), k)
		}
		if s.each != nil {
			visit(child(key, "x1"), s.each)
		}
	}
	visit("", schema())
}

// The committed schema is the one that the program gives out. LAZARET_UPDATE=1
// writes it.
func TestJSONSchemaFile(t *testing.T) { committed(t, "../../docs/lazaret.schema.json", JSONSchema()) }

// committed compares a generated file with the one in the repository.
func committed(t *testing.T, path string, want []byte) {
	t.Helper()
	if os.Getenv("LAZARET_UPDATE") == "1" {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what is generated (%v): run LAZARET_UPDATE=1 go test ./lock/config", path, err)
	}
}
