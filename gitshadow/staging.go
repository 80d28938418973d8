package gitshadow

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Bounds on what one ref may bring.
const (
	objectsMost = 1 << 20 // objects
	bytesMost   = 8 << 30 // bytes of all objects, as they lie in the store
	objectMost  = 2 << 30 // bytes of one, unpacked
	packsMost   = 1000    // packs looked at
	packMost    = 4 << 30 // bytes of one
	gitMemory   = 2 << 30 // bytes that git may allocate over it
	bringTime   = 10 * time.Minute
)

// staging is a repository of lazaret's own that nobody else writes to. What a
// sandbox wrote is copied there and checked there, and only from there goes to
// the host's objects. Its configuration is lazaret's; the host's is not read.
type staging struct {
	dir  string
	git  Git // with the host's objects to read from
	repo Repo
	seen map[string]bool // copied in
	size int64
}

// newStaging makes a staging repository in dir, which must not exist.
func newStaging(dir, program string, r Repo) (*staging, error) {
	s := &staging{dir: dir, repo: r, seen: map[string]bool{}}
	gitDir := filepath.Join(dir, "git")
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(gitDir, d), 0o700); err != nil {
			return nil, err
		}
	}
	config := "[core]\n\tbare = true\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = " + r.ObjectFormat + "\n"
	// The host packs it again when it cleans up: this is about not being late.
	config += "[pack]\n\tcompression = 1\n"
	if r.Partial {
		// What the host can still fetch is not missing. Nothing is fetched here.
		config += "\tpartialClone = origin\n[remote \"origin\"]\n\tpromisor = true\n"
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(gitDir, "config"), []byte(config), 0o600),
		os.WriteFile(filepath.Join(gitDir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600),
	); err != nil {
		return nil, err
	}
	// Where the host's history ends, this one does.
	text, err := readFile(filepath.Join(r.CommonDir, "shallow"), packedMax)
	if err == nil {
		err = os.WriteFile(filepath.Join(gitDir, "shallow"), []byte(text), 0o600)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	s.git = Git{
		Program: program, GitDir: gitDir, Alternates: []string{filepath.Join(r.CommonDir, "objects")},
		Time: bringTime, Memory: gitMemory,
	}
	return s, err
}

// host is git as in staging, but with the host's objects to write to.
func (s *staging) host() Git {
	g := s.git
	g.Objects, g.Alternates = filepath.Join(s.repo.CommonDir, "objects"), nil
	return g
}

// collect copies what tip leads to from the store, beyond the commits have and
// what is at home already. Whether all is there is seen when it is packed.
func (s *staging) collect(ctx context.Context, store *beneath, tip string, have []string, home map[string]bool) error {
	elsewhere, err := s.walk(ctx, store, []string{tip}, home)
	if err != nil {
		return err
	}
	missing, err := s.missing(ctx, elsewhere)
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := s.packs(ctx, store); err != nil {
		return err
	}
	if missing, err = s.missing(ctx, missing); err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d objects are missing, such as %s", len(missing), missing[0])
	}
	// What objects in packs lead to may be outside of any.
	for range 100 {
		links, err := s.gaps(ctx, tip, have)
		if err != nil || len(links) == 0 {
			return err
		}
		was := len(s.seen)
		if _, err := s.walk(ctx, store, links, home); err != nil || len(s.seen) == was {
			return err
		}
	}
	return errors.New("its objects are strewn over too many places")
}

// walk copies objects that are files of their own, and what they lead to. It
// returns those that are none in the store.
func (s *staging) walk(ctx context.Context, store *beneath, todo []string, home map[string]bool) (elsewhere []string, err error) {
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if s.seen[id] || home[id] {
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.seen[id] = true
		if len(s.seen) > objectsMost {
			return nil, errors.New("it has more objects than lazaret takes at once")
		}
		links, err := s.loose(store, id)
		if errors.Is(err, fs.ErrNotExist) {
			elsewhere = append(elsewhere, id)
			continue
		}
		if err != nil {
			return nil, err
		}
		todo = append(todo, links...)
	}
	return elsewhere, nil
}

