package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// events writes a stream the short way: "pass p T", "out p T text", "pass p".
func events(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		f := strings.SplitN(line, " ", 4)
		for len(f) < 4 {
			f = append(f, "")
		}
		if f[0] == "out" {
			f[0] = "output"
		}
		b.WriteString(`{"Action":"` + f[0] + `","Package":"` + f[1] + `","Test":"` + f[2] +
			`","Output":"` + f[3] + `","Elapsed":1}` + "\n")
	}
	return b.String()
}

func TestClosingCount(t *testing.T) {
	for _, tc := range []struct {
		name, stream, want string
		ok                 bool
	}{
		{"passes", events("start p", "run p A", "pass p A", "run p B", "pass p B", "pass p"), "2 passed, 0 failed", true},
		{"a test with subtests is its subtests", events("run p A", "run p A/x", "pass p A/x", "run p A/y", "pass p A/y", "pass p A", "pass p"), "2 passed, 0 failed", true},
		{"a failed subtest counts once", events("run p A", "run p A/x", "fail p A/x", "fail p A", "fail p"), "0 passed, 1 failed", false},
		{"a parent that fails by itself", events("run p A", "run p A/x", "pass p A/x", "fail p A", "fail p"), "1 passed, 1 failed", false},
		{"a package that fails by itself", events("run p A", "pass p A", "fail p"), "1 passed, 1 failed", false},
		{"a package that does not build", events("start p", "fail p"), "0 passed, 1 failed", false},
		{"a test that never ends", events("start p", "run p A"), "0 passed, 1 failed", false},
		{"a package that never ends", events("start p", "run p A", "pass p A"), "1 passed, 1 failed", false},
		{"skipped", events("run p A", "skip p A", "run p B", "pass p B", "pass p"), "1 passed, 0 failed, 1 skipped", true},
		{"a package without tests", events("start p", "skip p"), "0 passed, 1 failed", false},
		{"nothing", "", "0 passed, 1 failed", false},
		{"no event", events("run p A", "pass p A", "pass p") + "Killed\n", "1 passed, 1 failed", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "stream")
			if err := os.WriteFile(name, []byte(tc.stream), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			ok, err := closing([]string{name}, &out)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if got := lines[len(lines)-1]; got != tc.want || ok != tc.ok {
				t.Errorf("got %q, ok %v; want %q, ok %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestFollowShowsFailuresAndIsQuietOtherwise(t *testing.T) {
	stream := events("run p A", "out p A quiet", "pass p A", "run p B", "out p B loud", "fail p B", "fail p")
	var out strings.Builder
	ok, err := follow(strings.NewReader(stream), &out, "", false)
	if err != nil || ok {
		t.Fatalf("ok %v, err %v", ok, err)
	}
	if s := out.String(); !strings.Contains(s, "loud") || strings.Contains(s, "quiet") {
		t.Errorf("output:\n%s", s)
	}
}

func TestStrictHoldsASkipAgainstTheSum(t *testing.T) {
	saved := filepath.Join(t.TempDir(), "saved")
	var out strings.Builder
	ok, err := follow(strings.NewReader(events("run p A", "skip p A", "run p B", "pass p B", "pass p")), &out, saved, true)
	if err != nil || ok {
		t.Fatalf("ok %v, err %v", ok, err)
	}
	out.Reset()
	if ok, err = closing([]string{saved}, &out); err != nil || ok {
		t.Fatalf("ok %v, err %v", ok, err)
	}
	if !strings.HasSuffix(out.String(), "1 passed, 1 failed\n") {
		t.Errorf("sum:\n%s", out.String())
	}
}

func TestSkippedHereAndRunEndToEndCountsOnce(t *testing.T) {
	dir := t.TempDir()
	unit, e2e := filepath.Join(dir, "unit"), filepath.Join(dir, "e2e")
	for name, stream := range map[string]string{
		unit: events("run p A", "skip p A", "run p B", "skip p B", "run p C", "pass p C", "pass p"),
		e2e:  strings.ReplaceAll(events("run p A", "run p A/x", "pass p A/x", "pass p A", "pass p"), `"p"`, `"p end to end"`),
	} {
		if err := os.WriteFile(name, []byte(stream), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if ok, err := closing([]string{unit, e2e}, &out); err != nil || !ok {
		t.Fatalf("ok %v, err %v", ok, err)
	}
	if !strings.HasSuffix(out.String(), "\n2 passed, 0 failed, 1 skipped\n") {
		t.Errorf("sum:\n%s", out.String())
	}
}
