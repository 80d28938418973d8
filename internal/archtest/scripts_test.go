package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a script that may run as root must not do: a fixed name under a
// directory that everybody writes to is somebody else's to make first, and the
// clone's modes are its owner's.
var scriptRules = []struct {
	what string
	bad  *regexp.Regexp
}{
	{"uses a fixed path under /tmp", regexp.MustCompile(`(^|[^A-Za-z0-9_])/(var/)?tmp(/|["'\s]|$)`)},
	{"changes the modes of the clone", regexp.MustCompile(`\b(chmod|chown)\b.*(\$root\b|\$\{root|\$\(pwd\)|\s\.(/|\s|$))`)},
}

func scriptFaults(text string) (faults []string) {
	for _, line := range strings.Split(text, "\n") {
		code, _, _ := strings.Cut(line, "#")
		for _, r := range scriptRules {
			if r.bad.MatchString(code) {
				faults = append(faults, strings.TrimSpace(line)+": "+r.what)
			}
		}
	}
	return faults
}

func TestScriptsLeaveNothingToOthers(t *testing.T) {
	files, err := filepath.Glob("../../.ci/*")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, f := range append(files, "../../image/build-helpers.sh", "../../Makefile") {
		if fi, err := os.Stat(f); err != nil || fi.IsDir() {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, fault := range scriptFaults(string(text)) {
			t.Errorf("%s: %s", filepath.Base(f), fault)
		}
	}
	if checked < 8 {
		t.Errorf("only %d scripts", checked)
	}
}

func TestScriptRulesFindFaults(t *testing.T) {
	for _, bad := range []string{
		"mkdir -p /tmp/lazaret-demo", `work=/tmp/x`, `cd "/var/tmp/lazaret"`, `TMP="/tmp"`,
		"chmod -R a+rX .", "chmod a+rx $root", `chown -R lazaret "${root}"`, "chmod 755 ./bin",
	} {
		if len(scriptFaults(bad)) == 0 {
			t.Errorf("nothing is said of %q", bad)
		}
	}
	for _, good := range []string{"mktemp -d", "chmod 0700 /var/lib/lazaret", "# not in /tmp/x", "chmod 0666 /dev/fuse"} {
		if f := scriptFaults(good); len(f) > 0 {
			t.Errorf("%q: %v", good, f)
		}
	}
}
