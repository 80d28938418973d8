package config

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// JSONSchema is what a config file may say, for editors that complete and
// check TOML by a JSON Schema. It calls no valid file wrong: what must be
// there in the merged result may be missing in one layer, so only the parts of
// a volume are required.
func JSONSchema() []byte {
	doc := schema().json()
	doc["$schema"] = "http://json-schema.org/draft-07/schema#"
	doc["title"] = "lazaret.toml"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		panic(err) // it is made of maps and strings
	}
	return b.Bytes()
}

// kinds lists the JSON types that a spec takes, with a value of each.
var kinds = []struct {
	name  string
	value any
}{
	{"string", ""},
	{"boolean", false},
	{"integer", int64(0)},
	{"number", float64(0)},
	{"array", []*node(nil)},
	{"object", map[string]*node(nil)},
}

// types gives the JSON types that s takes.
func (s *spec) types() []string {
	var out []string
	for _, k := range kinds {
		if s.is(k.value) {
			out = append(out, k.name)
		}
	}
	return out
}

func (s *spec) json() map[string]any {
	out := map[string]any{}
	types := s.types()
	if len(types) == 1 {
		out["type"] = types[0]
	} else {
		out["type"] = types
	}
	if about := s.says(); about != "" {
		out["description"] = about
	}
	if len(s.words) > 0 {
		out["enum"] = s.words
	}
	if s.fallback != "" {
		out["default"] = s.defaultJSON()
	}
	switch {
	case s.keys != nil:
		keys, required := map[string]any{}, []string{}
		for _, name := range s.order {
			k := s.keys[name]
			keys[name] = k.json()
			if k.required && s.inArray() {
				required = append(required, name)
			}
		}
		out["properties"], out["additionalProperties"] = keys, false
		if len(required) > 0 {
			out["required"] = required
		}
	case s.each != nil && s.pattern != "":
		out["patternProperties"], out["additionalProperties"] = map[string]any{s.pattern: s.each.json()}, false
	case s.each != nil:
		out["items"] = s.each.json()
	}
	return out
}

// inArray reports whether the table is an array's element: arrays are replaced
// whole, so nothing of them can come from another layer.
func (s *spec) inArray() bool { return s.keys["host"] != nil }

// says is about, and whether the key must be there.
func (s *spec) says() string {
	if s.required {
		return strings.TrimSpace(s.about + " Required.")
	}
	return s.about
}

// defaultJSON is the default as a JSON value. Those of TOML that there are
// look the same.
func (s *spec) defaultJSON() any {
	if s.fallback == "[]" {
		return []any{}
	}
	if text, err := strconv.Unquote(s.fallback); err == nil {
		return text
	}
	panic("config: a default is neither a string nor an empty list")
}
