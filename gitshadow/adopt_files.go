package gitshadow

import (
	"encoding/hex"
	"fmt"
	"io"
)

// staleMost bounds how much is read to find out which files are as before.
const staleMost = 256 << 20

// staleFiles names paths whose file is what it was before the commits, so that
// it would look changed back after them. before is the same paths as they were.
// A file that git stores in another form than it has here is not recognised.
func staleFiles(r Repo, changes, before []Change) (out []string) {
	dir, err := openBeneath(r.Workspace)
	if err != nil {
		return nil
	}
	defer dir.close()
	was := map[string]Change{}
	for _, b := range before {
		was[b.Path] = b
	}
	left := int64(staleMost)
	for _, c := range changes {
		b := was[c.Path]
		if b.Mode == "" {
			// New: without a file it would look deleted.
			if !exists(r.Workspace+"/"+c.Path) && !r.Sparse {
				out = append(out, c.Path)
			}
			continue
		}
		if c.ID == b.ID {
			continue // its mode only
		}
		if fileID(dir, c.Path, r.ObjectFormat, &left) == b.ID {
			out = append(out, c.Path)
		}
	}
	return out
}

// fileID is the id that a file's content has as a blob, "" where there is none.
func fileID(dir *beneath, path, format string, left *int64) string {
	f, fi, err := dir.regular(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if *left -= fi.Size(); *left < 0 {
		return ""
	}
	h := newHash(format)
	fmt.Fprintf(h, "blob %d\x00", fi.Size())
	if n, err := io.Copy(h, io.LimitReader(f, fi.Size())); err != nil || n != fi.Size() {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}
