package overlay

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A set-up that cannot be added to what is kept, however often it is tried, is
// no trap: its run can be taken down, the next launch says so, and a reset
// gives it up. An agent that makes directories without an end can bring it
// about, and so can a full disk.
func TestStuckSetup(t *testing.T) {
	w := newWorld(t, Native)
	kept := Kept(w.data, "agent")
	w.must(w.up(w.layer("/usr")))
	w.must(w.mounts.Down("usr"))
	const run = "aaaaaaaaaaaa"
	stage := Staged(kept, run)
	w.must(stage.Make())
	_, records, err := kept.open()
	w.must(err)
	// Nothing is recorded of what it changed: it fails every time.
	w.must(writeJSON(records, commitFile, Commit{Run: run, Names: []string{"usr"}}))
	if err := kept.Recover(); err == nil || !strings.Contains(err.(*Error).Do, "state reset") {
		t.Errorf("got %v", err)
	}
	w.must(Discard(w.data, run))
	if k, err := kept.Read(); err != nil || k.Commit == nil {
		t.Errorf("the set-up was forgotten: %+v, %v", k, err)
	}
	f, err := kept.Hold(Holder{Run: "bbbbbbbbbbbb"}, func(string) bool { return true })
	w.must(err)
	w.must(kept.Reset([]string{"usr"}, "bbbbbbbbbbbb"))
	w.must(Release(f))
	if left, _ := os.ReadDir(filepath.Join(w.data, "agent")); len(left) > 0 {
		t.Errorf("reset leaves %v", left)
	}
	if left, _ := os.ReadDir(filepath.Join(w.data, RunDir(""))); len(left) > 0 {
		t.Errorf("reset leaves %v", left)
	}
	w.must(w.up(w.layer("/usr")))
}

