package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lazaret/launch/terminfo"
	"lazaret/lock"
)

// hostEntry is an entry that this machine has.
func hostEntry(t *testing.T) terminfo.Entry {
	t.Helper()
	e, err := terminfo.Find("xterm", "", terminfo.Dirs(func(string) string { return "" }, ""), func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// renamed is the entry of another terminal.
func renamed(e terminfo.Entry, name string) []byte {
	// The first name, of the same length, is replaced.
	return []byte(strings.Replace(string(e.Data), "xterm|", name+"|", 1))
}

func TestTerminal(t *testing.T) {
	dir := t.TempDir()
	home, ws := filepath.Join(dir, "home"), filepath.Join(dir, "ws")
	entry := hostEntry(t)
	for _, base := range []string{home, ws} {
		os.MkdirAll(filepath.Join(base, ".terminfo/f"), 0o755)
	}
	os.WriteFile(filepath.Join(home, ".terminfo/f/foxy1"), renamed(entry, "foxy1"), 0o644)
	os.WriteFile(filepath.Join(ws, ".terminfo/f/foxy2"), renamed(entry, "foxy2"), 0o644)
	for _, tt := range []struct {
		env          string
		off          bool // no terminal
		term, notice string
		data         bool
	}{
		{env: "TERM=foxy1 COLORTERM=truecolor", term: "foxy1", data: true},
		{env: "TERM=foxy2 TERMINFO=" + ws + "/.terminfo", term: "xterm-256color", notice: "foxy2", data: true}, // the agent's
		{env: "TERM=foxy2 TERMINFO_DIRS=" + ws + "/.terminfo:", term: "xterm-256color", notice: "foxy2", data: true},
		{env: "TERM=../../etc/passwd", term: "xterm-256color", notice: "../../etc/passwd", data: true},
		{env: "TERM=x\x1b[2J", term: "xterm-256color", notice: `x\x1b[2J`, data: true},
		{env: "TERM=foxy1", off: true, term: "foxy1"},
		{env: "TERM=x/y", off: true},
		{env: ""},
	} {
		vars := map[string]string{}
		for _, kv := range strings.Fields(tt.env) {
			k, v, _ := strings.Cut(kv, "=")
			vars[k] = v
		}
		if strings.Contains(tt.env, "\x1b") {
			vars["TERM"] = "x\x1b[2J"
		}
		h := Host{Home: home, Workspace: ws, DataRoot: filepath.Join(dir, "data"), Terminal: !tt.off, TermEnv: map[string]string{}}
		h.terminal(Env{
			Getenv:    func(k string) string { return vars[k] },
			LookupEnv: func(k string) (string, bool) { v, ok := vars[k]; return v, ok },
		})
		if h.TermEnv["TERM"] != tt.term || !strings.Contains(h.TermNotice, tt.notice) || (h.TermNotice == "") != (tt.notice == "") || (h.Terminfo != nil) != tt.data {
			t.Errorf("%q: TERM %q, notice %q, found %v", tt.env, h.TermEnv["TERM"], h.TermNotice, h.Terminfo != nil)
		}
		if strings.ContainsAny(h.TermNotice, "\x1b") {
			t.Errorf("%q: the notice acts on the terminal", tt.env)
		}
	}
}

func TestLocale(t *testing.T) {
	for _, tt := range []struct{ image, profile, want string }{
		{"", "", "C.UTF-8"},
		{"LANG=de_DE.UTF-8", "", ""},
		{"LC_ALL=C", "", ""},
		{"", "LC_CTYPE", ""},
		{"LANGUAGE=de", "", "C.UTF-8"},
	} {
		r := resolver{Plan: &Plan{Host: Host{TermEnv: map[string]string{"TERM": "xterm"}}}, profile: lock.Profile{Env: map[string]string{}}}
		if tt.profile != "" {
			r.profile.Env[tt.profile] = "x"
		}
		env := map[string]string{}
		r.terminalEnv(env, lock.PlatformImage{Env: []string{tt.image}})
		if env["LANG"] != tt.want || env["TERM"] != "xterm" {
			t.Errorf("%+v: %v", tt, env)
		}
	}
}

func TestTerminfoStep(t *testing.T) {
	e := hostEntry(t)
	dir := filepath.Join(t.TempDir(), "terminfo")
	if _, err := (Terminfo{Dir: dir, Name: "xterm", Data: e.Data}).Do(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"x/xterm", "78/xterm"} {
		if b, err := os.ReadFile(filepath.Join(dir, p)); err != nil || string(b) != string(e.Data) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if _, err := (Terminfo{Dir: dir + "2", Name: "../x"}).Do(t.Context(), nil); err == nil {
		t.Error("a name with a way out is taken")
	}
}
