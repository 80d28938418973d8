package launch

import (
	"strings"
	"testing"

	"lazaret/lock"
)

// A kind of mount that launch has no step for stops it, rather than leaving out
// what the lock says is there.
func TestMountOfUnknownKind(t *testing.T) {
	f := locked(t, base)
	plan, err := Resolve(f, "my_agent", fixedHost(), options())
	if err != nil {
		t.Fatal(err)
	}
	// What no config can say is refused before: this is for a kind that one can.
	f.Profiles["my_agent"].Mounts["/workspace/.idea"] = lock.Mount{Kind: "veil"}
	r := resolver{Plan: plan, file: f, profile: f.Profiles["my_agent"], opts: options(), dir: t.TempDir()}
	if _, err := r.mounts(); err == nil || !strings.Contains(err.Error(), `no mount of kind "veil"`) {
		t.Errorf("it is launched: %v", err)
	}
}
