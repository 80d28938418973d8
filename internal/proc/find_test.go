package proc

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What lies in a directory of an agent's is not found, by whatever way PATH
// leads there.
func TestFind(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, bin := root+"/ws", root+"/bin"
	err = errors.Join(os.MkdirAll(ws+"/.venv/bin", 0o755), os.Mkdir(bin, 0o755), os.Mkdir(root+"/links", 0o755), os.Mkdir(root+"/ws2", 0o755),
		os.Symlink(ws+"/.venv/bin", root+"/linked"), os.Symlink(ws, root+"/ws-by-another-name"),
		os.WriteFile(ws+"/.venv/bin/p", nil, 0o755), os.WriteFile(bin+"/p", nil, 0o755), os.WriteFile(root+"/ws2/p", nil, 0o755),
		os.Symlink(ws+"/.venv/bin/p", root+"/links/p"), os.WriteFile(root+"/not", nil, 0o644), os.Mkdir(root+"/dir", 0o755))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(ws + "/.venv/bin")
	for _, test := range []struct{ name, path, outside, found, left string }{
		{"p", ws + "/.venv/bin:" + bin, ws, bin + "/p", bin},
		{"p", ws + "/.venv/bin:" + bin, ws + "/", bin + "/p", bin},
		{"p", ws + "/.venv/bin:" + bin, root + "/ws-by-another-name", bin + "/p", bin},
		{"p", root + "/linked:" + root + "/ws-by-another-name/.venv/bin", ws, "", ""},
		{"p", bin + "/../ws/.venv/bin:.::../bin:.venv/bin", ws, "", ""},
		{"p", root + "/links", ws, "", root + "/links"},
		{"p", root + "/nowhere:" + root + "/ws2", ws, root + "/ws2/p", root + "/ws2"},
		{"p", ws + "/.venv/bin", "", ws + "/.venv/bin/p", ws + "/.venv/bin"}, // so the test could see it
		{"p", ws + "/.venv/bin", root + "/other", ws + "/.venv/bin/p", ws + "/.venv/bin"},
		{"not", root, ws, "", root},
		{"dir", root, ws, "", root},
		{"bin/p", root, ws, "", root},
		{"p", "", ws, "", ""},
	} {
		if got := Find(test.name, test.path, test.outside); got != test.found {
			t.Errorf("%s in %q without %q is %q, want %q", test.name, test.path, test.outside, got, test.found)
		}
		if got := Outside(test.path, test.outside); got != test.left {
			t.Errorf("%q without %q is %q, want %q", test.path, test.outside, got, test.left)
		}
	}
}
