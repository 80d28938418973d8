package guard

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tree makes a directory from paths and contents. A path that ends in / is a
// directory; "-> X" is a symlink to X, "|" a named pipe, "mode 4755" an empty
// file of that mode, "#!…" is executable.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	grow(t, dir, files)
	return dir
}

func grow(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content, at := files[name], filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		to, isLink := strings.CutPrefix(content, "-> ")
		switch {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o755)
		case isLink:
			err = os.Symlink(to, at)
		case content == "|":
			err = syscall.Mkfifo(at, 0o644)
		case content == "mode 4755":
			if err = os.WriteFile(at, nil, 0o644); err == nil {
				err = os.Chmod(at, 0o755|os.ModeSetuid)
			}
		case strings.HasPrefix(content, "#!"):
			err = os.WriteFile(at, []byte(content), 0o755)
		default:
			err = os.WriteFile(at, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// repo is a directory that git takes for a repository, with a configuration.
func repo(at, config string) map[string]string {
	return map[string]string{
		at + "/HEAD": "ref: refs/heads/main\n", at + "/objects/": "", at + "/refs/heads/": "",
		at + "/config": "[core]\n\trepositoryformatversion = 0\n" + config,
	}
}

func join(maps_ ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range maps_ {
		maps.Copy(out, m)
	}
	return out
}

func scan(t testing.TB, roots ...string) Snapshot {
	t.Helper()
	return Scan(context.Background(), Options{Roots: roots, Now: time.Unix(1, 0)})
}

// lines says findings in one line each: severity, kind, path, what.
func lines(fs []Finding) (out []string) {
	for _, f := range fs {
		if f.Severity == seen {
			continue
		}
		s := f.Severity.String() + " " + string(f.Kind) + " " + string(f.Path)
		if f.What != "" {
			s += ": " + string(f.What)
		}
		out = append(out, s)
	}
	return out
}
