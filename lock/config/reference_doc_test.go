package config

import (
	"fmt"
	"strings"
	"testing"
)

// The reference of the configuration is made from the schema. LAZARET_UPDATE=1
// writes it.
func TestReference(t *testing.T) {
	committed(t, "../../docs/configuration.md", []byte(referenceText()))
}

const referenceHead = `# Configuration

Generated from the schema that checks the files: change lock/config/keys.go.

Three files are read, lowest first: ` + "`~/.config/lazaret/config.toml`" + ` (XDG_CONFIG_HOME), ` + "`./lazaret.toml`" + ` and the one given with
` + "`--config`" + `. Tables merge by key; a value or a list replaces the lower one, but the lists of ` + "`default_deny`" + ` add up. Where
` + "`./lazaret.toml`" + ` exists your own file stays out of the lock, which must mean the same to everybody, unless you give ` + "`--user`" + `.
` + "`lazaret config show --origin`" + ` says where each value was written.

"Required" is meant of the merged result. Unknown keys are errors. For completion in an editor, put the output of
` + "`lazaret config schema`" + ` beside lazaret.toml and begin that with ` + "`#:schema ./lazaret.schema.json`" + `.

Paths of the host may begin with ~/ or a token: ` + "`{profile_dir}`" + ` (data_root/NAME), ` + "`{workspace_dir}`" + `, ` + "`{runtime_dir}`" + `
(XDG_RUNTIME_DIR); ` + "`{profile_name}`" + ` may stand anywhere in them. A ` + "`..`" + ` in a path is an error.
`

func referenceText() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	root := schema()
	for _, name := range root.order {
		s := root.keys[name]
		if s.each != nil { // profiles
			writeTable(&b, "profiles.NAME", s.about+" "+s.each.about, s.each)
			continue
		}
		writeTable(&b, name, s.about, s)
	}
	return b.String()
}

func writeTable(b *strings.Builder, title, about string, s *spec) {
	fmt.Fprintf(b, "\n## [%s]\n\n%s\n\n| Key | Type | Default | |\n|---|---|---|---|\n", title, about)
	var tables []string
	for _, name := range s.order {
		k := s.keys[name]
		fallback := ""
		switch {
		case k.required:
			fallback = "required"
		case k.fallback != "":
			fallback = "`" + k.fallback + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, typeText(k), fallback, cell(k.about))
		if k.each != nil && k.each.keys != nil {
			tables = append(tables, name)
		}
	}
	for _, name := range tables {
		writeTable(b, title+"."+name, s.keys[name].each.about+" Each is a table: `"+name+" = [{ … }]`.", s.keys[name].each)
	}
}

func typeText(s *spec) string {
	if len(s.words) > 0 {
		quoted := make([]string, len(s.words))
		for i, w := range s.words {
			quoted[i] = `"` + w + `"`
		}
		return strings.Join(quoted, ", ")
	}
	return strings.TrimPrefix(strings.TrimPrefix(s.want, "a "), "an ")
}

// cell escapes what would end a table's cell or be taken for markup.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;").Replace(s)
}
