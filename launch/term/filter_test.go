package term

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/creack/pty"
)

func filtered(f *Filter, in string) string { return string(f.Append(nil, []byte(in))) }

// drops are sequences that never reach the terminal, each with what they do.
var drops = map[string]string{
	"clipboard write":              "\x1b]52;c;Y3VybCBldmlsfHNo\x07",
	"clipboard write, ended by ST": "\x1b]52;c;Y3VybCBldmlsfHNo\x1b\\",
	"clipboard read":               "\x1b]52;c;?\x07",
	"clipboard by C1":              "\u009d52;c;Y3VybA==\u009c",
	"kitty clipboard":              "\x1b]5522;type=read\x1b\\",
	"directory":                    "\x1b]7;file://host/etc\x07",
	"notification":                 "\x1b]9;done\x07",
	"progress":                     "\x1b]9;4;1;50\x07",
	"font":                         "\x1b]50;evil\x07",
	"urxvt notification":           "\x1b]777;notify;a;b\x07",
	"kitty notification":           "\x1b]99;i=1:d=0;hello\x1b\\",
	"iterm file":                   "\x1b]1337;File=name=eA==;inline=0:AAAA\x07",
	"icon name":                    "\x1b]1;x\x07",
	"pointer":                      "\x1b]22;wait\x07",
	"answerback":                   "\x05",
	"kitty graphics from a file":   "\x1b_Gf=100,t=f,a=T;L2V0Yy9wYXNzd2Q=\x1b\\",
	"kitty graphics, deletes":      "\x1b_Gf=100,t=t,a=T;L3RtcC94\x1b\\",
	"APC by C1":                    "\u009fGt=f;eA==\u009c",
	"PM":                           "\x1b^secret\x1b\\",
	"SOS":                          "\x1bXstring\x1b\\",
	"tmux passthrough":             "\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\",
	"screen passthrough":           "\x1bP\x1b]52;c;eA==\x07\x1b\\",
	"screen title":                 "\x1bktitle\x1b\\",
	"DECRQSS":                      "\x1bP$qm\x1b\\",
	"XTGETTCAP":                    "\x1bP+q544e\x1b\\",
	"kitty command":                "\x1bP@kitty-cmd{\"cmd\":\"ls\"}\x1b\\",
	"user keys":                    "\x1bP0;1|17/17\x1b\\",
	"title report":                 "\x1b[21t",
	"icon report":                  "\x1b[20t",
	"window size report":           "\x1b[18t",
	"pixels report":                "\x1b[14t",
	"window resize":                "\x1b[8;1;1t",
	"iconify":                      "\x1b[2t",
	"title modes":                  "\x1b[>1t",
	"screen checksum":              "\x1b[1;1;1;1;10;10*y",
	"print":                        "\x1b[5i",
	"print, private":               "\x1b[?5i",
	"keyboard lock":                "\x1b[2h",
	"VT52":                         "\x1b[?2l",
	"eight bit answers":            "\x1b G",
	"conformance":                  "\x1b[62;0\"p",
	"leave UTF-8":                  "\x1b%@",
	"hilite tracking":              "\x1b[?1001h",
	"locator":                      "\x1b[1;2'z",
	"terminal parameters":          "\x1b[x",
	"identify":                     "\x1bZ",
	"user preference":              "\x1b[?26n",
	"save modes":                   "\x1b[?1049s",
	"restore modes":                "\x1b[?1049r",
	"too many digits":              "\x1b[999999999999A",
	"repeat":                       "\x1b[99999b",
	"zmodem":                       "\x18B\x1a",
}

func TestFilterDrops(t *testing.T) {
	for name, in := range drops {
		want := "<>"
		if name == "zmodem" {
			want = "<B>" // the cancels are what starts it
		}
		if got := filtered(&Filter{}, "<"+in+">"); got != want {
			t.Errorf("%s: %q gave %q", name, in, got)
		}
	}
}

