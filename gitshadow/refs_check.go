package gitshadow

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// RefChange is a ref of the host's that is not what it was when a sandbox that
// writes to the host's own refs began: by its doing, or by the person's.
type RefChange struct {
	Ref      string // full name, or a path below the git directory: untrusted
	Was, Now string // "" where there was, or is, none
	Why      string // why that is told: in plain words
}

// Restore are the words after "git" of the command that makes it what it was;
// none where there is no such command.
func (c RefChange) Restore() []string {
	switch {
	case !isRef(c.Ref) || c.Was == "" && c.Now == "":
		return nil
	case c.Was == "":
		return []string{"update-ref", "-d", "--", c.Ref, c.Now}
	case c.Now == "":
		return []string{"update-ref", "--", c.Ref, c.Was, strings.Repeat("0", len(c.Was))}
	}
	return []string{"update-ref", "--", c.Ref, c.Was, c.Now}
}

// CheckRefs compares the refs of a repository that a sandbox wrote to with what
// they were, and looks for what git would follow or stumble over. What the
// profile may do, and what only goes forward, is not told.
func CheckRefs(ctx context.Context, program string, s Store) ([]RefChange, error) {
	o, err := s.Origin()
	if err != nil {
		return nil, err
	}
	was, err := s.given(o.Repo.ObjectFormat)
	if err != nil {
		return nil, err
	}
	// First what is no ref: git follows a link there.
	out, err := strays(o.Repo, refEntries)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(out, func(c RefChange) bool { return strings.HasPrefix(c.Ref, "refs/") && c.Why == whyStray }) {
		return append(out, RefChange{Ref: "refs", Why: "they were not compared with what they were: git would read what is named above"}), nil
	}
	g := hostGit(program, o.Repo)
	host, err := readHost(ctx, g)
	if err != nil {
		return out, err
	}
	p := Policy{Profile: o.Profile, Run: o.Run, Given: was, Host: host}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		now := host.Refs[name]
		switch {
		case now == was[name] || p.own(name) && now != "":
		case now == "" && !p.own(name):
			out = append(out, RefChange{name, was[name], "", "it is gone"})
		case now != "":
			if ff, err := leads(ctx, g, was[name], now); err != nil || !ff {
				out = append(out, RefChange{name, was[name], now, "it was moved back, or aside"})
			} else if name != o.Branch {
				out = append(out, RefChange{name, was[name], now, "it was moved forward"})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(host.Refs)) {
		if was[name] != "" || p.own(name) || !seen(name) {
			continue
		}
		c := RefChange{name, "", host.Refs[name], "it is new"}
		short := strings.TrimPrefix(strings.TrimPrefix(name, "refs/heads/"), "refs/tags/")
		switch {
		case strings.HasPrefix(name, "refs/replace/"):
			c.Why = "it makes git show another object in place of one"
		case strings.HasPrefix(name, "refs/remotes/"):
			continue
		case !safeName.MatchString(short):
			c.Why = "it is new, and its name could be more than a name to a program"
		}
		out = append(out, c)
	}
	return out, nil
}

// whyStray is said of what git would follow, wait for or read without end.
const whyStray = "it is no file of git's: remove it before you use git here"

// strays finds what is in a repository's refs and logs that git does not make:
// links, which git would follow and write to, pipes, and locks left behind.
func strays(r Repo, most int) (out []RefChange, err error) {
	dir, err := openBeneath(r.CommonDir)
	if err != nil {
		return nil, err
	}
	defer dir.close()
	left := most
	var walk func(name string, depth int) error
	walk = func(name string, depth int) error {
		entries, err := dir.list(name, left)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			n, kind := e.Name(), e.Type()
			full := name + "/" + n
			if left--; left <= 0 {
				return errTooManyRefs
			}
			switch {
			case !kind.IsDir() && !kind.IsRegular():
				out = append(out, RefChange{Ref: full, Why: whyStray})
			case kind.IsDir() && depth > 0:
				if err := walk(full, depth-1); err != nil {
					return err
				}
			case filepath.Ext(n) == ".lock":
				out = append(out, RefChange{Ref: full, Why: "a lock that stands in git's way: remove it if no git is at work"})
			}
		}
		return nil
	}
	return out, errors.Join(walk("refs", refDepth), walk("logs", refDepth+1))
}
