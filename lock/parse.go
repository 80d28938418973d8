package lock

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/BurntSushi/toml"
)

// Parse reads a lockfile. The text is untrusted: it travels in repositories
// and whoever writes to the workspace can write it. Unknown keys, values out
// of range and any text that is not exactly what Format would write are
// refused with a *ParseError, so that what a person read in the diff is all
// that there is.
func Parse(data []byte) (*File, error) {
	f, err := Salvage(data)
	if err != nil {
		return nil, err
	}
	if want := f.Format(); !bytes.Equal(want, data) {
		return nil, notCanonical(data, want)
	}
	return f, nil
}

// Salvage is Parse without the demand for canonical form: what "lazaret lock"
// can still use of a lock that was edited by hand or by a merge, for its pins
// and inputs. Nothing may be launched from it.
func Salvage(data []byte) (*File, error) {
	if err := checkShape(data); err != nil {
		return nil, err
	}
	var v struct{ Version *int }
	if n, ok := firstVersion(data); ok {
		v.Version = &n
	} else if _, err := decode(data, &v); err != nil {
		return nil, syntaxError(data, err)
	}
	switch {
	case v.Version == nil:
		return nil, &ParseError{Key: "version", Reason: "is missing"}
	case *v.Version > Version:
		return nil, &ParseError{
			Key:    "version",
			Reason: fmt.Sprintf("%d was made by a newer lazaret: this one reads up to version %d", *v.Version, Version),
			Newer:  true,
			hint:   "install a newer lazaret",
		}
	case *v.Version < 1:
		return nil, &ParseError{Key: "version", Reason: "is not a version number"}
	}
	f := new(File)
	md, err := decode(data, f)
	if err != nil {
		return nil, syntaxError(data, err)
	}
	if unknown := md.Undecoded(); len(unknown) > 0 {
		return nil, &ParseError{Key: clip(keyPath(unknown[0])), Reason: "is not a key of a lockfile"}
	}
	if err := f.validate(); err != nil {
		var k *KeyError
		if errors.As(err, &k) {
			return nil, &ParseError{Key: clip(k.Key), Reason: k.Reason}
		}
		return nil, err
	}
	return f, nil
}

// firstVersion finds the version where Format puts it, in the second line, so
// that the text need not be decoded twice. What it finds there is the version
// of every text that decodes: a second one is an error.
func firstVersion(data []byte) (version int, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(header+"\nversion = "))
	if !ok {
		return 0, false
	}
	line, _, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || len(line) == 0 || len(line) > 6 || line[0] == '0' {
		return 0, false
	}
	for _, c := range line {
		if c < '0' || c > '9' {
			return 0, false
		}
		version = version*10 + int(c-'0')
	}
	return version, true
}

// decode is toml.Decode without its panics: the library panics again on what
// it takes for a fault of its own, and this text comes from anybody.
func decode(data []byte, into any) (md toml.MetaData, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the TOML library gave up")
		}
	}()
	return toml.Decode(string(data), into)
}

// maxDepth is how deep brackets nest in a lockfile, and how many dots a key
// has, with some to spare. The TOML library recurses into brackets: a megabyte
// of them would exhaust its stack, and nothing can recover from that. For a
// key of a megabyte of parts it takes hours.
const maxDepth = 8

// checkShape looks over the raw text for what would harm its reader or the
// TOML library. It knows only the one kind of string that Format writes; other
// kinds cannot be canonical.
func checkShape(data []byte) error {
	const (
		plain = iota
		comment
		quoted
	)
	state, depth, dots, line := plain, 0, 0, 1
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case c == '\n':
			if state == quoted {
				return &ParseError{Line: line, Reason: "a string does not end on its line"}
			}
			state, dots = plain, 0
			line++
		case state == comment:
		case state == quoted:
			switch c {
			case '\\':
				if i+1 < len(data) && data[i+1] != '\n' {
					i++
				}
			case '"':
				state = plain
			}
		case c == '#':
			state = comment
		case c == '"':
			state = quoted
		case c == '\'':
			return &ParseError{Line: line, Reason: "is not written as lazaret writes it: strings stand in double quotes"}
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return &ParseError{Line: line, Reason: "brackets nest too deeply"}
			}
		case c == ']' || c == '}':
			depth--
		case c == '.':
			if dots++; dots > maxDepth {
				return &ParseError{Line: line, Reason: "a key has too many parts"}
			}
		}
	}
	return nil
}

// syntaxError keeps the place of a TOML error and drops its text, which quotes
// the file.
func syntaxError(data []byte, err error) error {
	if i := bytes.Index(data, []byte("\n<<<<<<< ")); i >= 0 {
		return &ParseError{Line: 2 + bytes.Count(data[:i], []byte("\n")), Reason: "holds the conflict markers of a merge"}
	}
	var pe toml.ParseError
	if errors.As(err, &pe) {
		return &ParseError{Line: pe.Position.Line, Reason: "is not valid TOML, or a value has the wrong type"}
	}
	return &ParseError{Reason: "is not valid TOML, or a value has the wrong type"}
}

// notCanonical names the first line where data differs from want.
func notCanonical(data, want []byte) error {
	e := &ParseError{Line: 1, Reason: "is not written as lazaret writes it, so it was not made by \"lazaret lock\""}
	if bytes.Contains(data, []byte("\r\n")) {
		e.Reason = "has the line ends of another system"
		e.hint = `say "lazaret.lock -text" in .gitattributes, then run "lazaret lock"`
		return e
	}
	a, b := bytes.Split(data, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			break
		}
		e.Line++
	}
	return e
}
