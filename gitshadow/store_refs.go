package gitshadow

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Bounds on what is read of an agent's refs.
const (
	refsMost    = 20000    // refs that differ from what was given
	givenMost   = 10 << 20 // refs in a packed-refs file
	refNameMax  = 250      // bytes
	refDepth    = 12       // directories below refs
	refEntries  = 200000   // files and directories looked at
	refFileSize = 1 << 10  // bytes
)

var errTooManyRefs = errors.New("it has more refs than lazaret reads")

// parsePacked reads a packed-refs file: names and ids, nothing else. A name
// that no ref can have is left out and counted.
func parsePacked(text []byte, format string, most int) (refs map[string]string, odd int, err error) {
	refs = map[string]string{}
	n := hexLen(format)
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		if len(line) == 0 || line[0] == '#' || line[0] == '^' {
			continue // a header, or what the tag above leads to
		}
		if len(line) < n+2 || line[n] != ' ' || !isID(string(line[:n]), format) {
			return nil, odd, fmt.Errorf("packed-refs has a line that is no ref: %s", show(string(line[:min(len(line), 80)])))
		}
		name := string(line[n+1:])
		if !isRef(name) {
			odd++
			continue
		}
		if len(refs) >= most {
			return nil, odd, errTooManyRefs
		}
		refs[name] = string(line[:n])
	}
	return refs, odd, nil
}

// isRef tells whether a full name is one that git itself would give a ref, and
// a path below the git directory that leads nowhere else.
func isRef(name string) bool { return len(name) <= refNameMax && cleanRef(name) }

// looseRefs reads the ref files below dir/refs. Only a regular file that holds
// one object id counts. What is something else is named in odd: links, pipes,
// names that no ref has. A file that is no ref yet, or a leftover lock, is
// passed over.
func looseRefs(dir *beneath, format string) (refs map[string]string, odd []string, err error) {
	refs = map[string]string{}
	seen := 0
	var walk func(name string, depth int) error
	walk = func(name string, depth int) error {
		names, err := dir.names(name, refEntries-seen)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		slices.Sort(names)
		for _, n := range names {
			if seen++; seen >= refEntries {
				return errTooManyRefs
			}
			full := name + "/" + n
			if strings.HasSuffix(n, ".lock") {
				continue
			}
			kind, err := dir.kind(full)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				continue
			case err != nil:
				odd = append(odd, full)
				continue
			case kind.IsDir():
				if depth == 0 || strings.HasPrefix(n, ".") {
					odd = append(odd, full)
					continue
				}
				if err := walk(full, depth-1); err != nil {
					return err
				}
				continue
			case !kind.IsRegular() || !isRef(full):
				odd = append(odd, full)
				continue
			}
			text, err := dir.read(full, refFileSize)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				odd = append(odd, full)
				continue
			}
			id := strings.TrimSuffix(string(text), "\n")
			switch {
			case isID(id, format):
				if len(refs) >= refsMost {
					return errTooManyRefs
				}
				refs[full] = id
			case id != "" && !strings.HasPrefix(id, "ref: "):
				odd = append(odd, full)
			}
		}
		return nil
	}
	if err := walk("refs", refDepth); err != nil {
		return nil, odd, err
	}
	return refs, odd, nil
}

// headOf reads a HEAD file: the branch that is checked out, or else the commit.
func headOf(text []byte, format string) (branch, id string) {
	line := strings.TrimRight(string(text), "\r\n")
	if name, ok := strings.CutPrefix(line, "ref: "); ok && isRef(name) {
		return name, ""
	}
	if isID(line, format) {
		return "", line
	}
	return "", ""
}
