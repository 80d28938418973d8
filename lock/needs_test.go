package lock

import (
	"errors"
	"reflect"
	"testing"
)

func TestNeeds(t *testing.T) {
	f := richFile(t)
	got, err := f.Needs("claude")
	if err != nil {
		t.Fatal(err)
	}
	want := Needs{
		DataRoot:  "~/.local/share/lazaret",
		SocketDir: "{runtime_dir}/lazaret",
		Env: []EnvNeed{
			{Key: "ANTHROPIC_API_KEY", Name: "ANTHROPIC_API_KEY", Optional: true},
			{Key: "TOKEN", Name: "TOKEN"},
		},
		Paths: []PathNeed{
			{Target: "/root/.aws", Source: "~/.aws"},
			{Target: "/root/.cache", Source: "{profile_dir}/cache", Writable: true, Create: true},
			{Target: "/srv/a:b,c", Source: "/srv/wörk dir", Writable: true},
			{Target: "/workspace", Source: "{workspace_dir}", Writable: true},
			{Target: "/workspace/ci", Source: "{workspace_dir}/ci", Writable: true},
			{Target: "/workspace/ci/lazaret.toml", Source: "{workspace_dir}/ci/lazaret.toml"},
			{Target: "/workspace/lazaret.lock", Source: "{workspace_dir}/lazaret.lock"},
			{Target: "/workspace/lazaret.toml", Source: "{workspace_dir}/lazaret.toml"},
		},
		Git:     true,
		Overlay: "native",
		Sidecar: true,
		Tools:   [][]string{{"podman"}, {"runsc"}, {"runc", "crun"}, {"git"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}

	f = build(t, request(t, base+profileText("aa", "builtin:shell")+"git = \"none\"\n", &registry{}))
	got, err = f.Needs("aa")
	if err != nil {
		t.Fatal(err)
	}
	if got.Git || got.Sidecar || got.Overlay != "" || got.SocketDir != "" || got.Env != nil || len(got.Tools) != 2 {
		t.Errorf("the plainest profile needs %+v", got)
	}

	_, err = f.Needs("bb")
	var up *UnknownProfileError
	if !errors.As(err, &up) || up.Error() != `profile "bb": the lock has only aa` {
		t.Errorf("got %v", err)
	}
	if up.Name = "aaa"; up.Hint() != "did you mean aa?" {
		t.Errorf("a slip of the finger: %s", up.Hint())
	}
}
