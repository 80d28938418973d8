package gitshadow

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// unseen are the refs that a sandbox is not given: what is the person's alone,
// or belongs to one working tree of the host.
var unseen = []string{"refs/stash", "refs/bisect/", "refs/worktree/", "refs/rewritten/", "refs/lazaret/", "refs/prefetch/"}

func seen(name string) bool {
	for _, u := range unseen {
		if name == u || strings.HasSuffix(u, "/") && strings.HasPrefix(name, u) {
			return false
		}
	}
	return true
}

// ref is one line of a packed-refs file.
type ref struct{ name, id, peeled string }

// refs reads all refs that a sandbox is given, sorted by name. What git would
// not take for a ref, and what leads nowhere, is not among them.
func (r *Repo) refs() (list []ref, peeled bool, err error) {
	byName := map[string]ref{}
	text, err := readFile(filepath.Join(r.CommonDir, "packed-refs"), packedMax)
	if err != nil && !isNotExist(err) {
		return nil, false, err
	}
	n := hexLen(r.ObjectFormat)
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "#"):
			peeled = strings.Contains(line, " fully-peeled ")
		case strings.HasPrefix(line, "^") && last != "" && isID(line[1:], r.ObjectFormat):
			was := byName[last]
			was.peeled = line[1:]
			byName[last] = was
		case len(line) > n+1 && line[n] == ' ' && isID(line[:n], r.ObjectFormat) && cleanRef(line[n+1:]) && seen(line[n+1:]):
			last = line[n+1:]
			byName[last] = ref{name: last, id: line[:n]}
		default:
			last = ""
		}
	}
	root := filepath.Join(r.CommonDir, "refs")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went away, or cannot be read: git would not list it
		}
		rel, _ := filepath.Rel(r.CommonDir, path)
		if d.IsDir() {
			if !seen(rel + "/") {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !cleanRef(rel) || !seen(rel) {
			return nil
		}
		id, err := r.readRef(rel)
		if err != nil || id == "" {
			return nil
		}
		if byName[rel].id != id {
			byName[rel] = ref{name: rel, id: id}
			// What a tag stands for is not known here, and only said of none.
			peeled = peeled && !strings.HasPrefix(rel, "refs/tags/")
		}
		return nil
	})
	for _, x := range byName {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b ref) int { return strings.Compare(a.name, b.name) })
	return list, peeled, err
}

// writePacked writes refs, which are sorted, as a packed-refs file.
func writePacked(w io.Writer, list []ref, peeled bool) error {
	b := bufio.NewWriter(w)
	if peeled {
		fmt.Fprintln(b, "# pack-refs with: peeled fully-peeled sorted ")
	} else {
		fmt.Fprintln(b, "# pack-refs with: sorted ")
	}
	for _, r := range list {
		fmt.Fprintf(b, "%s %s\n", r.id, r.name)
		if r.peeled != "" {
			fmt.Fprintf(b, "^%s\n", r.peeled)
		}
	}
	return b.Flush()
}

// put sets a ref in a sorted list.
func put(list []ref, r ref) []ref {
	i, found := slices.BinarySearchFunc(list, r.name, func(have ref, name string) int { return strings.Compare(have.name, name) })
	if found {
		list[i] = r
		return list
	}
	return slices.Insert(list, i, r)
}

func isNotExist(err error) bool { return os.IsNotExist(err) }
