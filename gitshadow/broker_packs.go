package gitshadow

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// packsApart is how many packs of one run lie in the host's objects before they
// are made one. Of fifty, git thinks that there is something to clean up.
const packsApart = 20

// mark is what is written in the mark of a pack that no ref leads to yet.
func (b *Broker) mark() string { return "lazaret-" + b.origin.Run }

func (b *Broker) packDir() string { return filepath.Join(b.origin.Repo.CommonDir, "objects", "pack") }

// unmark takes the marks from this run's packs: refs lead to them by now, or
// nobody needs them.
func (b *Broker) unmark() {
	marks, _ := filepath.Glob(filepath.Join(quoteGlob(b.packDir()), "pack-*.keep"))
	for _, m := range marks {
		if text, err := readFile(m, smallFile); err == nil && strings.TrimSpace(text) == b.mark() {
			os.Remove(m)
		}
	}
}

// joinPacks makes one pack of those that this run brought. The small ones go
// only when the one is there; what goes wrong is left for the host's next
// cleaning up.
func (b *Broker) joinPacks(ctx context.Context) {
	var there []string
	for _, name := range b.packs {
		if exists(filepath.Join(b.packDir(), "pack-"+name+".pack")) {
			there = append(there, name)
		}
	}
	if b.packs = there; len(there) < 2 {
		return
	}
	place, err := os.MkdirTemp(b.Store.Dir, "staging-")
	if err != nil {
		return
	}
	defer os.RemoveAll(place)
	s, err := newStaging(filepath.Join(place, "s"), b.Program, b.origin.Repo)
	if err != nil {
		return
	}
	list := "pack-" + strings.Join(there, ".pack\npack-") + ".pack\n"
	out, err := s.host().Feed(ctx, []byte(list), "pack-objects", "--stdin-packs", "--delta-base-offset", "-q", filepath.Join(b.packDir(), "pack"))
	name := strings.TrimSpace(string(out))
	if err != nil || !isID(name, b.origin.Repo.ObjectFormat) || !exists(filepath.Join(b.packDir(), "pack-"+name+".idx")) {
		return
	}
	for _, old := range there {
		if old == name {
			continue
		}
		// Without its index, nobody looks for the pack.
		for _, ext := range []string{".idx", ".rev", ".pack"} {
			os.Remove(filepath.Join(b.packDir(), "pack-"+old+ext))
		}
	}
	b.packs = []string{name}
}

// quoteGlob writes a path so that filepath.Glob takes it for itself.
func quoteGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
