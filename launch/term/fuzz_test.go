package term

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// forbidden reads output as a terminal would, by a parser that is not ours, and
// finds what must not be there.
func forbidden(out []byte) (bad []string) {
	no := func(what string) { bad = append(bad, what) }
	p := ansi.NewParser()
	p.SetDataSize(1 << 20)
	p.SetHandler(ansi.Handler{
		Print: func(r rune) {
			if r < 0x20 || r >= 0x7f && r < 0xa0 {
				no("a control that is printed")
			}
		},
		Execute: func(b byte) {
			if !slices.Contains([]byte("\a\b\t\n\v\f\r\x0e\x0f"), b) {
				no("a control")
			}
		},
		HandleCsi: func(cmd ansi.Cmd, params ansi.Params) {
			allowed := map[byte]string{
				0:   "@ABCDEFGHIJKLMPSTXZ`abdefghlmnrsuct",
				'?': "JKhlnuS", '>': "cqum", '<': "u", '=': "uc",
			}
			switch cmd.Intermediate() {
			case 0:
				if !bytes.ContainsRune([]byte(allowed[cmd.Prefix()]), rune(cmd.Final())) {
					no("CSI " + string([]byte{cmd.Prefix(), cmd.Final()}))
				}
				if n, _, _ := params.Param(0, 0); cmd.Final() == 't' && n != 22 {
					no("CSI t")
				}
				if n, _, _ := params.Param(0, 0); cmd.Prefix() == '?' && (n == 2 && cmd.Final() != 'J' && cmd.Final() != 'K' || n == 1001 && cmd.Final() == 'h') {
					no("a mode")
				}
			case ' ':
				if cmd.Final() != 'q' {
					no("CSI SP")
				}
			case '$', '!':
				if cmd.Final() != 'p' {
					no("CSI $ or !")
				}
			case '"':
				if cmd.Final() != 'q' {
					no("CSI \"")
				}
			default:
				no("CSI with an intermediate byte")
			}
		},
		HandleEsc: func(cmd ansi.Cmd) {
			if cmd.Intermediate() == 0 && !bytes.ContainsRune([]byte(`78=>DEHMNOc\`), rune(cmd.Final())) {
				no("ESC " + string(rune(cmd.Final())))
			}
			if i := cmd.Intermediate(); i != 0 && !bytes.ContainsRune([]byte("()*+#"), rune(i)) {
				no("ESC with an intermediate byte")
			}
		},
		HandleOsc: func(cmd int, _ []byte) {
			if !slices.Contains([]int{0, 4, 8, 10, 11, 12, 104, 110, 111, 112, 133}, cmd) {
				no("OSC")
			}
		},
		HandleDcs: func(cmd ansi.Cmd, _ ansi.Params, _ []byte) {
			if cmd.Final() != 'q' || cmd.Intermediate() != 0 || cmd.Prefix() != 0 {
				no("DCS")
			}
		},
		HandleApc: func([]byte) { no("APC") },
		HandlePm:  func([]byte) { no("PM") },
		HandleSos: func([]byte) { no("SOS") },
	})
	p.Parse(out)
	if !utf8.Valid(out) {
		no("bytes that are not UTF-8")
	}
	for _, s := range []string{"\x1b_", "\x1b^", "\x1bX", "\x1bk", "\x1b]52", "\x1b]5", "\x1b]7", "\x1b]9", "\x1bZ", "\x1b%", "\x1b ", "\x05", "\x18", "\x1bP$", "\x1bP+", "\x1bPt", "\x1bP@"} {
		if bytes.Contains(out, []byte(s)) {
			no(s)
		}
	}
	return bad
}

// The checker itself finds every attack.
func TestForbiddenFinds(t *testing.T) {
	for name, in := range drops {
		switch name {
		case "too many digits", "repeat", "locator", "save modes", "restore modes", "user preference", "keyboard lock":
			continue // harmless in themselves, or for the filter's own table
		}
		if len(forbidden([]byte(in))) == 0 {
			t.Errorf("%s: nothing is found in %q", name, in)
		}
	}
}

func FuzzFilter(f *testing.F) {
	for _, in := range drops {
		f.Add([]byte(in), 3)
		f.Add([]byte("\x1b[?1049h"+in+"\x1b7"+in), 1)
	}
	f.Add([]byte("\x1b[?2J"), 3) // erases, and is no mode
	for _, in := range coloured {
		f.Add([]byte(in), 1)
	}
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		var f, g Filter
		f.Title, g.Title = "t: ", "t: "
		f.screen = newModel(8, 4)
		defer f.screen.(*model).close()
		out := f.Append(nil, in)
		if bad := forbidden(f.Cut(slices.Clone(out))); bad != nil {
			t.Fatalf("%q became %q, with %q", in, out, bad)
		}
		eight := Filter{Title: "t: ", ASCII: true}
		if narrow := eight.Append(nil, in); slices.ContainsFunc(narrow, func(c byte) bool { return c >= 0x80 }) || forbidden(eight.Cut(slices.Clone(narrow))) != nil {
			t.Fatalf("%q became %q on eight bits", in, narrow)
		}
		if size < 1 {
			return
		}
		var parts []byte
		for i := 0; i < len(in); i += size {
			parts = g.Append(parts, in[i:min(len(in), i+size)])
		}
		if !bytes.Equal(out, parts) {
			t.Fatalf("%q became %q, in parts of %d %q", in, out, size, parts)
		}
		if !reflect.DeepEqual(f.modes, g.modes) {
			t.Fatalf("%q left %q, in parts of %d %q", in, f.modes.redo(nil), size, g.modes.redo(nil))
		}
		// What undoes and does again is as innocent.
		for _, again := range [][]byte{f.modes.undo(nil), f.modes.redo(nil), f.modes.end(nil)} {
			var h Filter
			again = bytes.ReplaceAll(again, []byte("\x1b[?5W"), nil) // tab stops, which only lazaret sets
			if bad := forbidden(again); bad != nil && !bytes.Contains(again, []byte("23;0t")) {
				t.Fatalf("%q left %q, with %q", in, again, bad)
			}
			h.Append(nil, again)
		}
		// Undone, a filter that saw only that knows of nothing to undo.
		var clean Filter
		clean.Append(nil, f.modes.redo(nil))
		clean.Append(nil, f.modes.undo(nil))
		if left := clean.modes.undo(nil); len(left) > 0 {
			t.Fatalf("%q: after undoing, %q is left", in, left)
		}
	})
}
