package launch

import (
	"slices"
	"testing"

	"lazaret/lock"
)

// TestWritable: the workspace, and what else of the host's the sandbox can
// write to; not what it only reads, what is not there, and what is its own.
func TestWritable(t *testing.T) {
	p := lock.Profile{Mounts: map[string]lock.Mount{
		"/workspace": {Kind: lock.KindBind, Mode: "rw,z"},
		"/a":         {Kind: lock.KindBind, Mode: "rw"},
		"/again":     {Kind: lock.KindBind, Mode: "rw"},
		"/cache":     {Kind: lock.KindBind, Mode: "rw"},
		"/file":      {Kind: lock.KindBind, Mode: "rw"},
		"/none":      {Kind: lock.KindBind, Mode: "rw"},
		"/ro":        {Kind: lock.KindBind, Mode: "ro"},
		"/root":      {Kind: lock.KindOverlay},
	}}
	h := Host{Workspace: "/home/u/ws", DataRoot: "/home/u/data", Sources: map[string]Source{
		"/workspace": {Path: "/home/u/ws", Exists: true, Dir: true},
		"/a":         {Path: "/home/u/a", Exists: true, Dir: true},
		"/again":     {Path: "/home/u/a", Exists: true, Dir: true},
		"/cache":     {Path: "/home/u/data/p/cache", Exists: true, Dir: true},
		"/file":      {Path: "/home/u/f", Exists: true},
		"/none":      {Path: "/home/u/none", Dir: true},
		"/ro":        {Path: "/home/u/ro", Exists: true, Dir: true},
	}}
	if got, want := writable(p, h), []string{"/home/u/ws", "/home/u/a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
