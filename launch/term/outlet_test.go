package term

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// heard is what a terminal was sent until END.
func heard(t *testing.T, me *os.File) string {
	t.Helper()
	got := make(chan string, 1)
	go func() {
		var b strings.Builder
		buf := make([]byte, 4096)
		for !strings.Contains(b.String(), "END") {
			n, err := me.Read(buf)
			b.Write(buf[:n])
			if err != nil {
				break
			}
		}
		got <- b.String()
	}()
	select {
	case s := <-got:
		return s
	case <-time.After(time.Minute):
		t.Fatal("the terminal hears nothing")
		return ""
	}
}

// A sandbox whose input is a file prints on the person's terminal without
// having it: nothing acts there, and nothing makes it answer, since the person's
// shell would read that.
func TestOutlet(t *testing.T) {
	me, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer me.Close()
	defer tty.Close()
	o, err := NewOutlet(tty, true)
	if err != nil {
		t.Fatal(err)
	}
	if o.File == tty {
		t.Fatal("the sandbox gets the terminal itself")
	}
	for _, seq := range drops {
		o.File.WriteString(seq)
	}
	o.File.WriteString("\x1b[6n\x1b[c\x1b[>q\x1b[?u\x1b[?1$p\x1b]11;?\x07\x1b]4;1;?\x07\x1b[?996n" + // questions
		"\x1b[?1003h\x1b[?1004h\x1b[?2004h\x1b[?2048h\x1b[>1u\x1b[?1049h\x1bPq#0\x1b\\\x1b]2;title\x07" +
		"\x1b[31mred\x1b[?25l")
	o.Close()
	tty.WriteString("END")
	if got := strings.TrimSuffix(heard(t, me), "END"); strings.TrimPrefix(got, "B") != "\x1b[31mred\x1b[?25l\x1b[?25h\x1b[m" {
		t.Errorf("the terminal was sent %q", got)
	}
}

// What is no terminal is left alone.
func TestOutletIsForTerminals(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, f := range []*os.File{nil, w} {
		o, err := NewOutlet(f, true)
		if err != nil || o.File != f {
			t.Errorf("%v, %v", o, err)
		}
		o.Close()
	}
	if _, err := w.WriteString("still open"); err != nil {
		t.Error(err)
	}
	if in, err := Inlet(r); in != r || err != nil {
		t.Errorf("%v, %v", in, err)
	}
}

// A terminal to read from is not one to write to.
func TestInlet(t *testing.T) {
	me, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer me.Close()
	defer tty.Close()
	in, err := Inlet(tty)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := unix.Write(int(in.Fd()), []byte("\x1b]52;c;eA==\x07")); err != unix.EBADF {
		t.Errorf("writing to it: %v", err)
	}
	me.WriteString("typed\n")
	buf := make([]byte, 10)
	if n, err := in.Read(buf); string(buf[:n]) != "typed\n" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}
