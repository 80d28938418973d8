package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// The interpreter lacks these builtins, or has lesser ones. They are passed
// under names of our own, which nobody types. A function of such a name is not
// called: the interpreter does not tell of it.
const (
	callExec  = ".exec"
	callKill  = ".kill"
	callUmask = ".umask"
	callTrap  = ".trap"
	callEcho  = ".echo"
)

func reroute(_ context.Context, args []string) ([]string, error) {
	words := args
	if words[0] == "command" && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
		words = words[1:]
	}
	switch words[0] {
	case "echo":
		if len(words) < 2 || !strings.HasPrefix(words[1], "-") {
			return append([]string{callEcho}, words[1:]...), nil
		}
	case "kill":
		return append([]string{callKill}, words[1:]...), nil
	case "umask":
		return append([]string{callUmask}, words[1:]...), nil
	case "trap":
		if isSignalTrap(words[1:]) {
			return append([]string{callTrap}, words[1:]...), nil
		}
	}
	return args, nil
}

// markExec has exec replace the process where it is the shell itself that runs
// it. The interpreter's own starts a child, and runs subshells in this process
// too, which must not replace it; so only what lies outside them is marked.
func markExec(stmts []*syntax.Stmt) {
	for _, s := range stmts {
		if s.Background || s.Coprocess {
			continue
		}
		switch cmd := s.Cmd.(type) {
		case *syntax.CallExpr:
			if len(cmd.Args) > 1 && cmd.Args[0].Lit() == "exec" {
				cmd.Args[0] = quoted(callExec)
			}
		case *syntax.BinaryCmd:
			if cmd.Op == syntax.AndStmt || cmd.Op == syntax.OrStmt {
				markExec([]*syntax.Stmt{cmd.X, cmd.Y})
			}
		case *syntax.Block:
			markExec(cmd.Stmts)
		case *syntax.IfClause:
			for i := cmd; i != nil; i = i.Else {
				markExec(i.Cond)
				markExec(i.Then)
			}
		case *syntax.WhileClause:
			markExec(cmd.Do)
		case *syntax.ForClause:
			markExec(cmd.Do)
		case *syntax.CaseClause:
			for _, item := range cmd.Items {
				markExec(item.Stmts)
			}
		}
	}
}

// execute runs what is no builtin of the interpreter.
func execute(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	switch args[0] {
	case callExec:
		return replace(hc, args[1:])
	case callUmask:
		return umask(hc, args[1:])
	case callEcho: // in one write, so that lines of two processes do not mix
		if _, err := io.WriteString(hc.Stdout, strings.Join(args[1:], " ")+"\n"); err != nil {
			fmt.Fprintf(hc.Stderr, "sh: echo: %v\n", reason(err))
			return exitStatus(1)
		}
		return nil
	case callTrap:
		return setTraps(hc, args[1:])
	}
	var err error
	if args[0] == callKill {
		err = exitStatus(killCmd(&call{name: "kill", args: args[1:], out: hc.Stdout, err: hc.Stderr}))
	} else {
		err = start(hc, args)
	}
	if action := takePending(); action != "" {
		if trapped := hc.Builtin(ctx, []string{"eval", action}); trapped != nil {
			return trapped
		}
	}
	return err
}

func exitStatus(code int) error {
	if code == 0 {
		return nil
	}
	return interp.ExitStatus(code)
}

// start runs a program and waits for it.
func start(hc interp.HandlerContext, args []string) error {
	path, code := lookup(hc, args[0])
	if code != 0 {
		return exitStatus(code)
	}
	cmd := command(hc, path, args)
	err := children.start(cmd)
	if errors.Is(err, syscall.ENOEXEC) && isText(path) { // a script without #!
		cmd = command(hc, "/proc/self/exe", append([]string{"sh", path}, args[1:]...))
		err = children.start(cmd)
	}
	if err != nil {
		fmt.Fprintf(hc.Stderr, "sh: %s: %v\n", args[0], reason(err))
		return exitStatus(cannotStart(err))
	}
	err = children.wait(cmd)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitStatus(128 + int(status.Signal()))
	}
	return exitStatus(exit.ExitCode())
}