// What is being taken in is not what a dead run left.
func TestLeftoversOfTheLiving(t *testing.T) {
	w := newWorld(t, Native)
	w.must(w.up(w.layer("/usr")))
	w.must(w.mounts.Down("usr"))
	kept := Kept(w.data, "agent")
	var b bytes.Buffer
	w.must(export(kept, &b))
	other := Kept(w.data, "other")
	const run = "cccccccccccc"
	f, err := other.Hold(Holder{Run: run}, func(string) bool { return true })
	w.must(err)
	looked := false
	err = other.Import(t.Context(), readFunc(func(p []byte) (int, error) {
		n, err := b.Read(p)
		if _, serr := os.Lstat(filepath.Join(w.data, RunDir(run))); serr == nil {
			looked = true
			runs, lerr := Leftovers(w.data)
			if lerr != nil || slices.Contains(runs, run) {
				t.Errorf("left over: %v, %v", runs, lerr)
			}
		}
		return n, err
	}), run, Native, "")
	w.must(err)
	if !looked {
		t.Error("nothing was looked at")
	}
	// Killed: now it is.
	w.must(Staged(other, run).Make())
	f.Close()
	if runs, err := Leftovers(w.data); err != nil || !slices.Contains(runs, run) {
		t.Errorf("not left over: %v, %v", runs, err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

var _ io.Reader = readFunc(nil)

// What a killed writer of a record left goes when the next one comes.
func TestHalfRecord(t *testing.T) {
	p := Kept(t.TempDir(), "agent")
	if err := p.Make(); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(p.DataRoot, p.Records, ".new-=usr.json")
	if err := os.WriteFile(half, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := p.Hold(Holder{Run: "dddddddddddd"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := os.Lstat(half); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}

// An attribute that no archive can hold keeps nobody from what is in it.
func TestExportOfOddAttributes(t *testing.T) {
	w := newWorld(t, Native)
	w.must(w.up(w.layer("/usr")))
	w.sh("echo new >bin/c")
	// Without such attributes there was no native overlay either.
	w.must(unix.Setxattr(w.target+"/bin/c", "user.a=b", []byte("x"), 0))
	w.must(unix.Setxattr(w.target+"/bin/c", "user.kept", []byte("x"), 0))
	w.must(w.mounts.Down("usr"))
	var b bytes.Buffer
	w.must(export(Kept(w.data, "agent"), &b))
	if !bytes.Contains(b.Bytes(), []byte("user.kept")) {
		t.Error("the other attribute is lost")
	}
}

// Nothing is mounted over layers that a set-up is still to be added to.
func TestMountOfAPart(t *testing.T) {
	w := newWorld(t, Native)
	kept := Kept(w.data, "agent")
	l := w.layer("/usr")
	l.Below, l.Place = &kept, Staged(kept, l.Run)
	w.must(w.up(l))
	w.sh("echo new >bin/c")
	w.must(w.mounts.Down(l.Key()))
	_, records, err := kept.open()
	w.must(err)
	w.must(writeJSON(records, commitFile, Commit{Run: l.Run, Names: []string{"usr"}}))
	for _, l := range []Layer{w.layer("/usr"), l} {
		if err := w.up(l); err == nil {
			t.Errorf("mounted in %s", l.Place.Dir)
			w.must(w.mounts.Down(l.Key()))
		}
	}
	w.must(kept.Recover())
	w.must(w.up(w.layer("/usr")))
	if got := w.sh("cat bin/c"); got != "new\n" {
		t.Errorf("got %q", got)
	}
}

// No tree of an agent's keeps its owner from another image, from comparing and
// from counting, and it hides nothing that lies beside it.
func TestTreesThatAreTooMuch(t *testing.T) {
	for name, tree := range map[string]struct {
		dir    string
		levels int
		deep   bool
	}{
		"deep":      {"d", deepest + 50, true},
		"long path": {strings.Repeat("x", 250), 17, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Native)
			w.must(w.up(w.layer("/usr")))
			w.sh("echo mine >zz; echo mine >bin/a")
			w.must(w.mounts.Down("usr"))
			w.deep(tree.dir, tree.levels)
			p := Kept(w.data, "agent")

			u, err := p.Usage("usr", Native)
			w.must(err)
			if u.Least != tree.deep || u.Files < 2 {
				t.Errorf("counted: %+v", u)
			}
			var seen []string
			err = p.Changes("usr", w.image, func(c Change) error {
				if !c.Dir {
					seen = append(seen, c.Path)
				}
				return nil
			})
			if (err != nil) != tree.deep || err != nil && (!tree.deep || len(err.Error()) > 300) {
				t.Errorf("comparing: %.400v", err)
			}
			if !slices.Contains(seen, "bin/a") || !slices.Contains(seen, "zz") || !tree.deep && len(seen) != 3 {
				t.Errorf("compared: %.300q", seen)
			}

			l := w.layer("/usr")
			l.Image.Config = "sha256:2"
			newer := filepath.Join(t.TempDir(), "newer")
			w.files(newer, "usr/bin/a", "usr/zz", "usr/lib/l/x")
			w.must(os.WriteFile(newer+"/usr/bin/a", []byte("mended"), 0o644))
			now, _, err := w.mounts.Up(t.Context(), l, newer, func(string) string { return w.image }, w.target)
			w.must(err)
			if (now.Unsure > 0) != tree.deep || !slices.Equal(now.Hides, []string{"bin/a", "zz"}) {
				t.Errorf("unsure %d, hides %q", now.Unsure, now.Hides)
			}
		})
	}
}

// A file of terabytes that holds nothing is left out of an archive, and that is
// said, and so are many that are too much together; those with holes that can be
// written are in it.
func TestExportOfHoles(t *testing.T) {
	w := newWorld(t, Native)
	w.must(w.up(w.layer("/usr")))
	w.sh("echo kept >zz; truncate -s 8T huge; ln huge huge2; truncate -s 8T tail; echo x >>tail; echo data >some; truncate -s 1M some; echo end >>some")
	w.sh("for n in 1 2 3 4; do truncate -s 1M zmany$n; done")
	w.must(w.mounts.Down("usr"))
	defer func(n int64) { holesMost = n }(holesMost)
	holesMost = 3 << 20 // some and two of the many
	var b bytes.Buffer
	p := Kept(w.data, "agent")
	left, err := p.Export(&b)
	w.must(err)
	var paths []string
	for _, l := range left {
		paths = append(paths, l.Path)
	}
	if !slices.Equal(paths, []string{"/usr/huge", "/usr/huge2", "/usr/tail", "/usr/zmany3", "/usr/zmany4"}) || b.Len() > 4<<20 {
		t.Errorf("left out %q, %d bytes", left, b.Len())
	}
	w.must(p.Reset([]string{"usr"}, "ffffffffffff"))
	w.must(p.Import(t.Context(), &b, "eeeeeeeeeeee", Native, ""))
	w.must(w.up(w.layer("/usr")))
	if got := w.sh("cat zz; wc -c <some; tail -c 4 some; ls huge* tail 2>&1 | wc -l"); got != "kept\n1048580\nend\n2\n" {
		t.Errorf("%q", got)
	}
}
