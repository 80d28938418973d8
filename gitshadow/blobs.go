package gitshadow

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Modes of git's tree entries.
const (
	absent     = "000000"
	regular    = "100644"
	executable = "100755"
	symlink    = "120000"
	submodule  = "160000"
)

// entry is one file of an index or a tree.
type entry struct{ mode, id, path string }

// listIndex lists an index's files, by path.
func listIndex(ctx context.Context, g Git) (out []entry, err error) {
	text, err := g.Output(ctx, "ls-files", "-s", "-z")
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x00"), "\x00") {
		if line == "" {
			continue
		}
		head, path, ok := strings.Cut(line, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 3 || f[2] != "0" || !filepath.IsLocal(path) {
			return nil, fmt.Errorf("reading an index: unexpected entry %s", show(line))
		}
		out = append(out, entry{f[0], f[1], path})
	}
	return out, nil
}

// linkMost is the longest target of a symlink, in bytes.
const linkMost = 4096

// writeFiles writes the entries' contents below root, where none of them may
// be. Nothing is converted: no filter that the repository names runs.
func writeFiles(ctx context.Context, g Git, root *os.Root, entries []entry) error {
	var ids bytes.Buffer
	var files []entry
	for _, e := range entries {
		switch e.mode {
		case submodule:
			if err := root.MkdirAll(e.path, 0o755); err != nil {
				return err
			}
			continue
		case regular, executable, symlink:
		default:
			return fmt.Errorf("%s has the unknown mode %s", show(e.path), e.mode)
		}
		files = append(files, e)
		ids.WriteString(e.id + "\n")
	}
	if len(files) == 0 {
		return nil
	}
	in, err := memoryFile(ids.Bytes())
	if err != nil {
		return err
	}
	defer in.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	g.Time = 20 * time.Minute
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := make(chan error, 1)
	go func() {
		err := g.Pipe(ctx, in, w, "cat-file", "--batch", "--buffer")
		w.Close()
		end <- err
	}()
	from := bufio.NewReaderSize(r, 1<<20)
	for _, e := range files {
		if err := writeFile(root, from, e); err != nil {
			cancel()
			r.Close()
			<-end
			return fmt.Errorf("writing %s: %w", show(e.path), err)
		}
	}
	return <-end
}

func writeFile(root *os.Root, from *bufio.Reader, e entry) error {
	head, err := from.ReadString('\n')
	if err != nil {
		return err
	}
	var id, kind string
	var size int64
	if n, _ := fmt.Sscanf(head, "%s %s %d", &id, &kind, &size); n != 3 || id != e.id || kind != "blob" {
		return fmt.Errorf("the object is not there: %s", show(strings.TrimSpace(head)))
	}
	if dir := filepath.Dir(e.path); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if e.mode == symlink {
		if size > linkMost {
			return fmt.Errorf("a symlink of %d bytes", size)
		}
		to := make([]byte, size)
		if _, err := io.ReadFull(from, to); err != nil {
			return err
		}
		err = root.Symlink(string(to), e.path)
	} else {
		mode := fs.FileMode(0o644)
		if e.mode == executable {
			mode = 0o755
		}
		var f *os.File
		if f, err = root.OpenFile(e.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode); err != nil {
			return err
		}
		_, err = io.CopyN(f, from, size)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return err
	}
	_, err = from.Discard(1)
	return err
}

// openRegular opens a regular file below root, and nothing that waits.
func openRegular(root *os.Root, path string) (*os.File, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is no regular file: %v", show(path), err)
	}
	return f, nil
}

// blobID tells whether a content has an id.
func blobID(r io.Reader, size int64, id string) (bool, error) {
	h := hasher(len(id))
	fmt.Fprintf(h, "blob %d\x00", size)
	if _, err := io.Copy(h, r); err != nil {
		return false, err
	}
	return hex.EncodeToString(h.Sum(nil)) == id, nil
}

// hasher is the hash whose ids have so many digits.
func hasher(digits int) hash.Hash {
	if digits == hexLen("sha256") {
		return sha256.New()
	}
	return sha1.New()
}
