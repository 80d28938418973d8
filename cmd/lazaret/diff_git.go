package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"lazaret/gitshadow"
	"lazaret/internal/proc"
	"lazaret/lock/config"
)

// gitTime bounds one call of git.
const gitTime = 30 * time.Second

// git asks git about the repository that the workspace is in. What lies in it
// may have been written by an agent.
func (d *deps) git(ctx context.Context, args ...string) ([]byte, error) {
	program, err := gitshadow.FindGit(d.env("PATH"), d.cwd)
	if err != nil {
		return nil, hinted{err, "install it, or compare two files"}
	}
	// The person's own settings say which directories of others are safe.
	g := gitshadow.Git{Program: program, Dir: d.cwd, Home: d.home, ConfigHome: d.env("XDG_CONFIG_HOME"), Time: gitTime}
	return g.Output(ctx, args...)
}

// lockAt reads the lock of a revision: REV, REV: or REV:PATH. It also says
// what was read. A revision without a lock is fs.ErrNotExist.
func (d *deps) lockAt(ctx context.Context, arg string) (data []byte, spec string, err error) {
	rev, path, _ := strings.Cut(arg, ":")
	if path == "" {
		path = "./lazaret.lock"
	}
	spec = rev + ":" + strings.TrimPrefix(path, "./")
	if rev == "" || strings.HasPrefix(rev, "-") {
		return nil, spec, usage("%s is neither a file nor a git revision", config.Show(arg))
	}
	if _, err := d.git(ctx, "rev-parse", "--quiet", "--verify", rev+"^{commit}"); err != nil {
		if proc.ExitStatus(err) < 0 {
			return nil, spec, err
		}
		if _, err := d.git(ctx, "rev-parse", "--git-dir"); err != nil {
			return nil, spec, noRepository(err)
		}
		if rev == "HEAD" && d.unborn(ctx) {
			return nil, spec, fs.ErrNotExist
		}
		return nil, spec, hinted{
			fmt.Errorf("%s is neither a file here nor a git revision", config.Show(rev)),
			"name a lock file, or a branch, tag or commit that this repository has",
		}
	}
	id, err := d.git(ctx, "rev-parse", "--quiet", "--verify", rev+":"+path)
	if err != nil {
		return nil, spec, fs.ErrNotExist
	}
	oid := strings.TrimSpace(string(id))
	size, err := d.git(ctx, "cat-file", "-s", oid)
	if err != nil {
		return nil, spec, err
	}
	if n, err := strconv.ParseInt(string(bytes.TrimSpace(size)), 10, 64); err != nil || n > config.MaxFile {
		return nil, spec, hinted{fmt.Errorf("%s is larger than 4 MiB", config.Show(spec)), "name a revision or a file that is a lock"}
	}
	data, err = d.git(ctx, "cat-file", "blob", oid)
	return data, spec, err
}

// noRepository tells why git does not answer at all.
func noRepository(err error) error {
	said := err.Error()
	var pe *proc.Error
	if errors.As(err, &pe) && pe.Stderr != "" {
		said, _, _ = strings.Cut(pe.Stderr, "\n")
	}
	return hinted{errors.New("git: " + config.Show(strings.TrimPrefix(said, "fatal: "))), "compare two files: lazaret diff OLD.lock NEW.lock"}
}

// unborn reports whether the repository has no commit yet.
func (d *deps) unborn(ctx context.Context) bool {
	_, err := d.git(ctx, "symbolic-ref", "--quiet", "HEAD")
	return err == nil
}

// program finds a program in PATH, never relative to the current directory and
// never inside the workspace, where an agent could have put it.
func (d *deps) program(name string) (string, error) {
	if file := proc.Find(name, d.env("PATH"), d.cwd); file != "" {
		return file, nil
	}
	return "", hinted{fmt.Errorf("%s is not installed", name), "install it, or compare two files"}
}