// isText tells a script from a binary for another machine.
func isText(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, 128)
	n, _ := f.Read(start)
	line, _, _ := bytes.Cut(start[:n], []byte("\n"))
	return !bytes.Contains(line, []byte{0})
}

func command(hc interp.HandlerContext, path string, args []string) *exec.Cmd {
	return &exec.Cmd{Path: path, Args: args, Env: exported(hc.Env), Dir: hc.Dir, Stdin: hc.Stdin, Stdout: hc.Stdout, Stderr: hc.Stderr}
}

func exported(env expand.Environ) []string {
	var list []string
	env.Each(func(name string, v expand.Variable) bool {
		if v.Exported && v.IsSet() && v.Kind == expand.String {
			list = append(list, name+"="+v.String())
		}
		return true
	})
	return list
}

// lookup finds a program, or says why not and returns the status for it: 127
// when there is none, 126 when it may not be run.
func lookup(hc interp.HandlerContext, name string) (path string, code int) {
	dirs := filepath.SplitList(hc.Env.Get("PATH").String())
	if strings.Contains(name, "/") {
		dirs = []string{""}
	}
	code = 127
	why := error(syscall.ENOENT)
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(hc.Dir, path)
		}
		fi, err := os.Stat(path)
		switch {
		case err != nil:
			if errors.Is(err, fs.ErrPermission) {
				code, why = 126, syscall.EACCES
			}
		case fi.IsDir():
			if strings.Contains(name, "/") {
				code, why = 126, syscall.EISDIR
			}
		case fi.Mode()&0o111 == 0:
			code, why = 126, syscall.EACCES
		default:
			return path, 0
		}
	}
	if code == 127 && !strings.Contains(name, "/") {
		fmt.Fprintf(hc.Stderr, "sh: %s: not found\n", name)
	} else {
		fmt.Fprintf(hc.Stderr, "sh: %s: %v\n", name, why)
	}
	return "", code
}

// cannotStart is the status for a program that is there and did not start.
func cannotStart(err error) int {
	if errors.Is(err, fs.ErrNotExist) { // its interpreter, or it went meanwhile
		return 127
	}
	return 126
}

// reason leaves out what the message says already.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// replace is exec: this process becomes the program.
func replace(hc interp.HandlerContext, args []string) error {
	path, code := lookup(hc, args[0])
	if code != 0 {
		os.Exit(code) // a shell that cannot exec ends
	}
	// Out of the way first: what is to be 2 may be 1 now, and so on.
	var high [3]int
	for fd, stream := range []any{hc.Stdin, hc.Stdout, hc.Stderr} {
		f, ok := stream.(*os.File)
		if !ok {
			var err error
			if f, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return err
			}
		}
		n, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 10)
		if err != nil {
			return err
		}
		high[fd] = n
	}
	for fd, n := range high {
		if err := unix.Dup2(n, fd); err != nil {
			return err
		}
	}
	err := os.Chdir(hc.Dir)
	if err == nil {
		err = unix.Exec(path, args, exported(hc.Env))
		if err == unix.ENOEXEC && isText(path) {
			err = unix.Exec("/proc/self/exe", append([]string{"sh", path}, args[1:]...), exported(hc.Env))
		}
	}
	fmt.Fprintf(hc.Stderr, "sh: %s: %v\n", args[0], reason(err))
	os.Exit(cannotStart(err))
	return nil
}

func umask(hc interp.HandlerContext, args []string) error {
	if len(args) == 0 {
		old := unix.Umask(0)
		unix.Umask(old)
		fmt.Fprintf(hc.Stdout, "%04o\n", old)
		return nil
	}
	var mask int
	if _, err := fmt.Sscanf(args[0], "%o", &mask); err != nil || len(args) > 1 {
		fmt.Fprintln(hc.Stderr, "usage: umask [OCTAL]")
		return exitStatus(exitUsage)
	}
	unix.Umask(mask)
	return nil
}
