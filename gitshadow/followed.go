package gitshadow

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// entriesMost bounds what is looked at of a person's own repository: some
// millions of refs, each with its log.
const entriesMost = 10_000_000

// followed refuses a repository in which git would follow a link on the host:
// to read a device, or to write a ref or the line of a log where it leads. No git
// makes such links. An agent can have made the whole repository, in a directory
// of an earlier session's, and so can whoever packed the workspace.
func (r *Repo) followed() error {
	most := entriesMost
	if r.Path != "" {
		most = refEntries
	}
	const do = "remove it if it is not yours" + withoutGit
	list, err := strays(*r, most)
	if err != nil {
		return refuse(do, "looking at the refs in "+show(r.CommonDir)+": "+err.Error())
	}
	for _, c := range list {
		if c.Why == whyStray {
			return refuse(do, show(filepath.Join(r.CommonDir, c.Ref))+" is a link or something else that is not git's")
		}
	}
	dir, err := openBeneath(r.CommonDir)
	if err != nil {
		return err
	}
	defer dir.close()
	names, err := dir.names("worktrees", refEntries)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return refuse(do, "looking at the working trees of "+show(r.CommonDir)+": "+err.Error())
	}
	files := []string{"shallow", "info/grafts", "config.worktree"}
	for _, n := range names {
		for _, f := range []string{"HEAD", "gitdir", "commondir", "locked", "config.worktree"} {
			files = append(files, "worktrees/"+n+"/"+f)
		}
	}
	for _, f := range files {
		kind, err := dir.kind(f)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err != nil || !kind.IsRegular() {
			return refuse(do, show(filepath.Join(r.CommonDir, f))+" is a link or something else that is not git's")
		}
	}
	return nil
}

// copiedMost bounds what is copied of one nested repository at each launch, and
// copiedAll that of all of them, in bytes: what an agent made so that it is
// large would fill the host's disk.
const (
	copiedMost = 64 << 20
	copiedAll  = 160 << 20
)

// copied is how much of a repository is copied for a sandbox.
func (r *Repo) copied() (size int64) {
	shared, _ := filepath.Glob(escapeGlob(r.GitDir) + "/sharedindex.*")
	for _, path := range append(shared, filepath.Join(r.GitDir, indexFile), filepath.Join(r.CommonDir, shallowFile), filepath.Join(r.CommonDir, packedFile)) {
		size += fileSize(path)
	}
	return size
}
