package gitshadow

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzPlan: whatever repositories there are, what the sandbox gets to write is
// below a git directory of its own, what is the host's is read-only, and what
// git obeys in its own is read-only too.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{1}, "", "auto", "", false)
	f.Add([]byte{1, 3, 2, 1}, "vendor/lib", "x/y", ".vscode", true)
	f.Add([]byte{4, 0, 1}, "a b:c,d", "", "lazaret.toml", false)
	f.Add(bytes.Repeat([]byte{3}, 40), "n", "auto", "n/1", true)
	f.Fuzz(func(t *testing.T, kinds []byte, name, branch, covered string, write bool) {
		if len(kinds) == 0 || len(kinds) > 60 || strings.ContainsRune(name, 0) {
			return
		}
		repo := func(i int, b byte) Repo {
			r := Repo{
				Workspace: "/w", Kind: Kind(b % 5), RefFormat: "files", ObjectFormat: "sha1", Head: "refs/heads/main",
				CommonDir: "/w/.git", GitDir: "/w/.git", HeadLog: b&16 != 0,
			}
			if b&32 != 0 {
				r.Alternates = []string{"/elsewhere/objects"}
			}
			if i > 0 {
				r.Path = filepath.Join(filepath.Clean("/" + name)[1:], string(rune('a'+i)))
				r.Workspace = "/w/" + r.Path
				r.CommonDir, r.GitDir = r.Workspace+"/.git", r.Workspace+"/.git"
			}
			return r
		}
		r := repo(0, kinds[0])
		for i, b := range kinds[1:] {
			r.Nested = append(r.Nested, repo(i+1, b))
		}
		mode := Quarantine
		if write {
			mode = Writeback
		}
		s, err := Plan(r, Wish{Profile: "claude", Mode: mode, Branch: branch, Size: 1, Covered: []string{covered}}, "/store", "/at")
		if err != nil {
			return
		}
		read := map[string]bool{}
		seen := map[string]bool{}
		for _, m := range s.Mounts() {
			if seen[m.Target] || filepath.Clean(m.Target) != m.Target {
				t.Fatalf("%q is mounted twice, or is no clean path", m.Target)
			}
			for d := filepath.Dir(m.Target); d != "/"; d = filepath.Dir(d) {
				if _, later := seen[d]; !later {
					for _, other := range s.Mounts() {
						if other.Target == d {
							t.Fatalf("%q comes before %q, which it lies in", m.Target, d)
						}
					}
				}
			}
			seen[m.Target] = true
			if m.ReadOnly {
				read[m.Target] = true
			}
			inGit := strings.Contains(m.Target+"/", "/.git/") && strings.HasPrefix(m.Target, "/workspace/")
			if !inGit && !strings.HasPrefix(m.Target, insideAll+"/") && m.Target != InsideHost {
				t.Fatalf("%q is mounted, which is no place of git's", m.Target)
			}
			if !strings.HasPrefix(m.Source, "/at/") {
				t.Fatalf("%q is not what the helper has", m.Source)
			}
		}
		for _, p := range s.Places {
			if !read[p.Host] {
				t.Fatalf("the host's git directory can be written to at %q", p.Host)
			}
			for _, a := range p.Alternates {
				if !read[a] {
					t.Fatalf("the host's objects can be written to at %q", a)
				}
			}
			if p.Linked() && !read[filepath.Join("/workspace", p.Repo.Path, ".git")] {
				t.Fatalf("the .git of %q can be replaced", p.Repo.Path)
			}
			if !s.inner(p) && !read[p.Common+"/objects/info"] {
				t.Fatalf("%q: whoever writes objects/info has git read objects from anywhere", p.Repo.Path)
			}
		}
	})
}

// FuzzRefs: what a repository's packed refs say is written for the sandbox so
// that it reads the same, and holds no ref that could be another path.
func FuzzRefs(f *testing.F) {
	id := strings.Repeat("a", 40)
	f.Add("# pack-refs with: peeled fully-peeled sorted \n" + id + " refs/heads/main\n" + id + " refs/tags/v1\n^" + id + "\n")
	f.Add(id + " refs/heads/../../config\n" + id + " refs/stash\n" + id + " refs/heads/a\r\n")
	f.Add(id + " refs/heads/b\n" + id + " refs/heads/a\n^x\n")
	dir := f.TempDir()
	os.MkdirAll(filepath.Join(dir, "refs/heads"), 0o700)
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(dir, "packed-refs"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := &Repo{CommonDir: dir, ObjectFormat: "sha1"}
		list, peeled, err := r.refs()
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := writePacked(&out, list, peeled); err != nil {
			t.Fatal(err)
		}
		again, odd, err := parsePacked(out.Bytes(), "sha1", givenMost)
		if err != nil {
			t.Fatalf("%q is written as %q: %v", text, out.Bytes(), err)
		}
		long := 0
		for i, x := range list {
			if len(x.name) > refNameMax {
				long++
				continue
			}
			if again[x.name] != x.id || !cleanRef(x.name) || !seen(x.name) || i > 0 && list[i-1].name >= x.name {
				t.Fatalf("%q: %+v is read as %q", text, x, again[x.name])
			}
			if one, err := r.readRef(x.name); err != nil || one != x.id {
				t.Fatalf("%q: %s is %q, %v", text, x.name, one, err)
			}
		}
		if odd != long || len(again) != len(list)-long {
			t.Fatalf("%q: %d refs became %d, %d odd", text, len(list), len(again), odd)
		}
	})
}

// FuzzHead: what is taken for a checked out branch is one, and a clean path.
func FuzzHead(f *testing.F) {
	for _, s := range []string{"ref: refs/heads/main\n", strings.Repeat("a", 40) + "\n", "ref:\trefs/heads/../config", "ref: refs/heads/a\x00b", "ref: HEAD", "x"} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, "HEAD"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		r := &Repo{GitDir: dir, CommonDir: dir, ObjectFormat: "sha1"}
		if r.readHead() == nil {
			if r.Detached != (r.Head == "") || r.Detached && !isID(r.HeadID, "sha1") {
				t.Fatalf("%q: %+v", text, r)
			}
			if below := filepath.Join(dir, r.Head); !r.Detached && (!strings.HasPrefix(r.Head, "refs/heads/") || !strings.HasPrefix(below, dir+"/refs/heads/")) {
				t.Fatalf("%q checks out %q", text, r.Head)
			}
		}
		branch, id := headOf(text, "sha1")
		if branch != "" && (id != "" || !isRef(branch)) || id != "" && !isID(id, "sha1") {
			t.Fatalf("%q is %q and %q", text, branch, id)
		}
	})
}

// FuzzRefNames: a name that is taken for a ref's is one to git too. It starts
// git for each, so it is for longer runs.
func FuzzRefNames(f *testing.F) {
	for _, s := range []string{"refs/heads/main", "refs/heads/a.lock", "refs/heads/.a", "refs/heads/a..b", "refs/heads/a@{b", "refs/heads/@", "refs/heads/é", "refs/heads/\x7f", "refs/x", "refs/heads/a/", "refs/heads/a."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !isRef(name) {
			return
		}
		if strings.ContainsAny(name, "\n\x00") {
			t.Fatalf("%q is taken for a ref", name)
		}
		sh(t, ".", "git check-ref-format "+quoted(name))
	})
}

// quoted is a text as a shell reads it back.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
