package term

import (
	"strings"
	"testing"
	"time"

	xterm "golang.org/x/term"
)

// Another process puts the terminal back for one that was killed.
func TestKeeper(t *testing.T) {
	w, tty := openWindow(t)
	own := reopen(t, tty)
	before, _ := xterm.GetState(int(own.Fd()))
	s, err := Open(tty, Options{UTF8: true})
	if err != nil {
		t.Fatal(err)
	}
	spare, err := s.Spare()
	if err != nil {
		t.Fatal(err)
	}
	defer spare.Close()
	k := Keep(int(spare.Fd()))
	forward(t, s)
	child := reopen(t, s.Child().Name())
	child.WriteString("shell\n" + fullScreen + "\x1b(Bready")
	w.screen("ready")
	k.Restore()
	if shown := w.screen("shell"); strings.Contains(shown, "ready") {
		t.Errorf("the alternate screen is still shown: %q", shown)
	}
	if now, _ := xterm.GetState(int(own.Fd())); *now != *before {
		t.Error("the line is left raw")
	}
	var f Filter
	f.Append(nil, []byte(w.sent()))
	f.modes.titled = false
	if f.modes.touched() {
		t.Errorf("left: %q", f.modes.end(nil))
	}
	// On a terminal that needs nothing, the cursor stays where it is.
	w.f.WriteString("") // no input
	own.WriteString("here")
	at := w.screen("here")
	k.Restore()
	time.Sleep(50 * time.Millisecond)
	if now := w.screen("here"); now != at {
		t.Errorf("%q became %q", at, now)
	}
	(*Keeper)(nil).Restore()
	if Keep(-1) != nil {
		t.Error("no descriptor is a terminal")
	}
	s.Close()
}
