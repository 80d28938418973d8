package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// dmesg prints the kernel's log; in gVisor that is gVisor's own.
func dmesg(c *call) int {
	const readAll, sizeBuffer = 3, 10 // SYSLOG_ACTION_…
	size, err := unix.Klogctl(sizeBuffer, nil)
	if err != nil {
		return c.fail(err)
	}
	buf := make([]byte, max(size, 1<<14))
	n, err := unix.Klogctl(readAll, buf)
	if err != nil {
		return c.fail(err)
	}
	for line := range strings.Lines(string(buf[:n])) {
		if end := strings.IndexByte(line, '>'); strings.HasPrefix(line, "<") && end > 0 {
			line = line[end+1:] // the priority
		}
		fmt.Fprint(c.out, line)
	}
	return 0
}

func uname(c *call) int {
	opts, args, err := parse(c.args, "asnrvmpo")
	if err != nil || len(args) > 0 {
		return c.usage("[-asnrvmo]")
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return c.fail(err)
	}
	var fields []string
	for _, f := range []struct {
		flag  byte
		value string
	}{
		{'s', unix.ByteSliceToString(u.Sysname[:])}, {'n', unix.ByteSliceToString(u.Nodename[:])},
		{'r', unix.ByteSliceToString(u.Release[:])}, {'v', unix.ByteSliceToString(u.Version[:])},
		{'m', unix.ByteSliceToString(u.Machine[:])}, {'o', "GNU/Linux"},
	} {
		if opts.has(f.flag) || opts.has('a') || len(opts) == 0 && f.flag == 's' {
			fields = append(fields, f.value)
		}
	}
	fmt.Fprintln(c.out, strings.Join(fields, " "))
	return 0
}

func hostname(c *call) int {
	name, err := os.Hostname()
	if err != nil {
		return c.fail(err)
	}
	fmt.Fprintln(c.out, name)
	return 0
}

func nproc(c *call) int {
	fmt.Fprintln(c.out, runtime.NumCPU())
	return 0
}

func date(c *call) int {
	opts, args, err := parse(c.args, "u")
	if err != nil || len(args) > 1 || len(args) == 1 && args[0][:min(1, len(args[0]))] != "+" {
		return c.usage("[-u] [+FORMAT]")
	}
	now := time.Now()
	if opts.has('u') {
		now = now.UTC()
	}
	format := "%a %b %e %H:%M:%S %Z %Y"
	if len(args) == 1 {
		format = args[0][1:]
	}
	fmt.Fprintln(c.out, strftime(format, now))
	return 0
}

func strftime(format string, t time.Time) string {
	layouts := map[byte]string{'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM",
		'Z': "MST", 'z': "-0700", 'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04", 'N': "000000000"}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch layout := layouts[format[i]]; {
		case format[i] == 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case format[i] == 'N':
			fmt.Fprintf(&b, "%09d", t.Nanosecond())
		case format[i] == 'n':
			b.WriteByte('\n')
		case format[i] == '%':
			b.WriteByte('%')
		case layout != "":
			b.WriteString(t.Format(layout))
		default:
			b.WriteString(format[i-1 : i+1])
		}
	}
	return b.String()
}

func syncCmd(*call) int {
	unix.Sync()
	return 0
}

// mount lists mounts, or tries to make one: in a sandbox, to see it refused.
func mount(c *call) int {
	const synopsis = "[-t TYPE] [-o bind,rbind,ro,rw,remount] [SOURCE DIRECTORY]"
	opts, args, err := parse(c.args, "t:o:")
	if err != nil || len(args) != 0 && len(args) != 2 {
		return c.usage(synopsis)
	}
	if len(args) == 0 {
		return c.input([]string{"/proc/self/mounts"}, copyTo(c.out))
	}
	flags, data := uintptr(0), []string{}
	for _, o := range strings.Split(opts.value('o', "rw"), ",") {
		switch o {
		case "bind":
			flags |= unix.MS_BIND
		case "rbind":
			flags |= unix.MS_BIND | unix.MS_REC
		case "ro":
			flags |= unix.MS_RDONLY
		case "remount":
			flags |= unix.MS_REMOUNT
		case "rw":
		default:
			data = append(data, o)
		}
	}
	if err := unix.Mount(args[0], args[1], opts.value('t', ""), flags, strings.Join(data, ",")); err != nil {
		return c.fail(&os.PathError{Op: "mounting on", Path: args[1], Err: err})
	}
	return 0
}

