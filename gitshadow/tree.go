package gitshadow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A working tree of a profile's own: lazaret writes it once, the sandbox works
// in it, and it stays. What is in it is the agent's, so it is opened without
// following a link, nothing is removed from it but files that are as lazaret
// knows them, and git never looks at it.

const (
	treeIndex = ".index" // beside the tree: the index with which it was written
	treeTip   = ".tip"   // beside the tree: the commit it was last begun on
)

// prepareTree makes the tree, or moves one that is there from the commit it was
// left at to tip, and writes its index to a path. It gives the commit that the
// sandbox starts on: not tip, where that would lose what the agent left.
func (s Shadow) prepareTree(ctx context.Context, g Git, p Place, tip, index string) (string, []string, error) {
	if !isDir(s.Tree) {
		if err := s.newTree(ctx, g, tip, index); err != nil {
			return "", nil, err
		}
		return tip, nil, s.points()
	}
	base, err := s.leftAt(p)
	if err != nil {
		return "", nil, err
	}
	var notes []string
	if base != "" && base != tip {
		err := s.moveTree(ctx, g, base, tip)
		var kept *keptError
		if errors.As(err, &kept) {
			notes = append(notes, fmt.Sprintf("the sandbox goes on at %.12s, not at %.12s: %s was changed in its working tree and not committed", base, tip, show(kept.path)))
			tip = base
		} else if err != nil {
			return "", nil, err
		}
	}
	if err := copyFile(s.Tree+treeIndex, index); err != nil && !isNotExist(err) {
		return "", nil, err
	}
	if tip != "" {
		g.Index = index
		was, _ := os.Stat(index)
		if _, err := g.Output(ctx, "read-tree", "--reset", tip); err != nil {
			return "", nil, err
		}
		if err := retime(index, was); err != nil {
			return "", nil, err
		}
	}
	return tip, notes, errors.Join(s.note(tip), s.points())
}

// points makes what the sandbox's mounts go on, where the tree has nothing. A
// link would lead the mount elsewhere.
func (s Shadow) points() error {
	root, err := os.OpenRoot(s.Tree)
	if err != nil {
		return err
	}
	defer root.Close()
	files := map[string]bool{".git": s.Places[0].Linked()}
	for _, name := range s.Points {
		files[name] = false
	}
	for name, file := range files {
		fi, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && file:
			var f *os.File
			if f, err = root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err == nil {
				err = f.Close()
			}
		case errors.Is(err, fs.ErrNotExist):
			err = root.MkdirAll(name, 0o755)
		case err == nil && fi.IsDir() == file, err == nil && file && !fi.Mode().IsRegular():
			err = refuse("remove it", show(filepath.Join(s.Tree, name))+" is not what lazaret mounts over")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leftAt is the commit that the tree was left at, as far as the host knows:
// what came home of the agent's branch, else where it was begun.
func (s Shadow) leftAt(p Place) (string, error) {
	if p.Own {
		if have, err := p.Repo.readRef(p.Branch); err != nil || have != "" {
			return have, err
		}
	}
	text, err := readFile(s.Tree+treeTip, smallFile)
	if err != nil && !isNotExist(err) {
		return "", err
	}
	if text = strings.TrimSpace(text); !isID(text, p.Repo.ObjectFormat) {
		return "", nil
	}
	return text, nil
}

func (s Shadow) note(tip string) error {
	return writeWhole(s.Tree+treeTip, []byte(tip+"\n"))
}

// newTree writes a commit's files to a new directory, which has its name only
// once it is complete.
func (s Shadow) newTree(ctx context.Context, g Git, tip, index string) error {
	fresh := s.Tree + ".new"
	if err := os.RemoveAll(fresh); err != nil { // no sandbox has ever had it
		return err
	}
	if err := os.MkdirAll(fresh, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(fresh)
	if err != nil {
		return err
	}
	defer root.Close()
	var entries []entry
	if tip != "" {
		g.Index = index + ".read"
		if _, err := g.Output(ctx, "read-tree", tip); err != nil {
			return err
		}
		if entries, err = listIndex(ctx, g); err != nil {
			return err
		}
		if err := os.Remove(g.Index); err != nil {
			return err
		}
	}
	if err := writeFiles(ctx, g, root, entries); err != nil {
		return err
	}
	if err := writeIndex(index, root, entries, hexLen(formatOf(tip))); err != nil {
		return err
	}
	os.Remove(s.Tree + treeIndex)
	if err := copyFile(index, s.Tree+treeIndex); err != nil {
		return err
	}
	if err := s.note(tip); err != nil {
		return err
	}
	return os.Rename(fresh, s.Tree)
}

func formatOf(id string) string {
	if len(id) == hexLen("sha256") {
		return "sha256"
	}
	return "sha1"
}

// keptError is a file that is not what it was left as.
type keptError struct{ path string }

func (e *keptError) Error() string { return show(e.path) + " was changed" }

// moveTree changes the files that differ between two commits, or none of them
// where one is not as it is in the first.
func (s Shadow) moveTree(ctx context.Context, g Git, from, to string) error {
	out, err := g.Output(ctx, "diff-tree", "-r", "-z", "--no-renames", from, to)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(s.Tree)
	if err != nil {
		return err
	}
	defer root.Close()
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	var gone []string
	var come []entry
	for i := 0; i+1 < len(fields); i += 2 {
		// :OLDMODE NEWMODE OLDID NEWID STATUS
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		path := fields[i+1]
		if len(f) != 5 || !filepath.IsLocal(path) {
			return fmt.Errorf("reading what differs: unexpected %s", show(fields[i]))
		}
		if same, err := matches(root, entry{mode: f[0], id: f[2], path: path}); err != nil || !same {
			return errors.Join(&keptError{path}, err)
		}
		if f[1] == absent {
			gone = append(gone, path)
		} else {
			come = append(come, entry{mode: f[1], id: f[3], path: path})
		}
	}
	for _, path := range gone {
		if err := root.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, e := range come {
		// Known to be the old one: another takes its place.
		if e.mode != submodule {
			if err := root.Remove(e.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return writeFiles(ctx, g, root, come)
}

// matches tells whether a file of a tree is what an index or a commit says;
// one of mode absent is not there.
func matches(root *os.Root, e entry) (bool, error) {
	fi, err := root.Lstat(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		return e.mode == absent, nil
	}
	if err != nil {
		return false, err
	}
	switch {
	case e.mode == submodule:
		return fi.IsDir(), nil
	case e.mode == symlink && fi.Mode().Type() == fs.ModeSymlink:
		to, err := root.Readlink(e.path)
		if err != nil {
			return false, err
		}
		return blobID(strings.NewReader(to), int64(len(to)), e.id)
	case e.mode != symlink && e.mode != absent && fi.Mode().IsRegular():
		f, err := openRegular(root, e.path)
		if err != nil {
			return false, err
		}
		defer f.Close()
		fi, err := f.Stat()
		if err != nil || (fi.Mode()&0o100 != 0) != (e.mode == executable) {
			return false, err
		}
		return blobID(io.LimitReader(f, fi.Size()), fi.Size(), e.id)
	}
	return false, nil
}
