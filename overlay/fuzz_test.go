package overlay

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// archive makes entries of a fuzzer's bytes, three bytes each: kind, name, what
// it leads to.
func archive(t *testing.T, plan []byte, extra string) []byte {
	names := []string{"usr/", "usr/a/", "usr/a/b", "usr/c", "usr/a/../../x", "/etc/passwd", "../x", "usr/l/x", "other/x", "usr/.wh.c", "usr//c", "usr/a/./b", extra, "usr/" + extra}
	links := []string{"usr/c", "/etc", "..", "../../..", "usr/a/b", "other/x", "usr", "a", extra}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for ; len(plan) >= 3; plan = plan[3:] {
		h := &tar.Header{Name: names[int(plan[1])%len(names)], Mode: int64(plan[2]) << 4, Uid: os.Getuid(), Gid: os.Getgid(), Format: tar.FormatPAX, ModTime: time.Unix(int64(plan[2]), 0), PAXRecords: map[string]string{}}
		switch plan[0] % 8 {
		case 0:
			h.Typeflag = tar.TypeDir
		case 1:
			h.Typeflag, h.Size = tar.TypeReg, 3
		case 2:
			h.Typeflag, h.Linkname = tar.TypeSymlink, links[int(plan[2])%len(links)]
		case 3:
			h.Typeflag, h.Linkname = tar.TypeLink, links[int(plan[2])%len(links)]
		case 4:
			h.Typeflag, h.Devmajor = tar.TypeChar, int64(plan[2]%2)
		case 5:
			h.Typeflag = tar.TypeFifo
		case 6:
			h.Typeflag, h.PAXRecords[opaqueMark] = tar.TypeDir, "1"
		case 7:
			h.Typeflag, h.Size, h.PAXRecords[xattrMark+"user.x"] = tar.TypeReg, 3, "v"
		}
		if w.WriteHeader(h) != nil {
			continue
		}
		if h.Size > 0 {
			w.Write([]byte("abc"))
		}
	}
	w.Close()
	return b.Bytes()
}

// unpack is what Import does with what comes after the head.
func unpack(t *testing.T, at string, data []byte) error {
	dir, err := os.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	i := importer{dir: dir, layers: map[string]*os.File{}, head: head{Layers: map[string]Record{"usr": {Path: "/usr", Driver: Native}}}}
	defer i.close()
	if i.layers["usr"], err = makeDir(dir, "usr", 0o700); err != nil {
		t.Fatal(err)
	}
	return i.all(tar.NewReader(bytes.NewReader(data)))
}

// FuzzArchive: whatever an archive of state holds, it makes nothing outside of
// its layer, no device and no pipe; and what was taken is exported so that it is
// taken again, and is the same.
func FuzzArchive(f *testing.F) {
	f.Add([]byte{0, 0, 7, 0, 1, 7, 1, 2, 6, 1, 3, 4, 3, 2, 0}, "x")
	f.Add([]byte{2, 13, 2, 1, 7, 0}, "l")                           // a link out, then a file in it
	f.Add([]byte{2, 3, 3, 1, 13, 1}, "c/pwned")                     // likewise, further out
	f.Add([]byte{2, 3, 2, 0, 3, 1, 1, 13, 1}, "c/pwned")            // and with a directory of the link's name
	f.Add([]byte{0, 0, 7, 4, 3, 0, 6, 1, 9, 7, 2, 9}, ".wh..wh..x") // marks
	f.Add([]byte{1, 12, 1, 4, 3, 1, 5, 3, 0}, "usr/a\x00b")
	f.Fuzz(func(t *testing.T, plan []byte, extra string) {
		if len(plan) > 90 || len(extra) > 200 {
			return
		}
		root := t.TempDir()
		in := filepath.Join(root, "in")
		os.Mkdir(in, 0o700)
		defer filepath.WalkDir(in, func(p string, d os.DirEntry, err error) error { // for TempDir to remove it
			if d != nil && d.IsDir() {
				os.Chmod(p, 0o700)
			}
			return nil
		})
		err := unpack(t, in, archive(t, plan, extra))
		for _, dir := range []string{root, in} {
			if left, _ := os.ReadDir(dir); len(left) != 1 {
				t.Fatalf("it made %v", left)
			}
		}
		if err != nil {
			return
		}
		export := func(dir string) []byte {
			layer, err := os.Open(filepath.Join(dir, "usr"))
			if err != nil {
				t.Fatal(err)
			}
			defer layer.Close()
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			links := map[uint64]string{}
			st, err := stat(layer)
			if err == nil {
				err = w.WriteHeader(entry(node{st: st}, "usr/"))
			}
			if err == nil {
				err = walk(layer, Native, func(n node) error {
					if k := n.kind(); !n.gone && k != 0o040000 && k != 0o100000 && k != 0o120000 {
						t.Errorf("it made %s of kind %o", n.path, k)
					}
					room := holesMost
					return exportNode(w, "usr", n, links, &room)
				})
			}
			if err = errors.Join(err, w.Close()); err != nil {
				if errors.Is(err, os.ErrPermission) {
					t.Skip() // without root, a directory of mode 0 cannot be entered
				}
				t.Fatal(err)
			}
			return b.Bytes()
		}
		first := export(in)
		again := filepath.Join(root, "again")
		os.Mkdir(again, 0o700)
		if err := unpack(t, again, first); err != nil {
			t.Fatalf("what was exported is not taken: %v", err)
		}
		if second := export(again); !bytes.Equal(first, second) {
			t.Fatalf("exported as\n%s\nthen as\n%s", told(first), told(second))
		}
	})
}

// told lists an archive.
func told(data []byte) string {
	var b strings.Builder
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF || err != nil {
			return b.String()
		}
		b.WriteString(strings.Join([]string{string(h.Typeflag), h.Name, h.Linkname, h.FileInfo().Mode().String(), h.ModTime.String()}, " ") + "\n")
	}
}

// FuzzRecords: what is noted beside a layer is another's to write, and never
// names a layer outside of the place.
func FuzzRecords(f *testing.F) {
	f.Add("=usr.json", []byte(`{"path":"/usr","driver":"native"}`))
	f.Add("=..json", []byte(`{"path":"/usr"}`))
	f.Add("setup.json", []byte(`{"commands":"x"}`))
	f.Add("=\n.json", []byte(`{}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || len(name) > 200 {
			return
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(filepath.Join(dir, name))
		d, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		k, err := read(d)
		if err != nil {
			return
		}
		for layer, r := range k.Layers {
			if strings.ContainsAny(layer, "/\x00") || layer == "" || layer == "." && changes(layer) == "." {
				t.Fatalf("%q names the layer %q: %+v", name, layer, r)
			}
		}
	})
}
