package gitshadow

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// inodesMost bounds the files a sandbox may make in its git directories.
const inodesMost = 100_000

// linked are the parts of a common directory that the sandbox reads live
// through a link into what it has of the host's: a file that was mounted would
// stay what it was when git puts another in its place.
var linked = []string{"config", "config.worktree", "info", "description", "branches", "remotes"}

// Fill makes the memory file system and everything in it. It runs in a mount
// namespace of its own, after Prepare.
func (s Shadow) Fill() error {
	if err := os.Mkdir(s.At, 0o700); err != nil {
		return err
	}
	options := fmt.Sprintf("mode=0700,size=%d,nr_inodes=%d", s.Size, inodesMost)
	if err := unix.Mount("lazaret-git", s.At, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mounting a memory file system: %w", err)
	}
	for _, p := range s.Places {
		if err := s.fill(p); err != nil {
			return fmt.Errorf("filling git's directory for %s: %w", show(filepath.Join("/workspace", p.Repo.Path)), err)
		}
	}
	return nil
}

// filler makes files below one directory and remembers the first error.
type filler struct {
	at  string
	err error
}

func (f *filler) do(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *filler) dir(names ...string) {
	for _, n := range names {
		f.do(os.MkdirAll(filepath.Join(f.at, n), 0o755))
	}
}

func (f *filler) text(name, text string) {
	if f.err == nil {
		f.do(writeNew(filepath.Join(f.at, name), text))
	}
}

func (f *filler) copy(from, name string) {
	if err := copyFile(from, filepath.Join(f.at, name)); !isNotExist(err) {
		f.do(err)
	}
}

func (f *filler) link(to, name string) {
	if f.err == nil {
		f.do(os.Symlink(to, filepath.Join(f.at, name)))
	}
}

// bind mounts a directory of the host at a new one.
func (f *filler) bind(from, to string, readOnly bool) {
	if f.err == nil {
		f.do(os.Mkdir(to, 0o700))
	}
	if f.err == nil {
		f.do(bind(from, to, readOnly))
	}
}

func (s Shadow) fill(p Place) error {
	f := &filler{at: s.Live(p)}
	store := s.Store(p)
	f.dir("objects", "refs", "logs", "hooks")
	for _, name := range linked {
		if exists(filepath.Join(p.Repo.CommonDir, name)) {
			f.link(filepath.Join(p.Host, name), name)
		}
	}
	own := ""
	if p.Linked() {
		own = "worktrees/this/"
		f.dir(own + "logs")
		f.text(own+"commondir", "../..\n")
		f.text(own+"gitdir", filepath.Join("/workspace", p.Repo.Path, ".git")+"\n")
		// Git wants a HEAD here, and takes a branch for checked out that it names.
		f.text("HEAD", "ref: refs/heads/lazaret/none\n")
		f.ownLinks(p, own)
		f.do(writeNew(s.part(p, "file"), "gitdir: "+p.Git+"\n"))
	}
	f.copy(filepath.Join(store, headFile), own+"HEAD")
	f.copy(filepath.Join(store, indexFile), own+"index")
	if p.N > 0 {
		f.shared(p, own)
	}
	f.modules(s, p, own)
	f.sparse(p, filepath.Join(store, sparseFile), own)

	f.bind(p.Repo.CommonDir, s.part(p, "host"), true)
	borrowed := strings.Join(p.Alternates, "\n")
	f.borrows(s, p, filepath.Join(s.part(p, "host"), "objects/info"), borrowed)
	for i, dir := range p.Repo.Alternates {
		at := s.part(p, fmt.Sprintf("alt%d", i))
		f.bind(dir, at, true)
		f.borrows(s, p, filepath.Join(at, "info"), "")
	}

	from := p.Repo.CommonDir
	if s.Mode == Quarantine {
		from = store
		f.copy(filepath.Join(store, packedFile), "packed-refs")
		f.copy(filepath.Join(p.Repo.CommonDir, shallowFile), shallowFile)
	} else {
		// A copy would take the host's branches with it when it goes: packing
		// them moves them there.
		f.link(filepath.Join(p.Host, "packed-refs"), "packed-refs")
		if p.Repo.Shallow {
			f.link(filepath.Join(p.Host, shallowFile), shallowFile)
		}
	}
	if s.inner(p) {
		for _, name := range []string{"objects", "refs", "logs"} {
			f.do(bind(filepath.Join(from, name), filepath.Join(f.at, name), false))
		}
		return f.err
	}
	f.bind(filepath.Join(from, "objects"), s.part(p, "objects"), false)
	f.bind(filepath.Join(from, "refs"), s.part(p, "refs"), false)
	if isDir(filepath.Join(from, "logs")) {
		f.bind(filepath.Join(from, "logs"), s.part(p, "logs"), false)
	} else {
		f.do(os.Mkdir(s.part(p, "logs"), 0o755))
	}
	if s.headLog(p) {
		f.do(writeNew(s.part(p, "log"), ""))
	}
	f.bind(filepath.Join(from, "objects/info"), s.part(p, "info"), true)
	if s.Mode == Writeback {
		f.borrows(s, p, s.part(p, "info"), borrowed)
	}
	return f.err
}