func umount(c *call) int {
	opts, args, err := parse(c.args, "lf")
	if err != nil || len(args) == 0 {
		return c.usage("[-lf] DIRECTORY...")
	}
	flags := 0
	if opts.has('l') {
		flags |= unix.MNT_DETACH
	}
	if opts.has('f') {
		flags |= unix.MNT_FORCE
	}
	return c.each(args, func(dir string) error {
		if err := unix.Unmount(dir, flags); err != nil {
			return &os.PathError{Op: "unmounting", Path: dir, Err: err}
		}
		return nil
	})
}

func tty(c *call) int {
	if f, ok := c.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
		if err != nil {
			name = "/dev/tty" // a sandbox need not tell
		}
		fmt.Fprintln(c.out, name)
		return 0
	}
	fmt.Fprintln(c.out, "not a tty")
	return 1
}

// stty knows size, sane, raw and echo, which is what tests of terminals need.
func stty(c *call) int {
	f, ok := c.in.(*os.File)
	if !ok {
		return c.fail("standard input is not a terminal")
	}
	fd := int(f.Fd())
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return c.fail("standard input is not a terminal")
	}
	ws, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil {
		return c.fail(err)
	}
	if len(c.args) == 0 || c.args[0] == "-a" {
		onOff := func(name string, on bool) string {
			if on {
				return name
			}
			return "-" + name
		}
		fmt.Fprintf(c.out, "rows %d; columns %d\n%s %s %s %s %s\n", ws.Row, ws.Col, onOff("echo", t.Lflag&unix.ECHO != 0),
			onOff("icanon", t.Lflag&unix.ICANON != 0), onOff("isig", t.Lflag&unix.ISIG != 0), onOff("icrnl", t.Iflag&unix.ICRNL != 0), onOff("opost", t.Oflag&unix.OPOST != 0))
		return 0
	}
	for i := 0; i < len(c.args); i++ {
		switch a := c.args[i]; a {
		case "size":
			fmt.Fprintf(c.out, "%d %d\n", ws.Row, ws.Col)
		case "echo":
			t.Lflag |= unix.ECHO
		case "-echo":
			t.Lflag &^= unix.ECHO
		case "sane", "-raw":
			t.Iflag |= unix.ICRNL | unix.BRKINT
			t.Oflag |= unix.OPOST | unix.ONLCR
			t.Lflag |= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN | unix.ECHOE
		case "raw":
			t.Iflag &^= unix.ICRNL | unix.BRKINT | unix.IXON
			t.Oflag &^= unix.OPOST
			t.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN
		case "rows", "cols", "columns":
			if i++; i == len(c.args) {
				return c.usage("[-a | size | sane | [-]raw | [-]echo | rows N | cols N]...")
			}
			n, err := strconv.ParseUint(c.args[i], 10, 16)
			if err != nil {
				return c.fail(err)
			}
			if a == "rows" {
				ws.Row = uint16(n)
			} else {
				ws.Col = uint16(n)
			}
			if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, ws); err != nil {
				return c.fail(err)
			}
		default:
			return c.usage("[-a | size | sane | [-]raw | [-]echo | rows N | cols N]...")
		}
	}
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, t); err != nil {
		return c.fail(err)
	}
	return 0
}

// ps lists every process there is.
func ps(c *call) int {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return c.fail(err)
	}
	pid := func(dir string) int { n, _ := strconv.Atoi(filepath.Base(dir)); return n }
	slices.SortFunc(dirs, func(a, b string) int { return pid(a) - pid(b) })
	w := bufio.NewWriter(c.out)
	defer w.Flush()
	fmt.Fprintln(w, "  PID  PPID STAT COMMAND")
	for _, dir := range dirs {
		b, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue // it ended
		}
		// The name may hold anything, parentheses too; the last one ends it.
		open, end := strings.IndexByte(string(b), '('), strings.LastIndexByte(string(b), ')')
		if open < 0 || end < open {
			continue
		}
		f := strings.Fields(string(b[end+1:]))
		if len(f) < 2 {
			continue
		}
		args, _ := os.ReadFile(dir + "/cmdline")
		command := strings.TrimSpace(strings.ReplaceAll(string(args), "\x00", " "))
		if command == "" {
			command = "[" + string(b[open+1:end]) + "]"
		}
		fmt.Fprintf(w, "%5d %5s %-4s %s\n", pid(dir), f[1], f[0], command)
	}
	return 0
}
