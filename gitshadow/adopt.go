package gitshadow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"lazaret/internal/proc"
)

// Adoption is how the branch that is checked out on the host takes in commits
// of a sandbox whose working tree is the host's own: the branch and the index
// move, the files stay as they are, which is where the sandbox changed them.
// What is staged and of no concern to the commits stays staged.
type Adoption struct {
	Repo   Repo
	Branch string // full name; it is checked out
	Source string // the ref that is taken in
	From   string // where Source leads
	Old    string // where Branch leads; "" where it is not born
	Tree   string // what Branch will hold
	Merge  bool   // a merge: else Branch is moved forward to From
	// Commits are those that come in, newest first: "ID subject", untrusted.
	Commits []string
	Changes []Change
	// Stale are paths whose file is still what it was before the commits: it
	// was put back, or the sandbox committed from elsewhere.
	Stale []string
}

// Change is one path of the index.
type Change struct {
	Path string // untrusted
	Mode string // "" where it goes
	ID   string
}

// NothingError is an adoption with nothing to take in.
type NothingError struct{ Source string }

func (e *NothingError) Error() string {
	return "there is nothing in " + strings.TrimPrefix(e.Source, "refs/heads/") + " that your branch does not have"
}

// PlanAdoption looks at what taking in a ref means. It changes nothing but
// that the objects of a merge are written. A *RefusedError says why it cannot be
// done without losing or staging something of the person's.
func PlanAdoption(ctx context.Context, program string, r Repo, h HostRefs, source string) (*Adoption, error) {
	g := hostGit(program, r)
	a := &Adoption{Repo: r, Source: source, From: h.Refs[source]}
	if a.From == "" {
		return nil, &RefusedError{"there is no " + show(source), "\"lazaret merge --list\" says what there is"}
	}
	if err := a.start(ctx, g); err != nil {
		return nil, err
	}
	if err := a.tree(ctx, g); err != nil {
		return nil, err
	}
	var err error
	if a.Changes, err = treeChanges(ctx, g, a.oldTree(), a.Tree); err != nil {
		return nil, err
	}
	if err := a.check(ctx, g); err != nil {
		return nil, err
	}
	before, err := treeChanges(ctx, g, a.Tree, a.oldTree())
	if err != nil {
		return nil, err
	}
	a.Stale = staleFiles(r, a.Changes, before)
	out, err := g.Feed(ctx, []byte(revisions(a.From, have(a.Old))), "rev-list", "--no-commit-header", "--max-count=200", "--format=%h %s", "--stdin")
	for line := range strings.Lines(string(out)) {
		a.Commits = append(a.Commits, strings.TrimSuffix(line, "\n"))
	}
	return a, err
}

func have(id string) []string {
	if id == "" {
		return nil
	}
	return []string{id}
}

// underWay are files that say that git is in the middle of something.
var underWay = map[string]string{
	"MERGE_HEAD": "a merge", "rebase-merge": "a rebase", "rebase-apply": "a rebase", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert",
}

// start finds the branch that is checked out.
func (a *Adoption) start(ctx context.Context, g Git) error {
	for name, what := range underWay {
		if exists(filepath.Join(a.Repo.GitDir, name)) {
			return refuse("finish it or abort it, then run this again: \"git status\" says how", what+" is under way here")
		}
	}
	branch, err := g.Line(ctx, "symbolic-ref", "-q", "HEAD")
	if proc.ExitStatus(err) == 1 {
		return refuse("\"git switch main\", or whatever your branch is called", "no branch is checked out here: there is nothing to move")
	}
	if err != nil {
		return err
	}
	if a.Branch = branch; branch == a.Source {
		return refuse("\"git switch main\", or whatever your branch is called", "the branch that is checked out is the sandbox's own")
	}
	id, err := g.Line(ctx, "rev-parse", "-q", "--verify", branch)
	if err != nil && proc.ExitStatus(err) != 1 {
		return err
	}
	a.Old = id
	return nil
}

