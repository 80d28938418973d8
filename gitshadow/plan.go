package gitshadow

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Modes of write-back.
const (
	Quarantine = "quarantine" // objects, refs and logs are a store of lazaret's own
	Writeback  = "writeback"  // they are the host's
)

// Wish is what a profile asks for, as the lock has it.
type Wish struct {
	Profile string
	Mode    string // Quarantine or Writeback
	Branch  string // "auto", "" for the host's, or a name
	Size    int64  // what the sandbox may write beside objects, refs and logs, in bytes
	// Covered are the paths of the workspace that the sandbox sees something
	// else at, or nothing.
	Covered []string
	// Tree is a directory for a working tree of the profile's own; "" is the
	// workspace itself. Points are the directories in it that are masked.
	Tree   string
	Points []string
}

// Inside are the places that the sandbox has git directories at.
const (
	InsideHost = "/run/lazaret/git"   // the outermost repository's common directory, to read
	insideAll  = "/run/lazaret/repos" // what has no place in the workspace
)

// Shadow is what a sandbox gets of the repositories in its workspace: plain
// data, which Prepare and Fill make true.
type Shadow struct {
	Dir     string // on the host: what is made for this run, and the store it writes to
	At      string // where the helper mounts the memory file system that the places lie in
	Size    int64
	Mode    string
	Profile string
	Tree    string   // the working tree of the profile's own; "" is the workspace
	Points  []string // directories in it that are masked
	Places  []Place  // the outermost first
}

// Place is one git directory in the sandbox.
type Place struct {
	Repo Repo // without what is nested in it
	N    int
	// Common is where the sandbox has what the repository's working trees
	// share, and Git where it has what belongs to this one alone.
	Common, Git string
	Host        string // where the sandbox reads the host's common directory
	Alternates  []string
	// Branch is the full name of the branch the sandbox starts on; "" is the
	// commit that is checked out, and no branch.
	Branch string
	// Own says that the branch is the agent's: made from the commit that is
	// checked out, and moved up to it as long as that loses nothing.
	Own     bool
	Covered []string // below the working tree
}

// writebackMost is how many repositories a sandbox can write to itself: each
// takes seven mounts.
const writebackMost = 25

// OwnBranch is the full name of the branch that is a profile's own.
func OwnBranch(profile string) string { return "refs/heads/lazaret/agent-" + profile }

// Plan says what the sandbox gets of a repository. dir is the run's own
// directory on the host, at a directory that the helper can mount on.
func Plan(r Repo, w Wish, dir, at string) (Shadow, error) {
	s := Shadow{Dir: dir, At: at, Size: w.Size, Mode: w.Mode, Profile: w.Profile, Tree: w.Tree, Points: w.Points}
	all := append([]Repo{r}, r.Nested...)
	if w.Tree != "" {
		all = all[:1] // what is nested in the workspace is not in the tree
	}
	if w.Mode == Writeback && len(all) > writebackMost {
		return s, refuse("set git = \"quarantine\" in lazaret.toml",
			"there are "+strconv.Itoa(len(all)-1)+" repositories nested in the workspace, more than a sandbox can write to at once")
	}
	for _, repo := range all {
		if repo.Kind == None || repo.Kind == Above {
			continue
		}
		if repo.RefFormat != "files" {
			return s, refuse("\"git refs migrate --ref-format=files\" changes that"+withoutGit,
				show(repo.CommonDir)+" keeps its refs in the format "+show(repo.RefFormat)+", which this version cannot show to a sandbox")
		}
		p := Place{Repo: repo, N: len(s.Places), Host: InsideHost}
		p.Repo.Nested = nil
		p.branch(w)
		p.place()
		for _, c := range w.Covered {
			if below, ok := strings.CutPrefix(c, repo.Path+"/"); ok || repo.Path == "" {
				if repo.Path == "" {
					below = c
				}
				p.Covered = append(p.Covered, below)
			}
		}
		s.Places = append(s.Places, p)
	}
	return s, nil
}

// branch chooses what the sandbox starts on. In nested repositories it is what
// is checked out there, as in the submodule of any clone: nothing of it reaches
// the host by itself.
func (p *Place) branch(w Wish) {
	p.Branch = p.Repo.Head
	switch {
	case p.Repo.Path != "" || w.Branch == "":
	case w.Branch == "auto":
		p.Branch, p.Own = OwnBranch(w.Profile), true
	default:
		p.Branch = "refs/heads/" + w.Branch
		p.Own = p.Branch == OwnBranch(w.Profile)
	}
}

