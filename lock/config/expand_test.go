package config

import (
	"path"
	"strings"
	"testing"
)

func tokens() Tokens {
	return Tokens{
		ProfileName: "claude", ProfileDir: "/data/claude", WorkspaceDir: "/home/u/wörk dir,a:b",
		RuntimeDir: "/run/user/1000", Home: "/home/u",
	}
}

func TestExpand(t *testing.T) {
	for in, want := range map[string]string{
		"/srv/x":                       "/srv/x",
		"/srv//x/./y/":                 "/srv/x/y",
		"/":                            "/",
		"~":                            "/home/u",
		"~/":                           "/home/u",
		"~/.aws":                       "/home/u/.aws",
		"/a/~/b":                       "/a/~/b",
		"/a/~":                         "/a/~",
		"/~x":                          "/~x",
		"{profile_dir}":                "/data/claude",
		"{profile_dir}/npm":            "/data/claude/npm",
		"{workspace_dir}/a b":          "/home/u/wörk dir,a:b/a b",
		"{runtime_dir}/lazaret":        "/run/user/1000/lazaret",
		"/srv/{profile_name}/x":        "/srv/claude/x",
		"/srv/a-{profile_name}-b":      "/srv/a-claude-b",
		"~/{profile_name}":             "/home/u/claude",
		"/srv/...":                     "/srv/...",
		"/srv/..x/x..":                 "/srv/..x/x..",
		"{profile_dir}/{profile_name}": "/data/claude/claude",
	} {
		got, err := Expand(in, tokens())
		if err != nil || got != want {
			t.Errorf("%s gives %q, %v; want %q", in, got, err, want)
		}
	}
}

// What a directory is called is data: it is not expanded again.
func TestExpandOnce(t *testing.T) {
	tk := tokens()
	tk.WorkspaceDir = "/w/{profile_dir}/~/{nope}/{profile_name}"
	got, err := Expand("{workspace_dir}/{profile_name}", tk)
	if want := "/w/{profile_dir}/~/{nope}/{profile_name}/claude"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestExpandErrors(t *testing.T) {
	for _, c := range []struct{ in, msg string }{
		{"", `is empty`},
		{"a/b", `"a/b" is a relative path`},
		{"./a", `"./a" is a relative path`},
		{"..", `has a .. segment, which could lead out of where it seems to be`},
		{"/a/../b", `has a .. segment, which could lead out of where it seems to be`},
		{"{profile_dir}/..", `has a .. segment, which could lead out of where it seems to be`},
		{"~/../other", `has a .. segment, which could lead out of where it seems to be`},
		{"~root/x", `"~root/x": ~ stands for a home directory only alone or before /`},
		{"{profile_dir}x", `"{profile_dir}x": {profile_dir} must be followed by /`},
		{"/a{profile_dir}", `{profile_dir} stands for an absolute path and can only come first`},
		{"~/{workspace_dir}", `{workspace_dir} stands for an absolute path and can only come first`},
		{"{profile_dir}/{runtime_dir}", `{runtime_dir} stands for an absolute path and can only come first`},
		{"{profile_name}/x", `"{profile_name}/x" is a relative path`},
		{"/{home}", `unknown token "{home}"`},
		{"/{}", `unknown token "{}"`},
		{"/{{profile_name}}", `holds a brace that belongs to no token`},
		{"/{profile_name", `holds a brace that belongs to no token`},
		{"/a}", `holds a brace that belongs to no token`},
		{"/{PROFILE_NAME}", `unknown token "{PROFILE_NAME}"`},
		{"/{pro{profile_name}file_name}", `holds a brace that belongs to no token`},
		{"/a\x00b", `holds a zero byte`},
		{"$HOME/x", `"$HOME/x" is a relative path`},
	} {
		got, err := Expand(c.in, tokens())
		if err == nil || err.Error() != c.msg {
			t.Errorf("%q gives %q, %v; want the error %s", c.in, got, err, c.msg)
		}
	}
}

// The values are checked too: .. hidden in one would lead out after expansion.
func TestExpandValues(t *testing.T) {
	for _, c := range []struct {
		in   string
		edit func(*Tokens)
		msg  string
	}{
		{"{workspace_dir}/x", func(t *Tokens) { t.WorkspaceDir = "/a/../b" }, `"{workspace_dir}/x" has a .. segment once it is expanded`},
		{"~/x", func(t *Tokens) { t.Home = "" }, `"~/x": ~ is not known here`},
		{"~/x", func(t *Tokens) { t.Home = "home" }, `"~/x": ~ is not known here`},
		{"{runtime_dir}/x", func(t *Tokens) { t.RuntimeDir = "" }, `"{runtime_dir}/x": {runtime_dir} is not known here`},
		{"{profile_dir}/x", func(t *Tokens) { t.ProfileDir = "data" }, `"{profile_dir}/x": {profile_dir} is not known here`},
		{"/x/{profile_name}", func(t *Tokens) { t.ProfileName = "../y" }, `"/x/{profile_name}": {profile_name} is not known here`},
		{"/x/{profile_name}", func(t *Tokens) { t.ProfileName = "" }, `"/x/{profile_name}": {profile_name} is not known here`},
	} {
		tk := tokens()
		c.edit(&tk)
		got, err := Expand(c.in, tk)
		if err == nil || err.Error() != c.msg {
			t.Errorf("%q gives %q, %v; want the error %s", c.in, got, err, c.msg)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"~/.aws", "{profile_dir}/x", "/a/{profile_name}/b", "{workspace_dir}/../x", "{profile_dir}x", "/{home}", "~", "//", "/a\x00", "{profile_dir}//../"} {
		f.Add(seed, "/home/u/{profile_dir}")
	}
	f.Fuzz(func(t *testing.T, s, workspace string) {
		tk := tokens()
		tk.WorkspaceDir = workspace
		got, err := Expand(s, tk)
		if err != nil {
			return
		}
		if !path.IsAbs(got) || path.Clean(got) != got || hasDotDot(got) || strings.ContainsRune(got, 0) {
			t.Fatalf("%q gives the loose path %q", s, got)
		}
		for head, dir := range map[string]string{"~": tk.Home, profileDir: tk.ProfileDir, workspaceDir: tk.WorkspaceDir, runtimeDir: tk.RuntimeDir} {
			if strings.HasPrefix(s, head) && !within(got, path.Clean(dir)) {
				t.Fatalf("%q gives %q, out of %s", s, got, dir)
			}
		}
		if !strings.HasPrefix(s, workspaceDir) && strings.ContainsAny(got, "{}") {
			t.Fatalf("%q leaves a brace in %q", s, got)
		}
	})
}
