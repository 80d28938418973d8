package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// node is a value and where it was written. The value is a string, bool,
// int64, float64, time.Time, []*node or map[string]*node.
type node struct {
	pos   Position
	value any
	index int  // of an array's element, in its own layer
	bad   bool // already reported: later checks leave it alone
}

// parse reads a layer as TOML. It gives nil after reporting a syntax error.
func parse(l Layer, p *problems) *node {
	fail := func(line int, msg string) *node {
		p.at(Position{File: l.Name, Line: line, Layer: l.Kind}, "", errorf("", "%s", msg))
		return nil
	}
	if i := bytes.IndexByte(l.Data, 0); i >= 0 {
		return fail(1+bytes.Count(l.Data[:i], []byte("\n")), "not valid TOML: holds a zero byte")
	}
	if !utf8.Valid(l.Data) {
		return fail(invalidUTF8(l.Data), "not valid TOML: not UTF-8")
	}
	places, failed := locate(l.Data)
	if failed != nil && failed.msg == tooDeep {
		return fail(failed.line, tooDeep) // the library would recurse into it
	}
	values, err := decode(l.Data)
	var pe toml.ParseError
	switch {
	case errors.As(err, &pe):
		return fail(pe.Position.Line, "not valid TOML: "+explain(pe.Message))
	case err != nil:
		return fail(0, "not valid TOML")
	case failed != nil:
		return fail(failed.line, "not valid TOML: "+failed.msg)
	}
	return join(values, places, Position{File: l.Name, Layer: l.Kind})
}

// decode is toml.Decode without its panics: the library re-panics on what it
// takes for a bug of its own, and the text comes from anybody.
func decode(data []byte) (values map[string]any, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the TOML library gave up")
		}
	}()
	err = toml.Unmarshal(data, &values)
	return values, err
}

// join puts the library's values and the locator's places together.
func join(value any, at *place, pos Position) *node {
	if at != nil {
		pos.Line = at.line
	} else {
		at = &place{}
	}
	switch v := value.(type) {
	case map[string]any:
		t := make(map[string]*node, len(v))
		for k, e := range v {
			t[k] = join(e, at.table[k], pos)
		}
		return &node{pos: pos, value: t}
	case []map[string]any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		return join(list, at, pos)
	case []any:
		list := make([]*node, len(v))
		for i, e := range v {
			var p *place
			if i < len(at.array) {
				p = at.array[i]
			}
			list[i] = join(e, p, pos)
			list[i].index = i
		}
		return &node{pos: pos, value: list}
	}
	return &node{pos: pos, value: value}
}

// explain turns the library's message into one of ours. Its own may quote the
// text, and the text is not always a config file: see ReadFile.
func explain(msg string) string {
	for _, known := range []struct{ prefix, says string }{
		{"unexpected EOF; expected value", "the file ends where a value should be"},
		{"unexpected EOF; expected key separator", "the file ends in the middle of a key"},
		{"unexpected EOF; expected '", "a string is not closed"},
		{`unexpected EOF; expected "`, "a string is not closed"},
		{"unexpected EOF", "the file ends too early"},
		{"expected a top-level item to end", "more text after a value"},
		{"expected end of table array name", "[[ is not closed by ]]"},
		{"unexpected end of table name", "a table name is empty"},
		{"unexpected table separator", "a table name is empty"},
		{"expected '.' or ']' to end table name", "[ is not closed by ]"},
		{"unexpected '=': key name appears blank", "= without a key before it"},
		{"unexpected '.'", "a key has an empty part"},
		{"expected '.' or '='", "a key is not followed by ="},
		{"expected value but found", "the value is neither a string in quotes, number, boolean, array nor table"},
		{"floats must start", "a number starts with a dot"},
		{"unexpected comma", "a comma too many"},
		{"expected a comma (',') or array terminator", "a comma or ] is missing in an array"},
		{"expected a comma or an inline table terminator", "a comma or } is missing in an inline table"},
		{"strings cannot contain newlines", "a string is not closed on its line"},
		{"TOML files cannot contain control characters", "holds a control character"},
		{"invalid escape", `a string holds an unknown \ escape`},
		{"expected two hexadecimal", `a string holds an unknown \ escape`},
		{"expected four hexadecimal", `a string holds an unknown \ escape`},
		{"expected eight hexadecimal", `a string holds an unknown \ escape`},
		{"Escaped character", `a string holds an unknown \ escape`},
		{"Invalid integer", "an integer is malformed"},
		{"Invalid float", "a number is malformed"},
		{"invalid float", "a number is malformed"},
		{"expected a digit", "a number is malformed"},
		{"invalid datetime", "a date is malformed"},
	} {
		if strings.HasPrefix(msg, known.prefix) {
			return known.says
		}
	}
	if strings.HasPrefix(msg, "Key '") || strings.HasSuffix(msg, "is not a table") {
		return "a key or table is defined twice"
	}
	return "syntax error"
}

func invalidUTF8(data []byte) (line int) {
	line = 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			return line
		}
		if r == '\n' {
			line++
		}
		data = data[n:]
	}
	return line
}

// typeName names the type of a node's value for people.
func (n *node) typeName() string {
	switch n.value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case time.Time:
		return "a date"
	case []*node:
		return "an array"
	case map[string]*node:
		return "a table"
	}
	return fmt.Sprintf("%T", n.value)
}