// shared copies the parts of a split index, which git writes to.
func (f *filler) shared(p Place, own string) {
	names, _ := filepath.Glob(escapeGlob(p.Repo.GitDir) + "/sharedindex.*")
	for _, name := range names {
		f.copy(name, own+filepath.Base(name))
	}
}

// ownLinks links what belongs to one working tree alone.
func (f *filler) ownLinks(p Place, own string) {
	rel, err := filepath.Rel(p.Repo.CommonDir, p.Repo.GitDir)
	f.do(err)
	for _, name := range []string{"config.worktree", "info"} {
		if exists(filepath.Join(p.Repo.GitDir, name)) {
			f.link(filepath.Join(p.Host, rel, name), own+name)
		}
	}
}

// modules leads from where git keeps the submodules of a working tree to their
// places. The directory is the sandbox's own, so that it can add others.
func (f *filler) modules(s Shadow, p Place, own string) {
	f.dir(own + "modules")
	for _, sub := range s.Places {
		if sub.Repo.Kind != Submodule || sub.Repo.Name == "" || sub.Repo.GitDir != filepath.Join(p.Repo.GitDir, "modules", sub.Repo.Name) {
			continue
		}
		name := filepath.Join(own+"modules", sub.Repo.Name)
		f.dir(filepath.Dir(name))
		f.link(sub.Git, name)
	}
}

// borrows puts another text in place of an object directory's list of those it
// borrows from: the paths on the host are none in the sandbox.
func (f *filler) borrows(s Shadow, p Place, info, text string) {
	target := filepath.Join(info, "alternates")
	if f.err != nil || !exists(target) {
		return
	}
	name := "nothing"
	if text != "" {
		name, text = "borrows", text+"\n"
	}
	file := s.part(p, name)
	if !exists(file) {
		f.do(writeNew(file, text))
	}
	f.do(bind(file, target, true))
}

// bind mounts a directory or file of the host, opened without following any
// link, at a place that is there.
func bind(from, to string, readOnly bool) error {
	open := func(path string) (int, error) {
		return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
	}
	source, err := open(from)
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			return refuse("look at what replaced it, then launch again", show(from)+" became a symlink meanwhile")
		}
		return fmt.Errorf("opening %s: %w", show(from), err)
	}
	defer unix.Close(source)
	target, err := open(to)
	if err != nil {
		return fmt.Errorf("opening %s: %w", show(to), err)
	}
	defer unix.Close(target)
	tree, err := unix.OpenTree(source, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("mounting %s: %w", show(from), err)
	}
	defer unix.Close(tree)
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if readOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr); err != nil {
		return fmt.Errorf("mounting %s: %w", show(from), err)
	}
	if err := unix.MoveMount(tree, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", show(from), show(to), err)
	}
	return nil
}
