package term

import (
	"bytes"
	"regexp"
	"strconv"
)

// LeaveKeys is what a person types to leave a terminal they are attached to, as
// podman has it.
const LeaveKeys = "ctrl-p ctrl-q"

// leaver looks for the keys in what is typed. The first is kept back until it is
// known whether the other one follows.
type leaver struct{ held []byte }

// feed takes what was typed and gives what goes on to the sandbox, up to where
// the person left.
func (l *leaver) feed(typed []byte) (on []byte, left bool) {
	for len(typed) > 0 {
		n := keyLen(typed)
		key := typed[:n]
		typed = typed[n:]
		switch k := controlKey(key); {
		case len(l.held) > 0 && k == 'q':
			l.held = nil
			return on, true
		case k == 'p':
			on = append(on, l.held...)
			l.held = bytes.Clone(key)
		case len(l.held) > 0 && k == released:
			l.held = append(l.held, key...)
		default:
			on = append(append(on, l.give()...), key...)
		}
	}
	return on, false
}

// give gives what was kept back.
func (l *leaver) give() []byte {
	held := l.held
	l.held = nil
	return held
}

// Keys that were told in the long form: kitty's, and xterm's modifyOtherKeys.
var (
	csiKey   = regexp.MustCompile(`^\x1b\[[0-9:;]*[u~]`)
	kittyKey = regexp.MustCompile(`^\x1b\[([0-9]+)[0-9:]*;([0-9]+)(?::([0-9]))?(?:;[0-9:]*)?u$`)
	otherKey = regexp.MustCompile(`^\x1b\[27;([0-9]+);([0-9]+)~$`)
)

func keyLen(b []byte) int {
	if m := csiKey.Find(b); m != nil {
		return len(m)
	}
	return 1
}

// released stands for a key that was let go, or one that only changes others.
const released = -1

// controlKey gives the letter that was typed with the control key and no other.
func controlKey(key []byte) rune {
	if len(key) == 1 {
		if key[0] > 0 && key[0] <= 26 {
			return rune('a' + key[0] - 1)
		}
		return 0
	}
	if m := kittyKey.FindSubmatch(key); m != nil {
		code, _ := strconv.Atoi(string(m[1]))
		if string(m[3]) == "3" || code >= 57441 && code <= 57454 {
			return released
		}
		return controlled(code, m[2])
	}
	if m := otherKey.FindSubmatch(key); m != nil {
		code, _ := strconv.Atoi(string(m[2]))
		return controlled(code, m[1])
	}
	return 0
}

// controlled is the letter of a code, where control is held with it. Caps lock
// and num lock do not count.
func controlled(code int, mods []byte) rune {
	m, _ := strconv.Atoi(string(mods))
	if (m-1)&0x3f != 4 || code < 'a' || code > 'z' {
		return 0
	}
	return rune(code)
}
