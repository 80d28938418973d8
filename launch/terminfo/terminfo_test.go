package terminfo

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// compiled makes an entry with one of each kind of capability.
func compiled(names string) []byte {
	name := []byte(names + "\x00")
	var b []byte
	for _, n := range []int{magic16, len(name), 1, 1, 1, 4} {
		b = binary.LittleEndian.AppendUint16(b, uint16(n))
	}
	b = append(append(b, name...), 1)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	b = binary.LittleEndian.AppendUint16(b, 80)
	b = binary.LittleEndian.AppendUint16(b, 0)
	return append(b, "\x1b[m\x00"...)
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func everywhere(string) bool { return true }

func TestFind(t *testing.T) {
	dir := t.TempDir()
	letter, hexed, broken, agents := filepath.Join(dir, "letter"), filepath.Join(dir, "hex"), filepath.Join(dir, "broken"), filepath.Join(dir, "ws")
	put(t, filepath.Join(letter, "x/xterm-ghostty"), compiled("xterm-ghostty|ghostty"))
	put(t, filepath.Join(hexed, "78/xterm-kitty"), compiled("xterm-kitty"))
	put(t, filepath.Join(broken, "x/xterm-ghostty"), []byte("not an entry"))
	put(t, filepath.Join(broken, "x/other"), compiled("xterm-kitty"))
	put(t, filepath.Join(agents, "x/xterm-ghostty"), compiled("xterm-ghostty"))
	put(t, filepath.Join(dir, "secret"), []byte("secret"))
	os.Symlink(filepath.Join(agents, "x/xterm-ghostty"), filepath.Join(broken, "x/xterm-linked"))
	syscall.Mkfifo(filepath.Join(broken, "x/xterm-fifo"), 0o600)
	dirs := []string{broken, letter, hexed}
	allowed := func(p string) bool { return !strings.HasPrefix(p, agents) }
	for name, want := range map[string]string{
		"xterm-ghostty":  filepath.Join(letter, "x/xterm-ghostty"),
		"xterm-kitty":    filepath.Join(hexed, "78/xterm-kitty"),
		"other":          "", // describes another
		"xterm-linked":   "", // leads to what a sandbox writes
		"xterm-fifo":     "",
		"../secret":      "",
		"x/../../secret": "",
		"":               "",
		".":              "",
		"xterm\x1b[2J":   "",
		"alacritty":      "",
	} {
		e, err := Find(name, "", dirs, allowed)
		if (err != nil) != (want == "") || e.Path != want {
			t.Errorf("%q: found at %q, %v", name, e.Path, err)
		}
	}
	if e, err := Find("xterm-ghostty", "", append([]string{agents}, dirs...), allowed); err != nil || strings.HasPrefix(e.Path, agents) {
		t.Errorf("what the sandbox can write is taken: %q, %v", e.Path, err)
	}
}

func TestFindInTheEnvironment(t *testing.T) {
	data := compiled("xterm-kitty")
	for _, inline := range []string{"hex:" + hex.EncodeToString(data), "b64:" + base64.StdEncoding.EncodeToString(data), "b64:" + base64.RawURLEncoding.EncodeToString(data)} {
		if e, err := Find("xterm-kitty", inline, nil, everywhere); err != nil || string(e.Data) != string(data) {
			t.Errorf("%.12s: %v", inline, err)
		}
	}
	for _, inline := range []string{"hex:zz", "b64:***", "hex:" + hex.EncodeToString([]byte("x")), "/usr"} {
		if _, err := Find("xterm-kitty", inline, nil, everywhere); err == nil {
			t.Errorf("%s is taken", inline)
		}
	}
}

func TestDirs(t *testing.T) {
	env := map[string]string{"TERMINFO": "/opt/t", "TERMINFO_DIRS": "/a::relative:/b", "KITTY_INSTALLATION_DIR": "/k", "GHOSTTY_RESOURCES_DIR": "/g/share/ghostty"}
	got := Dirs(func(k string) string { return env[k] }, "/home/anna")
	want := []string{"/opt/t", "/home/anna/.terminfo", "/a", "/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/b"}
	if !slices.Equal(got[:len(want)], want) {
		t.Errorf("%q", got)
	}
	for _, d := range []string{"/g/share/terminfo", "/k/terminfo", "/usr/local/share/terminfo", "/home/anna/.local/kitty.app/share/terminfo"} {
		if !slices.Contains(got, d) {
			t.Errorf("no %s", d)
		}
	}
	if slices.ContainsFunc(Dirs(func(string) string { return "" }, ""), func(d string) bool { return !filepath.IsAbs(d) }) {
		t.Error("a relative directory")
	}
}

func TestCheck(t *testing.T) {
	good := compiled("a|b")
	if err := Check("b", good); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if Check("b", good[:i]) == nil {
			t.Errorf("%d bytes of %d are taken", i, len(good))
		}
	}
	for at, v := range map[int]byte{0: 0, 3: 0x80, 5: 0x80, 8: 0xff, 10: 0xff, len(good) - 6: 4} {
		bad := slices.Clone(good)
		bad[at] = v
		if Check("b", bad) == nil {
			t.Errorf("byte %d as %#x is taken", at, v)
		}
	}
	if Check("c", good) == nil {
		t.Error("another terminal's entry is taken")
	}
	if Check("b", append(good, make([]byte, sizeMax)...)) == nil {
		t.Error("it may have any size")
	}
}

// The entries of this machine are taken.
func TestCheckTakesRealEntries(t *testing.T) {
	e, err := Find("xterm-256color", "", Dirs(func(string) string { return "" }, ""), everywhere)
	if err != nil {
		t.Fatalf("%v (ncurses-base is everywhere)", err)
	}
	if len(e.Data) < 1000 {
		t.Errorf("%d bytes", len(e.Data))
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("a", compiled("a"))
	f.Add("b", compiled("a|b"))
	if e, err := Find("xterm", "", Dirs(func(string) string { return "" }, ""), everywhere); err == nil {
		f.Add("xterm", e.Data)
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if d, ok := decode("hex:" + hex.EncodeToString(data)); !ok && len(data) <= sizeMax || ok && string(d) != string(data) {
			t.Errorf("%x is decoded as %x", data, d)
		}
		if Check(name, data) != nil {
			return
		}
		if len(data) < headerSize || len(data) > sizeMax {
			t.Errorf("%d bytes are taken", len(data))
		}
		// What is cut off at the end, or said of another terminal, is taken no more.
		if Check(name+"x", data) == nil && !strings.Contains(string(data), name+"x") {
			t.Errorf("%x is taken for %q too", data, name+"x")
		}
		if e, err := Find(name, "hex:"+hex.EncodeToString(data), nil, everywhere); (err == nil) != Valid(name) || err == nil && string(e.Data) != string(data) {
			t.Errorf("%q: %v", name, err)
		}
	})
}

// FuzzNames: no name leads out of the directories that are looked in.
func FuzzNames(f *testing.F) {
	for _, n := range []string{"xterm", "../x", "x/../../y", ".", "x\x00", "xterm\n", "é", "-x", strings.Repeat("x", 65)} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !Valid(name) {
			return
		}
		for _, p := range Paths(name) {
			if !filepath.IsLocal(p) || filepath.Clean(p) != p || strings.Count(p, "/") != 1 || strings.ContainsAny(p, "\x00\n ") {
				t.Errorf("%q leads to %q", name, p)
			}
		}
	})
}
