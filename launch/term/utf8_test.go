package term

import (
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// TestUTF8: a terminal is taken to read UTF-8 where it, or the locale, says so.
func TestUTF8(t *testing.T) {
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ptmx.Close()
	defer tty.Close()
	set := func(on bool) {
		st, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		if st.Iflag &^= unix.IUTF8; on {
			st.Iflag |= unix.IUTF8
		}
		if err := unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, st); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		env  map[string]string
		tty  bool
		want bool
	}{
		{map[string]string{}, false, false},
		{map[string]string{}, true, true},
		{map[string]string{"LANG": "C"}, true, true},
		{map[string]string{"LANG": "C.UTF-8"}, false, true},
		{map[string]string{"LANG": "C.UTF-8", "LC_ALL": "C"}, false, false},
		{map[string]string{"LC_CTYPE": "de_DE.utf8", "LANG": "C"}, false, true},
		{map[string]string{"LANG": "de_DE.ISO-8859-1"}, false, false},
	} {
		set(tt.tty)
		if got := UTF8(func(k string) string { return tt.env[k] }, tty); got != tt.want {
			t.Errorf("%v, of the terminal %v: %v", tt.env, tt.tty, got)
		}
	}
	if UTF8(func(string) string { return "" }) {
		t.Error("of nothing: yes")
	}
}

// TestEightBits: nothing is written to a terminal that does not read UTF-8
// which it could take for a control of eight bits.
func TestEightBits(t *testing.T) {
	const csi, osc = "\u00db", "\u00dd" // to it, 9b begins CSI and 9d OSC
	for in, want := range map[string]string{
		"plain\x1b[1m":                           "plain\x1b[1m",
		"a" + csi + "2Jb":                        "a?2Jb",
		osc + "52;c;eA==" + "\a":                 "?52;c;eA==\a",
		"\x1b]0;" + osc + "\a":                   "\x1b[22;0t\x1b]0;?\x1b\\",
		"\x1b]8;;http://" + csi + "\a\x1b]8;;\a": "",
		"é\x9b2J":                                "??2J",
	} {
		f := Filter{ASCII: true}
		out := string(f.Append(nil, []byte(in)))
		for _, c := range []byte(out) {
			if c >= 0x80 {
				t.Errorf("%q becomes %q", in, out)
				break
			}
		}
		if want != "" && out != want {
			t.Errorf("%q becomes %q, want %q", in, out, want)
		}
		var g Filter
		if attack := string(g.Append(nil, []byte("a"+csi))); attack != "a"+csi {
			t.Errorf("the control: %q", attack)
		}
	}
}

// TestNarrow: likewise for somebody who attaches, wherever it is cut.
func TestNarrow(t *testing.T) {
	const in, want = "a\u00db2J\u00dd52;c;eA==\x07\U0001f600\x1b[1m\ufffdz", "a?2J?52;c;eA==\x07?\x1b[1m?z"
	for cut := range len(in) {
		if got := string(narrow([]byte(in[:cut]))) + string(narrow([]byte(in[cut:]))); got != want {
			t.Errorf("cut at %d: %q", cut, got)
		}
	}
}
