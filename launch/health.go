package launch

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lazaret/gitshadow"
	"lazaret/internal/proc"
	"lazaret/launch/podman"
)

// Verdicts of a Finding.
const (
	Good    = "ok"
	Lacking = "note"  // something works less well, or is not there to be had
	Failing = "fails" // launch does not work
)

// Finding is what became of one requirement on the machine.
type Finding struct {
	ID      string `json:"id"`    // a word for it, the same in every version
	What    string `json:"what"`  // the requirement
	Found   string `json:"found"` // what there is
	Verdict string `json:"verdict"`
	Fix     string `json:"fix,omitempty"` // what to do where it is not ok
}

// machine is what the examination looks at: the real one, or a test's.
type machine struct {
	files  fs.FS // the root directory
	uid    int
	user   string
	getenv func(string) string
	path   string // PATH
	ws     string // programs are not looked for below it
	// output runs a program with the person's environment where it matters.
	output func(ctx context.Context, argv ...string) (string, error)
	free   func(path string) (uint64, error) // bytes
	// version is what git says of itself.
	version func(ctx context.Context) (string, error)
}

// examineTime bounds one program that an examination runs.
const examineTime = 30 * time.Second

// Examine looks at everything that launching needs of this machine, and changes
// nothing. It starts no sandbox.
func Examine(ctx context.Context, e Env, user string) []Finding {
	m := machine{
		files: os.DirFS("/"), uid: os.Getuid(), user: user, getenv: e.Getenv, path: e.Getenv("PATH"), ws: e.Workspace,
		output: func(ctx context.Context, argv ...string) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, examineTime)
			defer cancel()
			out, err := proc.Output(ctx, proc.Cmd{Argv: argv, Env: podman.Environ(e.Getenv, "")})
			return string(out), err
		},
		free: freeBytes,
		version: func(ctx context.Context) (string, error) {
			program, err := gitshadow.FindGit(e.Getenv("PATH"), e.Workspace)
			if err != nil {
				return "", err
			}
			return gitshadow.Git{Program: program}.Line(ctx, "version")
		},
	}
	return m.examine(ctx)
}

func (m machine) examine(ctx context.Context) []Finding {
	out := m.account(ctx)
	if m.uid == 0 {
		return out // root's podman would be made where there is none
	}
	for _, check := range []func(context.Context) []Finding{
		m.kernel, m.namespaces, m.subordinate, m.runtimeDir,
		m.podman, m.runsc, m.router, m.devices, m.overlay,
		m.cgroups, m.selinux, m.git, m.terminal, m.disk, m.linger,
	} {
		out = append(out, check(ctx)...)
	}
	return out
}

func ok(id, what, format string, args ...any) []Finding {
	return []Finding{{id, what, fmt.Sprintf(format, args...), Good, ""}}
}

func lacking(id, what, fix, format string, args ...any) []Finding {
	return []Finding{{id, what, fmt.Sprintf(format, args...), Lacking, fix}}
}

func failing(id, what, fix, format string, args ...any) []Finding {
	return []Finding{{id, what, fmt.Sprintf(format, args...), Failing, fix}}
}

// read gives a file's text without its final newline; "" where there is none.
func (m machine) read(path string) string {
	b, err := fs.ReadFile(m.files, strings.TrimPrefix(path, "/"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (m machine) exists(path string) bool {
	_, err := fs.Stat(m.files, strings.TrimPrefix(path, "/"))
	return err == nil
}

// look finds a program as launch would.
func (m machine) look(name, path string) (string, bool) {
	file, err := lookPath(name, path, m.ws)
	return file, err == nil
}

// dirOf gives a directory that exists: dir, or the nearest above it.
func dirOf(dir string) string {
	for {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
