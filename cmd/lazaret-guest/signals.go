package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// endings are the signals that end a program that does nothing about them.
func endings() []os.Signal {
	return []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}
}

// superviseAsInit gives pid 1 what other processes have from the kernel: to be
// ended by signals, with the status a parent would see; and what is its duty:
// to reap orphans.
func superviseAsInit() {
	ended := make(chan os.Signal, 4)
	disposition.ended = ended
	signal.Notify(ended, endings()...)
	go func() {
		for s := range ended {
			if !disposition.handles(s) {
				os.Exit(128 + int(s.(syscall.Signal)))
			}
		}
	}()
	orphans := make(chan os.Signal, 1)
	signal.Notify(orphans, syscall.SIGCHLD)
	go func() {
		for range orphans {
			children.reap()
		}
	}()
}

// family keeps the children that are waited for apart from the orphans that
// pid 1 inherits.
type family struct {
	mu  sync.Mutex
	own map[int]bool
}

func (f *family) start(cmd *exec.Cmd) error {
	f.mu.Lock() // so that a child cannot end and be reaped before it is known
	defer f.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	f.own[cmd.Process.Pid] = true
	return nil
}

func (f *family) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	f.mu.Lock()
	delete(f.own, cmd.Process.Pid)
	f.mu.Unlock()
	f.reap() // what ended behind it and was out of sight
	return err
}

// reap collects every ended child that nobody waits for. It looks before it
// takes: the first in line may be one of ours, whose status is its waiter's.
func (f *family) reap() {
	if os.Getpid() != 1 {
		return
	}
	for {
		f.mu.Lock()
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		pid := int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), 16))) // si_pid, on 64-bit machines
		if err != nil || pid == 0 || f.own[pid] {
			f.mu.Unlock()
			return
		}
		unix.Wait4(pid, nil, unix.WNOHANG, nil)
		f.mu.Unlock()
	}
}

// dispositions are what the shell does about signals.
type dispositions struct {
	ended chan<- os.Signal // pid 1 only: where signals go that end it

	mu          sync.Mutex
	interactive bool
	traps       map[os.Signal]trap
	pending     []string
}

type trap struct {
	action string         // "" ignores the signal
	ch     chan os.Signal // nil when ignored
}

// Signals and children are the process's, so there is one of each of these.
var (
	children    = &family{own: make(map[int]bool)}
	disposition = &dispositions{traps: make(map[os.Signal]trap)}
)

// handles is true when s does not end the shell.
func (d *dispositions) handles(s os.Signal) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, trapped := d.traps[s]; trapped {
		return true
	}
	return d.interactive && (s == syscall.SIGINT || s == syscall.SIGQUIT)
}

// set changes what happens on s; a nil action is the default again.
func (d *dispositions) set(s syscall.Signal, action *string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, trapped := d.traps[s]; trapped {
		delete(d.traps, s)
		if old.ch != nil {
			signal.Stop(old.ch)
		} else {
			// Ignoring took the runtime's handler away and only this puts it
			// back; without one the signal would stay ignored.
			back := make(chan os.Signal, 1)
			signal.Notify(back, s)
			signal.Stop(back)
		}
		if d.ended != nil && slices.Contains(endings(), os.Signal(s)) {
			signal.Notify(d.ended, s)
		}
	}
	switch {
	case action == nil:
	case *action == "":
		d.traps[s] = trap{}
		signal.Ignore(s) // inherited by what the shell starts, as it should be
	default:
		ch := make(chan os.Signal, 1)
		d.traps[s] = trap{*action, ch}
		signal.Notify(ch, s)
		go func() {
			for range ch {
				d.mu.Lock()
				d.pending = append(d.pending, d.traps[s].action)
				d.mu.Unlock()
			}
		}()
	}
}

// takePending returns the trap actions of the signals that came.
func takePending() string {
	d := disposition
	d.mu.Lock()
	defer d.mu.Unlock()
	actions := strings.Join(d.pending, "\n")
	d.pending = nil
	return actions
}

// isSignalTrap tells traps for signals from those the interpreter knows.
func isSignalTrap(args []string) bool {
	if len(args) < 2 || strings.HasPrefix(args[0], "-") && args[0] != "-" {
		return false
	}
	for _, name := range args[1:] {
		if _, ok := signalByName(name); !ok || name == "0" {
			return false
		}
	}
	return true
}

// setTraps sets what happens on a signal: between two commands, not in one.
func setTraps(hc interp.HandlerContext, args []string) error {
	action := &args[0]
	if args[0] == "-" {
		action = nil
	}
	for _, name := range args[1:] {
		s, _ := signalByName(name)
		if s == syscall.SIGKILL || s == syscall.SIGSTOP {
			fmt.Fprintf(hc.Stderr, "trap: %s cannot be trapped\n", name)
			return exitStatus(1)
		}
		disposition.set(s, action)
	}
	return nil
}

func signalByName(name string) (syscall.Signal, bool) {
	if n, err := strconv.Atoi(name); err == nil {
		return syscall.Signal(n), n >= 0 && n < 65
	}
	name = strings.ToUpper(name)
	s := unix.SignalNum("SIG" + strings.TrimPrefix(name, "SIG"))
	return s, s != 0
}

const killUsage = "[-s SIGNAL | -SIGNAL] PID...  or  kill -l"

// killCmd is kill.
func killCmd(c *call) int {
	args, sig := c.args, syscall.SIGTERM
	if len(args) > 0 && args[0] == "-l" {
		for s := syscall.Signal(1); s < 32; s++ {
			fmt.Fprintln(c.out, strings.TrimPrefix(unix.SignalName(s), "SIG"))
		}
		return 0
	}
	if len(args) > 1 && args[0] != "--" && strings.HasPrefix(args[0], "-") {
		name := args[0][1:]
		args = args[1:]
		if (name == "s" || name == "n") && len(args) > 0 {
			name, args = args[0], args[1:]
		}
		var ok bool
		if sig, ok = signalByName(name); !ok {
			return c.fail("no signal " + name)
		}
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return c.usage(killUsage)
	}
	status := 0
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		if err != nil {
			status = c.fail(fmt.Sprintf("%q is not a process id", arg))
			continue
		}
		if err := unix.Kill(pid, sig); err != nil {
			status = c.fail(fmt.Sprintf("%d: %v", pid, err))
		}
		if pid == os.Getpid() && sig != 0 {
			// What a signal to oneself does is done before the next command.
			// There is no telling when the runtime has delivered it.
			time.Sleep(50 * time.Millisecond)
		}
	}
	return status
}