// oldTree is what is compared with: git knows the empty tree without having it.
func (a *Adoption) oldTree() string {
	switch {
	case a.Old != "":
		return a.Old
	case a.Repo.ObjectFormat == "sha256":
		return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}

// tree finds out what the branch will hold.
func (a *Adoption) tree(ctx context.Context, g Git) (err error) {
	if a.Old == "" {
		a.Tree = a.From
		return nil
	}
	if in, err := leads(ctx, g, a.From, a.Old); err != nil || in {
		if in {
			return &NothingError{a.Source}
		}
		return err
	}
	ahead, err := leads(ctx, g, a.Old, a.From)
	if err != nil {
		return err
	}
	if ahead {
		a.Tree = a.From
		return nil
	}
	a.Merge = true
	// No configuration of anybody's takes part: a merge driver is a program.
	m, done, err := apart(g, a.Repo)
	if err != nil {
		return err
	}
	defer done()
	out, err := m.Output(ctx, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", a.Old, a.From)
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	switch {
	case proc.ExitStatus(err) == 1:
		var paths []string
		for _, p := range fields[1:] {
			if p != "" {
				paths = append(paths, show(p))
			}
		}
		return refuse("have the agent merge your branch (\"git merge "+strings.TrimPrefix(a.Branch, "refs/heads/")+"\" in the sandbox), or commit what you have and run \"git merge "+strings.TrimPrefix(a.Source, "refs/heads/")+"\"",
			"both sides have changed the same lines of "+list(paths, 5))
	case err != nil:
		return fmt.Errorf("merging: %w", err)
	case !isID(fields[0], a.Repo.ObjectFormat):
		return errors.New("merging: git does not say what it made")
	}
	a.Tree = fields[0]
	return nil
}

// treeChanges lists what differs from one tree to another.
func treeChanges(ctx context.Context, g Git, from, to string) ([]Change, error) {
	out, err := g.Output(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to, "--")
	if err != nil {
		return nil, err
	}
	return parseRaw(out)
}

// parseRaw reads git's raw difference: of each path, what it is after.
func parseRaw(out []byte) (list []Change, err error) {
	fields := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
	if len(out) == 0 {
		return nil, nil
	}
	for i := 0; i+1 < len(fields); i += 2 {
		// :OLDMODE MODE OLDID ID STATUS
		f := strings.Fields(string(fields[i]))
		if len(f) != 5 || len(fields[i]) == 0 || fields[i][0] != ':' {
			return nil, errors.New("git says what lazaret does not understand")
		}
		c := Change{Path: string(fields[i+1])}
		if f[1] != "000000" {
			c.Mode, c.ID = f[1], f[3]
		}
		list = append(list, c)
	}
	return list, nil
}

// check refuses what would lose something that is staged. Of every path that
// the commits change, the index must have what the branch had, or already what
// the commits have.
func (a *Adoption) check(ctx context.Context, g Git) error {
	out, err := g.Output(ctx, "ls-files", "-z", "--unmerged")
	if err != nil {
		return err
	}
	if len(out) > 0 {
		return refuse("resolve them: \"git status\" names them", "the index has conflicts that are not resolved")
	}
	out, err = g.Output(ctx, "diff-index", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", a.oldTree(), "--")
	if err != nil {
		return err
	}
	staged, err := parseRaw(out)
	if err != nil {
		return err
	}
	if bad := clashing(staged, a.Changes); len(bad) > 0 {
		return refuse("commit what is staged, or unstage it: \"git restore --staged -- PATH\" leaves the file as it is",
			"other changes are staged of "+list(bad, 5))
	}
	return nil
}

// clashing names the paths of which something is staged that the commits would
// take away.
func clashing(staged, changes []Change) (bad []string) {
	byPath := map[string]Change{}
	dirs := map[string]bool{} // that staged paths lie in
	for _, s := range staged {
		byPath[s.Path] = s
		for d := parent(s.Path); d != ""; d = parent(d) {
			dirs[d] = dirs[d] || s.Mode != ""
		}
	}
	for _, c := range changes {
		if s, ok := byPath[c.Path]; ok && (s.Mode != c.Mode || s.ID != c.ID) {
			bad = append(bad, show(c.Path))
			continue
		}
		if c.Mode == "" {
			continue
		}
		// A file where a directory of staged ones is, or the other way round.
		if dirs[c.Path] {
			bad = append(bad, show(c.Path))
		}
		for d := parent(c.Path); d != ""; d = parent(d) {
			if s, ok := byPath[d]; ok && s.Mode != "" {
				bad = append(bad, show(d))
			}
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)]
}

// list names some of many.
func list(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
