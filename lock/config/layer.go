package config

import (
	"maps"
	"slices"
	"strconv"
)

// Kind is where a layer comes from, lowest precedence first.
type Kind int

// The kinds of layers.
const (
	User      Kind = iota // the person's own ~/.config/lazaret/config.toml
	Workspace             // ./lazaret.toml, which the repository brings
	Override              // --config FILE
)

// String gives the kind as a key of the lock's inputs: "user", "workspace", "override".
func (k Kind) String() string {
	switch k {
	case User:
		return "user"
	case Workspace:
		return "workspace"
	case Override:
		return "override"
	}
	return "layer " + strconv.Itoa(int(k))
}

// Layer is one config file.
type Layer struct {
	Kind Kind
	Name string // as shown to people: "lazaret.toml", "~/.config/lazaret/config.toml"
	Data []byte // the file's bytes: TOML
}

// Canonical gives bytes that depend on what the layer says and not on how it
// is written: comments, white space, the order of keys, the style of strings
// and numbers make no difference; the order of elements in arrays does. [trust]
// is left out, since no lock depends on it. The form is bencode, with "t" and
// "f" for booleans: it needs no escapes, and so cannot come to differ under
// another version of an encoder.
func (l Layer) Canonical() ([]byte, error) {
	p := &problems{files: []string{l.Name}}
	n := parse(l, p)
	if n != nil {
		checkLayer(n, l, p)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	delete(n.value.(map[string]*node), "trust")
	return n.appendCanonical(nil), nil
}

func (n *node) appendCanonical(b []byte) []byte {
	text := func(b []byte, s string) []byte {
		b = strconv.AppendInt(b, int64(len(s)), 10)
		return append(append(b, ':'), s...)
	}
	switch v := n.value.(type) {
	case string:
		return text(b, v)
	case int64:
		return append(strconv.AppendInt(append(b, 'i'), v, 10), 'e')
	case float64: // only cpus
		return append(strconv.AppendFloat(append(b, 'n'), v, 'f', -1, 64), 'e')
	case bool:
		return append(b, strconv.FormatBool(v)[0])
	case []*node:
		b = append(b, 'l')
		for _, e := range v {
			b = e.appendCanonical(b)
		}
		return append(b, 'e')
	case map[string]*node:
		b = append(b, 'd')
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b = v[k].appendCanonical(text(b, k))
		}
		return append(b, 'e')
	}
	panic("config: a value passed the schema that it does not have")
}
