// Package terminfo finds the description of the person's terminal on the host,
// as curses would, so that a sandbox whose image does not know the terminal can
// have it. It reads what it was pointed to and checks it; it decides nothing.
package terminfo

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// Entry is a compiled description.
type Entry struct {
	Name string // the terminal's name, as in TERM
	Path string // where it was found; "" if in the environment
	Data []byte
}

// Fallback is the terminal that nearly every other can stand in for.
const Fallback = "xterm-256color"

// validName is what a terminal's name may be: a name goes into paths.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+._-]{0,63}$`)

// Valid tells whether a name can be that of a terminal.
func Valid(name string) bool { return validName.MatchString(name) }

// Paths gives where an entry lies below a directory: in a directory of its
// first letter, or, where file systems do not tell letters apart, of that in hex.
func Paths(name string) []string {
	return []string{
		filepath.Join(name[:1], name),
		filepath.Join(hex.EncodeToString([]byte(name[:1])), name),
	}
}

// Dirs lists the directories to look in, in curses' order, and after them those
// where terminals that bring their own entry install it.
func Dirs(getenv func(string) string, home string) []string {
	var out []string
	add := func(dirs ...string) {
		for _, d := range dirs {
			if filepath.IsAbs(d) {
				out = append(out, filepath.Clean(d))
			}
		}
	}
	below := func(base string, names ...string) {
		for _, n := range names {
			if base != "" {
				add(filepath.Join(base, n))
			}
		}
	}
	add(getenv("TERMINFO"))
	below(home, ".terminfo")
	system := []string{"/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo"}
	for _, d := range filepath.SplitList(getenv("TERMINFO_DIRS")) {
		if d == "" {
			add(system...)
		}
		add(d)
	}
	add(system...)
	add("/usr/lib/terminfo", "/usr/local/share/terminfo", "/usr/local/lib/terminfo")
	below(getenv("GHOSTTY_RESOURCES_DIR"), "../terminfo")
	add("/usr/share/ghostty/terminfo", "/snap/ghostty/current/share/terminfo", "/opt/ghostty/share/terminfo")
	below(getenv("KITTY_INSTALLATION_DIR"), "terminfo")
	below(home, ".local/kitty.app/share/terminfo", ".local/kitty.app/lib/kitty/terminfo", ".local/share/terminfo", ".nix-profile/share/terminfo")
	add("/usr/lib/kitty/terminfo", "/usr/lib64/kitty/terminfo", "/opt/kitty/lib/kitty/terminfo", "/opt/kitty/share/terminfo")
	add("/usr/share/alacritty/terminfo", "/opt/alacritty/share/terminfo")
	below(getenv("WEZTERM_EXECUTABLE_DIR"), "../share/terminfo")
	add("/usr/share/wezterm/terminfo", "/opt/wezterm/share/terminfo")
	add("/run/current-system/sw/share/terminfo", "/home/linuxbrew/.linuxbrew/share/terminfo")
	return out
}

// ErrUnknown is a terminal that no directory has an entry for.
var ErrUnknown = errors.New("no terminfo entry")

// Find reads the first entry of that name in dirs, or the one that inline (as
// curses takes it in TERMINFO: "hex:…" or "b64:…") holds. allowed says whether
// a path, without symlinks, may be read: what a sandbox can write may not.
func Find(name, inline string, dirs []string, allowed func(string) bool) (Entry, error) {
	if !Valid(name) {
		return Entry{}, ErrUnknown
	}
	if data, ok := decode(inline); ok && Check(name, data) == nil {
		return Entry{Name: name, Data: data}, nil
	}
	for _, dir := range dirs {
		for _, p := range Paths(name) {
			path, err := filepath.EvalSymlinks(filepath.Join(dir, p))
			if err != nil || !allowed(path) {
				continue
			}
			data, err := read(path)
			if err != nil || Check(name, data) != nil {
				continue // curses too goes on to the next
			}
			return Entry{name, path, data}, nil
		}
	}
	return Entry{}, ErrUnknown
}

func decode(inline string) ([]byte, bool) {
	if s, ok := strings.CutPrefix(inline, "hex:"); ok && len(s) <= 2*sizeMax {
		b, err := hex.DecodeString(s)
		return b, err == nil
	}
	if s, ok := strings.CutPrefix(inline, "b64:"); ok && len(s) <= 2*sizeMax {
		for _, e := range []*base64.Encoding{base64.RawURLEncoding, base64.RawStdEncoding} {
			if b, err := e.DecodeString(strings.TrimRight(s, "=")); err == nil {
				return b, true
			}
		}
	}
	return nil, false
}

// sizeMax is the largest entry that curses takes, in bytes.
const sizeMax = 32 << 10

func read(path string) ([]byte, error) {
	// Not waiting for a FIFO, and not following what was put there meanwhile.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return io.ReadAll(io.LimitReader(f, sizeMax+1))
}