// gaps lists what tip leads to and is not there.
func (s *staging) gaps(ctx context.Context, tip string, have []string) (ids []string, err error) {
	out, err := s.git.Feed(ctx, []byte(revisions(tip, have)), "rev-list", "--objects", "--missing=print", "--no-object-names", "--stdin")
	for line := range strings.Lines(string(out)) {
		if id, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "?"); ok && isID(id, s.repo.ObjectFormat) {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// revisions asks for what tip leads to and some commits do not.
func revisions(tip string, have []string) string {
	var b strings.Builder
	fmt.Fprintln(&b, tip)
	for _, h := range have {
		fmt.Fprintln(&b, "^"+h)
	}
	return b.String()
}

// missing tells which of some objects are neither in staging nor on the host.
func (s *staging) missing(ctx context.Context, ids []string) (out []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	text, err := s.git.Feed(ctx, []byte(strings.Join(ids, "\n")+"\n"), "cat-file", "--batch-check=%(objectname)", "--buffer")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if id, ok := strings.CutSuffix(line, " missing\n"); ok && !s.repo.Partial {
			out = append(out, id)
		}
	}
	return out, nil
}

// packs copies every pack of the store and makes an index of lazaret's own for
// it: an index, like everything else beside a pack, could be a lie.
func (s *staging) packs(ctx context.Context, store *beneath) error {
	names, err := store.names("objects/pack", 4*packsMost)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	taken := 0
	for _, name := range names {
		if !strings.HasPrefix(name, "pack-") || !strings.HasSuffix(name, ".pack") || !isHex(name[5:len(name)-5]) {
			continue
		}
		if taken++; taken > packsMost {
			return errors.New("it has more packs than lazaret reads")
		}
		to := filepath.Join(s.dir, "in.pack")
		if err := s.copyPack(store, "objects/pack/"+name, to); err != nil {
			return err
		}
		_, err := s.index(ctx, s.git, to)
		os.Remove(to)
		if err != nil {
			return fmt.Errorf("the pack %s: %w", name, err)
		}
	}
	return nil
}

func (s *staging) copyPack(store *beneath, name, to string) error {
	in, fi, err := store.regular(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if fi.Size() > packMost || s.size+fi.Size() > bytesMost {
		return fmt.Errorf("%s is larger than lazaret takes", filepath.Base(name))
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, packMost))
	s.size += n
	return errors.Join(err, out.Close())
}

// index has git read a pack and write it, with an index, to where g writes. It
// returns the pack's name there. Links to objects that are nowhere are not
// minded unless more says so: packs lead to one another.
func (s *staging) index(ctx context.Context, g Git, pack string, more ...string) (name string, err error) {
	in, err := os.Open(pack)
	if err != nil {
		return "", err
	}
	defer in.Close()
	said, err := os.CreateTemp(s.dir, "said-")
	if err != nil {
		return "", err
	}
	defer os.Remove(said.Name())
	defer said.Close()
	if err := g.Pipe(ctx, in, said, append([]string{"index-pack", "--stdin", "--fix-thin", fmt.Sprintf("--max-input-size=%d", int64(packMost))}, more...)...); err != nil {
		return "", err
	}
	// "pack" or "keep", a tab, and the pack's name.
	text, err := os.ReadFile(said.Name())
	if err != nil {
		return "", err
	}
	_, name, _ = strings.Cut(strings.TrimSuffix(string(text), "\n"), "\t")
	if !isID(name, s.repo.ObjectFormat) {
		return "", errors.New("git does not say what pack it has written")
	}
	return name, nil
}

// deliver checks all that tip leads to beyond some commits of the host, and
// writes it to the host's objects: as a pack, with a mark that keeps it from any
// cleaning up until a ref leads to it. It returns the pack's name, "" where
// there was nothing to bring.
func (s *staging) deliver(ctx context.Context, tip string, have []string, mark string) (name string, err error) {
	in, err := memoryFile([]byte(revisions(tip, have)))
	if err != nil {
		return "", err
	}
	defer in.Close()
	path := filepath.Join(s.dir, "out.pack")
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer os.Remove(path)
	args := []string{"pack-objects", "--revs", "--stdout", "--delta-base-offset", "--window=0", "-q"}
	if s.repo.Partial {
		args = append(args, "--missing=allow-promisor")
	}
	err = s.git.Pipe(ctx, in, out, args...)
	if err = errors.Join(err, out.Close()); err != nil {
		return "", err
	}
	if n, err := packed(path); err != nil || n == 0 {
		return "", err
	}
	more := []string{"--keep=" + mark}
	if !s.repo.Partial {
		more = append(more, "--strict") // it minds what the host has yet to fetch
	}
	return s.index(ctx, s.host(), path, more...)
}

// packed tells how many objects a pack says that it has.
func packed(path string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var head [12]byte
	if _, err := io.ReadFull(f, head[:]); err != nil || !bytes.HasPrefix(head[:], []byte("PACK")) {
		return 0, errors.New("git made no pack")
	}
	return int(binary.BigEndian.Uint32(head[8:])), nil
}

func isHex(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdef") == "" }
