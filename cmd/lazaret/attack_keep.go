package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// keep is what no attack may change: what lies beside the workspace, and what
// of the workspace programs of this machine obey. It remembers all of it, so
// that after an attack that did, the next one finds it as it was.
type keep struct {
	root     string
	first    map[string]keptFile
	patience time.Duration // how long a passing state (a lock file of git's) may last
}

type keptFile struct {
	mode fs.FileMode
	text string // a file's, or where a link leads
}

// keepMax bounds what is read of one file.
const keepMax = 4 << 20

func (k *keep) begin() (err error) {
	k.first, err = k.look()
	return err
}

// ours tells of a path below the root whether it is to stay as it is, which is so
// of everything but: the work tree, the harness's own, what the sandbox keeps.
func (k *keep) ours(path string) bool {
	if top, _, _ := strings.Cut(path, "/"); top != "workspace" {
		return !slices.Contains([]string{"data", "state", "volumes", "plain", "harness", "traps"}, top)
	}
	in, ok := strings.CutPrefix(path, "workspace/")
	if !ok {
		return false
	}
	for _, own := range []string{".git", ".vscode", ".idea", "lazaret.toml", "lazaret.lock", "scripts/check"} {
		if in == own || strings.HasPrefix(in, own+"/") {
			return true
		}
	}
	return false
}

// free tells of a path whether something new may be there: objects, and branches
// of the sandbox's own.
func (k *keep) free(path string) bool {
	for _, free := range []string{"objects/", "refs/heads/lazaret/", "refs/lazaret/", "logs/refs/heads/lazaret/", "logs/refs/lazaret/"} {
		if strings.HasPrefix(path, "workspace/.git/"+free) {
			return path != "workspace/.git/objects/info/alternates"
		}
	}
	return false
}

// look reads everything. Empty directories count for nothing: lazaret makes some
// to have something to cover.
func (k *keep) look() (map[string]keptFile, error) {
	out := map[string]keptFile{}
	root, err := os.OpenRoot(k.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == ".":
			return nil // gone meanwhile, or closed to us: said by its absence
		case d.IsDir() && (path == "workspace" || strings.HasPrefix(path, "workspace/") || k.ours(path)):
			return nil
		case d.IsDir():
			return fs.SkipDir
		}
		fi, err := root.Lstat(path)
		// A setuid file is something for other users of the machine, wherever it is.
		if err != nil || !k.ours(path) && fi.Mode()&(fs.ModeSetuid|fs.ModeSetgid) == 0 {
			return nil
		}
		e := keptFile{mode: fi.Mode()}
		switch {
		case fi.Mode().Type() == fs.ModeSymlink:
			e.text, _ = root.Readlink(path)
		case fi.Mode().IsRegular() && fi.Size() <= keepMax:
			b, _ := readRegular(root, path)
			e.text = string(b)
		}
		out[path] = e
		return nil
	})
	return out, err
}

// readRegular reads a file where a sandbox can put something else in its place:
// it waits for nothing, and reads no more than is kept.
func readRegular(root *os.Root, path string) ([]byte, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	return io.ReadAll(io.LimitReader(f, keepMax))
}

// changed says what is not as it was, and puts it back.
func (k *keep) changed() []string {
	var now map[string]keptFile
	var diff []string
	for end := time.Now().Add(k.patience); ; time.Sleep(100 * time.Millisecond) {
		var err error
		if now, err = k.look(); err != nil {
			return []string{err.Error()}
		}
		if diff = k.diff(now); len(diff) == 0 {
			return nil
		}
		if time.Now().After(end) {
			break
		}
	}
	if err := k.restore(now); err != nil {
		diff = append(diff, "and could not be put back: "+err.Error())
	}
	return diff
}

func (k *keep) diff(now map[string]keptFile) (out []string) {
	for _, path := range slices.Sorted(maps.Keys(k.first)) {
		if n, ok := now[path]; !ok {
			out = append(out, path+" is gone")
		} else if n != k.first[path] {
			out = append(out, path+" is changed")
		}
	}
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if _, ok := k.first[path]; !ok && !k.free(path) {
			out = append(out, path+" is new")
		}
	}
	if len(out) > 5 {
		out = append(out[:5], fmt.Sprintf("and %d more", len(out)-5))
	}
	return out
}

// restore puts back what was there. A directory that has become a link is
// replaced: nothing is written by way of it.
func (k *keep) restore(now map[string]keptFile) error {
	root, err := os.OpenRoot(k.root)
	if err != nil {
		return err
	}
	defer root.Close()
	var errs []error
	for path := range now {
		if _, first := k.first[path]; now[path] != k.first[path] && (first || !k.free(path)) {
			errs = append(errs, root.RemoveAll(path))
		}
	}
	for path, e := range k.first {
		if now[path] == e {
			continue
		}
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			if fi, err := root.Lstat(dir); err == nil && !fi.IsDir() {
				errs = append(errs, root.Remove(dir))
			}
		}
		errs = append(errs, root.MkdirAll(filepath.Dir(path), 0o755))
		if e.mode.Type() == fs.ModeSymlink {
			errs = append(errs, root.Symlink(e.text, path))
		} else {
			errs = append(errs, root.WriteFile(path, []byte(e.text), e.mode.Perm()))
		}
	}
	return errors.Join(errs...)
}
