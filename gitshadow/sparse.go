package gitshadow

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Tracked files that the sandbox sees read-only, or not at all, are mount
// points: git could neither replace nor remove them when it checks out a commit
// that has another or none. So they are outside of what is checked out, by
// git's own means.

const (
	sparseFile   = "sparse"         // in the store: what is checked out
	sparseConfig = "lazaret.config" // in the sandbox's git directory
)

// sparseSettings hold where the sandbox's git directory has sparseConfig.
const sparseSettings = `[core]
	sparseCheckout = true
	sparseCheckoutCone = false
[sparse]
	expectFilesOutsideOfPatterns = true
[index]
	sparse = false
`

// writeSparse writes what is checked out: what the host has, without what is
// covered.
func (p Place) writeSparse(to string) error {
	text := "/*\n"
	if p.Repo.Sparse {
		own, err := readFile(filepath.Join(p.Repo.GitDir, "info/sparse-checkout"), smallFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil {
			text = strings.TrimRight(own, "\n") + "\n"
		}
	}
	quote := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
	for _, path := range p.Covered {
		text += "!/" + quote.Replace(path) + "\n"
	}
	return writeNew(to, text)
}

// sparse has git leave out what is covered. The file that says so lies among
// others that the sandbox reads live.
func (f *filler) sparse(p Place, from, own string) {
	if f.err != nil || p.N > 0 || !exists(from) {
		return
	}
	f.text(own+sparseConfig, sparseSettings)
	info := filepath.Join(f.at, own+"info")
	f.do(ignoreMissing(os.Remove(info)))
	f.dir(own + "info")
	f.copy(from, own+"info/sparse-checkout")
	if p.Linked() {
		return // git reads nothing else there
	}
	for _, name := range []string{"exclude", "attributes", "grafts"} {
		f.link(filepath.Join(p.Host, "info", name), "info/"+name)
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
