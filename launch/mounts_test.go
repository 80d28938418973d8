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
	f.Profiles["my_agent"].Mounts["/workspace/.idea"] = lock.Mount{Kind: "veil"}
	if _, err := Resolve(f, "my_agent", fixedHost(), options()); err == nil || !strings.Contains(err.Error(), `no mount of kind "veil"`) {
		t.Errorf("it is launched: %v", err)
	}
}
