package archtest

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"
)

// goModule is what go list says of one.
type goModule struct {
	Path, Version, Dir string
	Main, Indirect     bool
}

// accepted are the licences that modules of lazaret's may have.
var accepted = []string{"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC"}

// modules lists modules by a go list command that prints them as JSON.
func modules(t *testing.T, args ...string) (out []goModule) {
	t.Helper()
	c := exec.Command("go", append([]string{"list"}, args...)...)
	c.Dir = "../.."
	c.Stderr = os.Stderr
	text, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		var m struct {
			goModule
			Module *goModule
		}
		if err := d.Decode(&m); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if m.Module != nil {
			m.goModule = *m.Module
		}
		if m.Path != "" && m.Dir != "" && !m.Main && !slices.Contains(out, m.goModule) {
			out = append(out, m.goModule)
		}
	}
}

// licences reads what a module's files say that its licence is.
func licences(t *testing.T, dir string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`(?i)^(licen[cs]e|copying)([.-].*)?$`)
	for _, e := range entries {
		// LICENSE.docs is that of texts, which are in no program.
		if e.Type()&fs.ModeType != 0 || !name.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".docs") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range licensecheck.Scan(text).Match {
			if !slices.Contains(found, m.ID) {
				found = append(found, m.ID)
			}
		}
	}
	return found
}

// TestDependencies: docs/dependencies.md has a line for each module that go.mod
// asks for, with its licence and a reason; and all that is linked into a program
// of lazaret's has a licence that asks for no more than to be named.
func TestDependencies(t *testing.T) {
	page, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| (\S+\.\S+) \| (\S+) \| (.*) \|$`)
	said, why := map[string]string{}, map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		said[m[1]], why[m[1]] = m[2], strings.TrimSpace(m[3])
	}
	direct := modules(t, "-m", "-json", "all")
	direct = slices.DeleteFunc(direct, func(m goModule) bool { return m.Indirect })
	if len(direct) < 10 {
		t.Fatalf("only %d modules were found", len(direct))
	}
	for _, m := range direct {
		if why[m.Path] == "" {
			t.Errorf("docs/dependencies.md does not say why there is %s", m.Path)
		} else if has := licences(t, m.Dir); !slices.Contains(has, said[m.Path]) {
			t.Errorf("docs/dependencies.md says %s of %s, which says %q", said[m.Path], m.Path, has)
		}
		delete(said, m.Path)
	}
	for path := range said {
		t.Errorf("docs/dependencies.md has a line about %s, which go.mod does not ask for", path)
	}
	linked := modules(t, "-deps", "-json=Module", "./cmd/...")
	if len(linked) < 20 {
		t.Fatalf("only %d modules were found in programs", len(linked))
	}
	for _, m := range linked {
		has := licences(t, m.Dir)
		if len(has) == 0 || slices.ContainsFunc(has, func(l string) bool { return !slices.Contains(accepted, l) }) {
			t.Errorf("%s, which is linked in, has the licences %q", m.Path, has)
		}
	}
}
