package term

import "testing"

func TestLeaveKeys(t *testing.T) {
	for _, tt := range []struct {
		what  string
		reads []string
		on    string
		left  bool
	}{
		{"the keys", []string{"ab\x10\x11cd"}, "ab", true},
		{"in two reads", []string{"a\x10", "\x11"}, "a", true},
		{"the first only", []string{"\x10", "x"}, "\x10x", false},
		{"the first twice", []string{"\x10\x10", "\x11"}, "\x10", true},
		{"the second only", []string{"\x11"}, "\x11", false},
		{"as kitty tells them", []string{"\x1b[112;5u", "\x1b[113;5u"}, "", true},
		{"as kitty tells them, with what is let go", []string{"\x1b[57442;5u\x1b[112;5:1u\x1b[112;5:3u", "\x1b[113;5:1u"}, "\x1b[57442;5u", true},
		{"with num lock", []string{"\x1b[112;133u\x1b[113;133u"}, "", true},
		{"with shift", []string{"\x1b[112;6u\x1b[113;6u"}, "\x1b[112;6u\x1b[113;6u", false},
		{"another layout, both told", []string{"\x1b[112:80;5u\x1b[113::113;5u"}, "", true},
		{"as xterm tells them", []string{"\x1b[27;5;112~\x1b[27;5;113~"}, "", true},
		{"letters", []string{"pq"}, "pq", false},
		{"an arrow", []string{"\x10\x1b[A\x11"}, "\x10\x1b[A\x11", false},
	} {
		var l leaver
		on, left := "", false
		for _, r := range tt.reads {
			b, gone := l.feed([]byte(r))
			on, left = on+string(b), left || gone
		}
		if on != tt.on || left != tt.left {
			t.Errorf("%s: %q went on, left %v; want %q, %v", tt.what, on, left, tt.on, tt.left)
		}
	}
}