func TestFilterPasses(t *testing.T) {
	for _, in := range []string{
		"plain text\r\n\ttab\b\a", "grün 日本語 é 👩‍👩‍👧 ─│",
		"\x1b[1;1H\x1b[2J\x1b[K\x1b[5A\x1b[10;20r\x1b[r",
		"\x1b[0;1;38;5;196;48;2;1;2;3m\x1b[38:2::1:2:3m\x1b[4:3m\x1b[m",
		"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1006h\x1b[?25h\x1b[?1049l",
		"\x1b7\x1b8\x1bM\x1bD\x1bE\x1b=\x1b>\x1bc", "\x1b(0lqk\x1b(B", "\x0eqq\x0f",
		"\x1b[6n\x1b[c\x1b[>c\x1b[?u\x1b[>q\x1b[5n", "\x1b[?2026$p",
		"\x1b[>1u\x1b[<u\x1b[=1;1u", "\x1b[>4;2m", "\x1b[2 q", "\x1b[!p", "\x1b[4h\x1b[4l",
		"\x1b]8;id=a1;https://example.com/x?y=z\x1b\\here\x1b]8;;\x1b\\",
		"\x1b]133;A\x1b\\\x1b]133;D;1\x1b\\", "\x1b]11;?\x1b\\", "\x1b]4;1;rgb:ff/00/00\x1b\\", "\x1b]104\x1b\\",
		"\x1bP0;1;0q\"1;1;6;6#0;2;0;0;0#0~~$-\x1b\\",
	} {
		if got := filtered(&Filter{}, in); got != in {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestFilterRewrites(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b]0;make\x07":                     "\x1b[22;0t\x1b]0;lazaret: make\x1b\\",
		"\x1b]2;a\x9bb\u202ec\x07":            "\x1b[22;0t\x1b]0;lazaret: abc\x1b\\",
		"\x1b]2;a\u0085b\x07":                 "\x1bEb\a",
		"\u009b31mred":                        "\x1b[31mred",
		"\x1b[?25;2;1049h":                    "\x1b[?25h\x1b[?1049h",
		"\x1b[3\r1m":                          "\r\x1b[31m", // a control within a sequence
		"\x1b[31\x18m":                        "m",
		"a\xffb\x9b31mc\xe2\x82":              "a\ufffdb\ufffd31mc", // the last may be a character yet
		"\xe2\x1b[m":                          "\ufffd\x1b[m",
		"\x1b]8;;file:///etc/passwd\x07x":     "\x1b]8;;\x1b\\x",
		"\x1b]8;;vscode://run\x07x":           "\x1b]8;;\x1b\\x",
		"\x1b]8;id=\x01;https://a/\x07x":      "\x1b]8;;https://a/\x1b\\x",
		"\x1b[31":                             "",
		"\x1bP9;123456789q!1234567890~\x1b\\": "\x1bP9;12345q!12345~\x1b\\",
		"\x1b]10;#fff;#000\x07":               "\x1b]10;#fff\x1b\\\x1b]11;#000\x1b\\",
		"\x1b]10;$(reboot)\x07":               "",
		"\x1b\x1b[1mx":                        "\x1b[1mx",
		"\x1b]0;never ended\x1b[31mx":         "\x1b[31mx",
	} {
		f := Filter{Title: "lazaret: "}
		if got := filtered(&f, in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestFilterClipboardOnRequest(t *testing.T) {
	f := Filter{Clipboard: true}
	in := "\x1b]52;c;" + strings.Repeat("QUJD", 10000) + "\x1b\\"
	if got := filtered(&f, in); got != in {
		t.Errorf("became %.80q", got)
	}
	for _, bad := range []string{"\x1b]52;c;?\x07", "\x1b]52;;!!!\x07", "\x1b]52;evil;QUJD\x07", "\x1b]52;c\x07"} {
		if got := filtered(&f, bad); got != "" {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

// Where the output is cut into reads must change nothing.
func TestFilterAcrossReads(t *testing.T) {
	var all []string
	for _, in := range drops {
		all = append(all, in)
	}
	text := strings.Join(all, "text grün\u009b1m\xe2\x82x\xf0\x9f\x98\xff日本\x1b[31;1mx\x1b]0;a日\x07")
	want := filtered(&Filter{}, text)
	for size := 1; size < 9; size++ {
		var f Filter
		var got []byte
		for i := 0; i < len(text); i += size {
			got = f.Append(got, []byte(text[i:min(i+size, len(text))]))
		}
		if string(got) != want {
			t.Errorf("in reads of %d bytes it is another output:\n%q\n%q", size, got, want)
		}
	}
}

// A sequence without an end costs nothing but itself.
func TestFilterIsBounded(t *testing.T) {
	for _, begin := range []string{"\x1b]0;", "\x1b[", "\x1b_G", "\x1bP", "\x1bP$q", "\x1b]52;c;", "\x1b]8;;https://", "\x1b(", "\x1b["} {
		f := Filter{Clipboard: true}
		f.Append(nil, []byte(begin))
		for range 100 {
			f.Append(nil, bytes.Repeat([]byte("1;"), 32<<10))
		}
		if cap(f.seq) > 2*clipboardMax {
			t.Errorf("%q: %d bytes are kept", begin, cap(f.seq))
		}
		if got := string(f.Append(nil, []byte("\x1b\\ok"))); got != "ok" {
			t.Errorf("after %q: %q", begin, got)
		}
	}
}

// What a reset may not have undone is undone again: terminals differ in what
// theirs do, and a sandbox must not be able to make lazaret forget.
func TestResetForgetsNothing(t *testing.T) {
	const set = "\x1b[?1003;2004;1004h\x1b]10;#000\x07\x1b]11;#000\x07\x1b]4;1;#000\x07\x1b[>4;2m\x1b[>1u\x1b[3g\x1b(0"
	for _, reset := range []string{"\x1bc", "\x1b[!p", "\x1bc\x1b[!p\x1bc"} {
		var f Filter
		f.Append(nil, []byte(set+reset))
		end := string(f.modes.end(nil))
		for _, want := range []string{"\x1b[?1003l", "\x1b[?2004l", "\x1b[?1004l", "\x1b]110\x1b\\", "\x1b]111\x1b\\", "\x1b]104\x1b\\", "\x1b[>4m", "\x1b[<", "\x1b[?5W", "\x1b(B"} {
			if !strings.Contains(end, want) {
				t.Errorf("after %q, the end lacks %q: %q", reset, want, end)
			}
			if want[1] == ']' && !strings.Contains(string(f.modes.undo(nil)), want) {
				t.Errorf("after %q, a question is shown without %q", reset, want)
			}
		}
	}
	var f Filter
	f.Append(nil, []byte(set+"\x1b[!p"))
	if redo := string(f.modes.redo(nil)); !strings.Contains(redo, "\x1b[?1003h") {
		t.Errorf("a soft reset ends the mouse: %q", redo)
	}
	for range 1000 {
		f.Append(nil, []byte(set+"\x1bc"))
	}
	if n := len(f.modes.end(nil)); n > 1000 {
		t.Errorf("the end has %d bytes", n)
	}
}

// coloured are changes of colour: what is one, what nearly is, and what stands
// next to them.
var coloured = []string{
	"\x1b[m", "\x1b[0m", "\x1b[32mok\x1b[0m", "\x1b[1;31;4:3mred\x1b[m\x1b[48;5;17m \x1b[38;2;1;2;3mx\x1b[58:2::1:2:3my",
	"\x1b[;;1m", "\x1b[38;5m", "\x1b[38;5;256m", "\x1b[1:2m", "\x1b[99999m", "\x1b[" + strings.Repeat("1;", 63) + "1mx", "\x1b[" + strings.Repeat("1;", 64) + "1mx",
	"\x1b[" + strings.Repeat("0", csiMax) + "mx", "\x1b[" + strings.Repeat("0", csiMax+1) + "mx",
	"\x1b[31", "\x1b[31\x1b[32mx", "\x1b[3\n1mx", "\x1b[3\x7f1mx", "\x1b[31\x18mx", "\x1b[3\u009b1mx", "\x1b[31 mx", "\x1b[?1mx", "\x1b[>4;1mx", "\x1b[1<mx",
	"\xc3\x1b[31mx", "\xc3\x1b[31m\xa4", "\x1b]0;a\x1b[31mb\x07c", "\x1bP0q\x1b[31m~\x1b\\x", "\x1b_a\x1b[31mb\x1b\\c", "\x1b\x1b[31mx", "\x1b[\x1b[31mx", "\x1b(\x1b[31mx",
}

// A change of colour that is read at once is taken as one that comes in parts.
func TestFilterColoursInParts(t *testing.T) {
	for _, before := range coloured {
		for _, after := range coloured {
			in := []byte(before + after)
			var one Filter
			var want []byte
			for i := range in {
				want = one.Append(want, in[i:i+1])
			}
			for cut := range min(len(in), 40) {
				var f Filter
				got := f.Append(f.Append(nil, in[:cut]), in[cut:])
				if !bytes.Equal(got, want) || !reflect.DeepEqual(f.modes, one.modes) || f.state != one.state {
					t.Fatalf("%q cut at %d became %q, byte by byte %q", in, cut, got, want)
				}
			}
		}
	}
}

func BenchmarkFilterText(b *testing.B) {
	benchmarkFilter(b, strings.Repeat("the quick brown fox jumps over the lazy dog 0123456789\r\n", 80))
}

func BenchmarkFilterColours(b *testing.B) {
	benchmarkFilter(b, strings.Repeat("\x1b[38;5;196mthe\x1b[0m quick \x1b[1;32mbrown\x1b[m grün ─── fox\r\n", 80))
}

func benchmarkFilter(b *testing.B, text string) {
	var f Filter
	in, out := []byte(text), []byte(nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for range b.N {
		out = f.Append(out[:0], in)
	}
}

// BenchmarkPump copies as a session does, from one pty to another.
func BenchmarkPump(b *testing.B) {
	page := []byte(strings.Repeat("\x1b[32mok\x1b[0m lazaret/package/number 0.012s coverage: 57.0% of statements\r\n", 800))
	from, fromTTY := rawPty(b)
	to, toTTY := rawPty(b)
	var f Filter
	p := &pump{src: from, dst: toTTY, filter: f.Append}
	go p.run()
	go func() {
		for {
			if _, err := fromTTY.Write(page); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	b.ReportAllocs()
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		for left := len(page); left > 0; {
			n, err := to.Read(buf)
			if err != nil {
				b.Fatal(err)
			}
			left -= n
		}
	}
	p.stop(0)
}

// rawPty is a pty that passes bytes on as they are.
func rawPty(b *testing.B) (ptmx, tty *os.File) {
	ptmx, tty, err := pty.Open()
	if err == nil {
		ptmx, err = stoppable(ptmx)
	}
	if err == nil {
		tty, err = stoppable(tty)
	}
	if err == nil {
		_, err = raw(tty)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ptmx.Close(); tty.Close() })
	return ptmx, tty
}
