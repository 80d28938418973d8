package lock

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// checkLines asks whether old is the lock of text.
func checkLines(t *testing.T, req Request, old *File) []string {
	t.Helper()
	list, _, err := Check(context.Background(), req, old)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range list {
		out = append(out, d.String())
	}
	return out
}

func TestCheckNeedsNoNetwork(t *testing.T) {
	r := &registry{}
	text := rich + profileText("local", "builtin:shell")
	old := build(t, request(t, text, r))
	r.asked = nil
	if got := checkLines(t, request(t, text, r), old); got != nil {
		t.Errorf("a fresh lock is stale: %q", got)
	}
	if !slices.Equal(r.asked, []string{"builtin:shell"}) {
		t.Errorf("asked for %q", r.asked)
	}
	// Not even for a reference that it has never seen.
	r.asked = nil
	got := checkLines(t, request(t, strings.Replace(text, "node:24", "node:26", 1), r), old)
	if !slices.Contains(got, `profiles.claude.image.ref: the lock says "registry.example/node:24", it should be "registry.example/node:26"`) {
		t.Errorf("got %q", got)
	}
	if !slices.Equal(r.asked, []string{"builtin:shell"}) {
		t.Errorf("asked for %q", r.asked)
	}
}

func TestCheckSaysWhat(t *testing.T) {
	old := build(t, request(t, rich, &registry{}))
	for _, tt := range []struct {
		old, new string   // an edit of the config
		want     []string // besides the line for lazaret.toml itself
	}{
		{`overlay = "native"`, `overlay = "auto"`, []string{`storage.overlay: the lock says "native", it should be "auto"`}},
		{`state = "workspace"`, `state = "profile"`, []string{`profiles.claude.state: the lock says "workspace", it should be "profile"`}},
		{`"9.9.9.9/32:53"`, `"8.8.8.8/32:53"`, []string{
			`profiles.claude.network.allow: the lock lacks "8.8.8.8/32:53"`,
			`profiles.claude.network.allow: the lock has "9.9.9.9/32:53", which should not be there`,
		}},
		{`pids = 512`, ``, []string{`profiles.claude.limits.pids: should not be in the lock`}},
		{"[profiles.plain]\n", "[profiles.plain]\npids = 3\n", []string{`profiles.plain.limits.pids: is missing from the lock`}},
		{`git = "none"`, `git = "none"` + "\n" + `persistent_dirs = ["/opt"]`, []string{`profiles.plain.mounts."/opt": is missing from the lock`}},
		{`git = "none"`, ``, []string{
			`profiles.plain.mounts."/run/lazaret/git": is missing from the lock`,
			`profiles.plain.mounts."/workspace/.git": the lock says { kind = "tmpfs", size = "16m" }, it should be { kind = "git", size = "256m" }`,
			`profiles.plain.git.mode: the lock says "none", it should be "quarantine"`,
		}},
		{`mode = "ro" }`, `mode = "rw" }`, []string{
			`profiles.claude.mounts."/root/.aws": the lock says { kind = "bind", from = "~/.aws", mode = "ro" }, it should be { kind = "bind", from = "~/.aws", mode = "rw" }`,
		}},
		{"date -u", "date -R", []string{
			`profiles.claude.escalation.auto_approve_exact: the lock lacks ["date", "-R"]`,
			`profiles.claude.escalation.auto_approve_exact: the lock has ["date", "-u"], which should not be there`,
			`profiles.plain.escalation.auto_approve_exact: the lock lacks ["date", "-R"]`,
			`profiles.plain.escalation.auto_approve_exact: the lock has ["date", "-u"], which should not be there`,
		}},
		{`GREETING = "grüß`, `GREETING = "hunter2`, []string{`profiles.claude.env.GREETING: the lock has another value`}},
		{`[profiles.plain]`, `[profiles.other]`, []string{
			`profiles.other: is not in the lock`,
			`profiles.plain: is in the lock, but no longer in the config`,
		}},
	} {
		text := string(edit(t, rich, tt.old, tt.new))
		want := append([]string{"inputs.workspace: lazaret.toml has changed since the lock was made"}, tt.want...)
		if got := checkLines(t, request(t, text, &registry{}), old); !slices.Equal(got, want) {
			t.Errorf("%s → %s:\n%s\nwant\n%s", tt.old, tt.new, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestCheckOfOtherThings(t *testing.T) {
	text := base + profileText("aa", "r.example/a:1") + profileText("sh", "builtin:shell")
	r := &registry{}
	old := build(t, request(t, text, r))
	same := func() Request { return request(t, text, r) }

	t.Run("another build's helpers", func(t *testing.T) {
		req := same()
		s := req.Helpers.Sidecar["linux-amd64"]
		s.Config = digest("other")
		req.Helpers.Sidecar["linux-amd64"] = s
		req.Helpers.Escalate["linux-arm64"] = Binary{digest("other")}
		got := checkLines(t, req, old)
		if len(got) != 2 || !strings.HasPrefix(got[0], "sidecar.linux-amd64: the lock was made by a lazaret with another sidecar (") ||
			!strings.HasPrefix(got[1], "escalate.linux-arm64: the lock was made by a lazaret with another escalation client (") {
			t.Errorf("got %q", got)
		}
	})
	t.Run("another build's shell", func(t *testing.T) {
		r := &registry{}
		r.push("builtin:shell")
		got := checkLines(t, request(t, text, r), old)
		if len(got) != 3 || !strings.HasPrefix(got[0], `profiles.sh.image: "builtin:shell" is another image on linux-amd64 now (locked sha256:`) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("more platforms", func(t *testing.T) {
		req := same()
		req.Inputs.Platforms = []string{"linux/amd64"}
		one := build(t, req)
		got := checkLines(t, same(), one)
		want := []string{
			`inputs.platforms: the lock says ["linux/amd64"], it should be ["linux/amd64", "linux/arm64"]`,
			`profiles.aa.image: "r.example/a:1" is not pinned for every platform`,
			`profiles.sh.image: "builtin:shell" is not pinned for linux-arm64`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s", strings.Join(got, "\n"))
		}
	})
	t.Run("another layer", func(t *testing.T) {
		req := same()
		req.Inputs.User = &Input{UserPath, strings.Repeat("0", 64)}
		req.Inputs.Workspace = nil
		got := checkLines(t, req, old)
		want := []string{
			"inputs.user: ~/.config/lazaret/config.toml takes part, and did not when the lock was made",
			"inputs.workspace: lazaret.toml took part when the lock was made, and does not now",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
}

// TestEveryChangeIsSeen changes each value of a lock in turn: a field that a
// comparison overlooks would be one that a check passes over.
func TestEveryChangeIsSeen(t *testing.T) {
	n := len(leaves(richFile(t)))
	for i := range n {
		f := richFile(t)
		key := change(reflect.ValueOf(f).Elem(), &i)
		if key == "" || key == "Version" { // Parse sees to the version
			continue
		}
		if d := Stale(f, richFile(t)); len(d) == 0 {
			t.Errorf("a change of %s is not seen", key)
		}
	}
}

// change alters the n-th plain value below v, counting down, and names it.
func change(v reflect.Value, n *int) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return change(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			if name := change(v.Field(i), n); name != "" {
				return v.Type().Field(i).Name + strings.TrimPrefix("."+name, ".!")
			}
		}
		return ""
	case reflect.Map:
		for _, k := range sortedKeys(v) {
			entry := reflect.New(v.Type().Elem()).Elem()
			entry.Set(v.MapIndex(reflect.ValueOf(k)))
			if name := change(entry, n); name != "" {
				v.SetMapIndex(reflect.ValueOf(k), entry)
				return k + "." + name
			}
		}
		return ""
	}
	if *n > 0 {
		*n--
		return ""
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		v.Set(reflect.AppendSlice(v, v.Slice(0, min(1, v.Len()))))
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
	}
	return "!"
}
