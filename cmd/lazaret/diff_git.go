package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
	"lazaret/lock/config"
)

// gitTime bounds one call of git.
const gitTime = 30 * time.Second

// git asks git about the repository that the workspace is in. What lies in it
// may have been written by an agent, so nothing that the repository or its
// configuration names is run, fetched, locked or replaced: no pager, hook,
// monitor, filter, text conversion, transport or replacement object. Only
// commands that read objects may be asked.
func (d *deps) git(ctx context.Context, args ...string) ([]byte, error) {
	program, err := d.program("git")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	argv := append([]string{
		program, "--no-pager", "--literal-pathspecs",
		"-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never",
	}, args...)
	env := []string{
		"PATH=/usr/bin:/bin", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0",
	}
	// The person's own settings say which directories of others are safe.
	for _, k := range []string{"XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM"} {
		if v := d.env(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	if d.home != "" {
		env = append(env, "HOME="+d.home)
	}
	return proc.Output(ctx, proc.Cmd{Argv: argv, Env: env, Dir: d.cwd})
}

// maxLock is the most bytes a lock may have.
const maxLock = 1 << 20

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
	if n, err := strconv.ParseInt(string(bytes.TrimSpace(size)), 10, 64); err != nil || n > maxLock {
		return nil, spec, fmt.Errorf("%s is larger than 1 MiB", config.Show(spec))
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
	for _, dir := range filepath.SplitList(d.env("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil || strings.HasPrefix(file, d.cwd+"/") {
			continue
		}
		if fi, err := os.Stat(file); err == nil && fi.Mode().IsRegular() && unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
	}
	return "", hinted{fmt.Errorf("%s is not installed", name), "install it, or compare two files"}
}
