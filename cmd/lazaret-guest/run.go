package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// copyTo copies an input as it is.
func copyTo(w io.Writer) func(string, io.Reader) error {
	return func(_ string, in io.Reader) error {
		_, err := io.Copy(w, in)
		return err
	}
}

// findProgram is what which, env and timeout find in PATH.
func findProgram(name string) (path string, status int) {
	if os.Getenv("PATH") == "" { // env -i: look where everybody looks then
		os.Setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
		defer os.Unsetenv("PATH")
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, 0
	case errors.Is(err, os.ErrPermission):
		return "", 126
	}
	return "", 127
}

func which(c *call) int {
	if len(c.args) == 0 {
		return c.usage("NAME...")
	}
	status := 0
	for _, name := range c.args {
		path, missing := findProgram(name)
		if missing != 0 {
			status = 1
			continue
		}
		fmt.Fprintln(c.out, path)
	}
	return status
}

// env prints the environment, or runs a program in a changed one.
func env(c *call) int {
	opts, args, err := parse(c.args, "iu:0")
	if err != nil {
		return c.usage("[-i0] [-u NAME] [NAME=VALUE...] [COMMAND [ARGUMENT...]]")
	}
	if opts.has('i') {
		os.Clearenv()
	}
	for _, name := range opts['u'] {
		os.Unsetenv(name)
	}
	for len(args) > 0 && strings.Contains(args[0], "=") {
		name, value, _ := strings.Cut(args[0], "=")
		if err := os.Setenv(name, value); err != nil {
			return c.fail(err)
		}
		args = args[1:]
	}
	if len(args) == 0 {
		end := "\n"
		if opts.has('0') {
			end = "\x00"
		}
		for _, kv := range os.Environ() {
			fmt.Fprint(c.out, kv, end)
		}
		return 0
	}
	path, status := findProgram(args[0])
	if status == 0 {
		err := unix.Exec(path, args, os.Environ())
		if err == unix.ENOEXEC {
			err = unix.Exec("/proc/self/exe", append([]string{"sh", path}, args[1:]...), os.Environ())
		}
		c.fail(&os.PathError{Op: "running", Path: path, Err: err})
		return cannotStart(err)
	}
	c.fail(args[0] + ": not found or not executable")
	return status
}

// seconds parses 1, 0.5, 2s, 3m, 1h, 1d.
func seconds(s string) (time.Duration, error) {
	unit := time.Second
	if n := len(s); n > 0 {
		if u, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[s[n-1]]; ok {
			unit, s = u, s[:n-1]
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err == nil && f < 0 {
		err = strconv.ErrRange
	}
	return time.Duration(f * float64(unit)), err
}

func sleep(c *call) int {
	if len(c.args) == 0 {
		return c.usage("SECONDS...")
	}
	var total time.Duration
	for _, a := range c.args {
		if a == "infinity" {
			select {}
		}
		d, err := seconds(a)
		if err != nil {
			return c.usage("SECONDS...")
		}
		total += d
	}
	time.Sleep(total)
	return 0
}

// timeout ends a program after a while, with status 124.
func timeout(c *call) int {
	const synopsis = "[-s SIGNAL] [-k SECONDS] SECONDS COMMAND [ARGUMENT...]"
	opts, args, err := parse(c.args, "s:k:")
	if err != nil || len(args) < 2 {
		return c.usage(synopsis)
	}
	limit, err := seconds(args[0])
	sig, ok := signalByName(opts.value('s', "TERM"))
	if err != nil || !ok {
		return c.usage(synopsis)
	}
	path, status := findProgram(args[1])
	if status != 0 {
		c.fail(args[1] + ": not found or not executable")
		return status
	}
	cmd := &exec.Cmd{Path: path, Args: args[1:], Stdin: c.in, Stdout: c.out, Stderr: c.err}
	if err := children.start(cmd); err != nil {
		c.fail(err)
		return cannotStart(err)
	}
	expired := time.AfterFunc(limit, func() { cmd.Process.Signal(sig) })
	if k := opts.value('k', ""); k != "" {
		more, err := seconds(k)
		if err != nil {
			return c.usage(synopsis)
		}
		defer time.AfterFunc(limit+more, func() { cmd.Process.Kill() }).Stop()
	}
	children.wait(cmd)
	if limit > 0 && !expired.Stop() {
		return 124
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// dd copies blocks; it knows if, of, bs, count, skip and seek.
func dd(c *call) int {
	set := map[string]string{"if": "-", "of": "", "bs": "512", "count": "-1", "skip": "0", "seek": "0", "status": "", "conv": ""}
	for _, a := range c.args {
		k, v, ok := strings.Cut(a, "=")
		if _, known := set[k]; !ok || !known {
			return c.usage("[if=FILE] [of=FILE] [bs=N] [count=N] [skip=N] [seek=N] [conv=notrunc]")
		}
		set[k] = v
	}
	n := make(map[string]int64)
	for _, k := range []string{"bs", "count", "skip", "seek"} {
		v, err := size(set[k])
		if err != nil || k == "bs" && v <= 0 {
			return c.fail(fmt.Sprintf("%s=%s is not a size", k, set[k]))
		}
		n[k] = v
	}
	in, err := c.open(set["if"])
	if err != nil {
		return c.fail(err)
	}
	defer in.Close()
	out := c.out
	if of := set["of"]; of != "" {
		flag := os.O_WRONLY | os.O_CREATE
		if set["conv"] != "notrunc" && n["seek"] == 0 {
			flag |= os.O_TRUNC
		}
		f, err := os.OpenFile(filepath.Clean(of), flag, 0o666)
		if err != nil {
			return c.fail(err)
		}
		defer f.Close()
		if _, err := f.Seek(n["seek"]*n["bs"], io.SeekStart); err != nil && n["seek"] > 0 {
			return c.fail(err)
		}
		out = f
	}
	if _, err := io.CopyN(io.Discard, in, n["skip"]*n["bs"]); err != nil && err != io.EOF {
		return c.fail(err)
	}
	var copied int64
	buf := make([]byte, n["bs"])
	for blocks := int64(0); n["count"] < 0 || blocks < n["count"]; blocks++ {
		k, err := io.ReadFull(in, buf)
		if k > 0 {
			if _, err := out.Write(buf[:k]); err != nil {
				return c.fail(err)
			}
			copied += int64(k)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		} else if err != nil {
			return c.fail(err)
		}
	}
	if set["status"] != "none" {
		fmt.Fprintf(c.err, "%d bytes copied\n", copied)
	}
	return 0
}

// size parses 512, 4k, 1M, 2G.
func size(s string) (int64, error) {
	unit := int64(1)
	if n := len(s); n > 0 {
		if u, ok := map[byte]int64{'k': 1 << 10, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}[s[n-1]]; ok {
			unit, s = u, s[:n-1]
		}
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return v * unit, err
}
