package term

import (
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Keeper puts a terminal back for a lazaret that cannot: one that was killed,
// or that ended by a panic. It is another process's.
type Keeper struct {
	fd    int
	saved *unix.Termios
	done  atomic.Bool
}

// Spare gives the terminal anew, for the process that keeps it.
func (s *Session) Spare() (*os.File, error) {
	tty, err := os.OpenFile(s.path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the terminal: %w", err)
	}
	return tty, nil
}

// Keep takes note of how a terminal is, before the sandbox has it: the first of
// the descriptors that is one. A nil Keeper does nothing.
func Keep(fds ...int) *Keeper {
	for _, fd := range fds {
		if t, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			return &Keeper{fd: fd, saved: t}
		}
	}
	return nil
}

// KeepFile is Keep for an open file, which the Keeper does not close.
func KeepFile(f *os.File) (k *Keeper) {
	control(f, func(fd int) { k = Keep(fd) })
	return k
}

// Done says that the terminal's own process puts it back.
func (k *Keeper) Done() {
	if k != nil {
		k.done.Store(true)
	}
}

// everything undoes whatever a sandbox can have made of a terminal, without
// knowing what it has. It ends what was begun, and saves the cursor before it
// leaves the alternate screen, since a terminal that is not on it goes to the
// saved one all the same.
var everything = func() []byte {
	all := modes{
		changed: 1<<len(privateModes) - 1, insert: true, newline: true, keypad: true, shifted: true,
		charsets: [4]byte{'0', '0'}, cursor: 1, otherKeys: 1, link: ";", tabs: true, pen: pen{attrs: 2},
		colours: colours{"10": "", "11": "", "12": "", "4;0": ""},
	}
	b := []byte("\x18\x1b\\\x1b7\x1b[r\x1b8")
	// Not the origin mode: resetting it moves the cursor, saved or not.
	bit, _, _ := privateMode(6)
	all.changed &^= bit
	b = all.undo(b)
	b = fmt.Appendf(b, "\x1b[=0u\x1b[<%du\x1b7\x1b[?1049l", kittyMost)
	return fmt.Appendf(b, "\x1b[=0u\x1b[<%du", kittyMost)
}()

// Restore puts the terminal back. The line's own mode is left alone where
// somebody has set another than a session does: a shell that goes on does that
// by itself.
func (k *Keeper) Restore() {
	if k == nil || k.done.Load() {
		return
	}
	unix.Write(k.fd, everything)
	now, err := unix.IoctlGetTermios(k.fd, unix.TCGETS)
	if err == nil && now.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) == 0 && now.Oflag&unix.OPOST == 0 {
		unix.IoctlSetTermios(k.fd, unix.TCSETS, k.saved)
	}
}