// place says where in the sandbox the parts are. A .git that is a directory
// stays one. Where it is a file, the sandbox has another file there, which leads
// out of the workspace to a git directory of the form that linked working trees
// have: of those, git does not ask the configuration where the working tree is.
func (p *Place) place() {
	all := filepath.Join(insideAll, strconv.Itoa(p.N))
	if p.N > 0 {
		p.Host = all + ".host"
	}
	for i := range p.Repo.Alternates {
		p.Alternates = append(p.Alternates, all+".alt"+strconv.Itoa(i))
	}
	p.Common = all
	if p.Repo.Kind == Dir {
		p.Common = filepath.Join("/workspace", p.Repo.Path, ".git")
		p.Git = p.Common
		return
	}
	p.Git = p.Common + "/worktrees/this"
}

// Linked tells whether the place's .git is a file.
func (p Place) Linked() bool { return p.Repo.Kind != Dir }

// Store is where on the host the place's objects, refs and logs are written in
// quarantine: objects/, refs/ and logs/ below it are all that the sandbox can
// write to, and packed-refs is what it was given to begin with.
func (s Shadow) Store(p Place) string {
	if p.N == 0 {
		return s.Dir
	}
	return filepath.Join(s.Dir, "nested", strconv.Itoa(p.N))
}

// Live is where the helper has the place's common directory: the sandbox's own
// packed-refs are there, and for a Place that is not Linked, HEAD.
func (s Shadow) Live(p Place) string { return filepath.Join(s.At, strconv.Itoa(p.N)) }

// part is where the helper has something else of a place.
func (s Shadow) part(p Place, name string) string { return s.Live(p) + "." + name }

// Mount is what the sandbox gets at one path: a file or directory that the
// helper has.
type Mount struct {
	Source, Target string
	ReadOnly       bool
}

// Mounts lists what has to be mounted in the sandbox, parents first. Each is a
// mount of the sandbox's own: one that is only in the helper's file system can
// be renamed and removed by the sandbox like any directory, since it is no
// mount in the namespace that its system calls come from.
func (s Shadow) Mounts() (out []Mount) {
	for _, p := range s.Places {
		out = append(out, Mount{s.Live(p), p.Common, false}, Mount{s.part(p, "host"), p.Host, true})
		if p.Linked() {
			out = append(out, Mount{s.part(p, "file"), filepath.Join("/workspace", p.Repo.Path, ".git"), true})
		}
		for i, at := range p.Alternates {
			out = append(out, Mount{s.part(p, "alt"+strconv.Itoa(i)), at, true})
		}
		if s.inner(p) {
			continue
		}
		out = append(out, Mount{s.part(p, "objects"), p.Common + "/objects", false})
		// Whoever writes in info has git read objects from anywhere.
		out = append(out, Mount{s.part(p, "info"), p.Common + "/objects/info", true})
		out = append(out, Mount{s.part(p, "refs"), p.Common + "/refs", false}, Mount{s.part(p, "logs"), p.Common + "/logs", false})
		if s.headLog(p) {
			out = append(out, Mount{s.part(p, "log"), p.Common + "/logs/HEAD", false})
		}
	}
	return out
}

// inner tells whether what a place writes to is mounted by the helper only. Of
// nested ones in quarantine the sandbox can take that away, and loses by it
// nothing but its own: gVisor has no room for more than some 250 mounts.
func (s Shadow) inner(p Place) bool { return s.Mode == Quarantine && p.N > 0 }

// headLog tells whether the sandbox needs another log of what is checked out
// than the host's: git takes "the branch before" from there.
func (s Shadow) headLog(p Place) bool {
	return s.Mode == Writeback && !p.Linked() && p.Repo.HeadLog
}

// Sources lists what the sandbox reads of directories that are not in the
// workspace, by the place it has there: somebody has to agree to each.
func (r Repo) Sources() map[string]string {
	out := map[string]string{}
	n := 0
	for _, repo := range append([]Repo{r}, r.Nested...) {
		if repo.Kind == None || repo.Kind == Above {
			continue
		}
		p := Place{Repo: repo, N: n, Host: InsideHost}
		p.place()
		if !within(repo.CommonDir, r.Workspace) {
			out[p.Host] = repo.CommonDir
		}
		for i, a := range repo.Alternates {
			if !within(a, r.Workspace) {
				out[p.Alternates[i]] = a
			}
		}
		n++
	}
	return out
}
