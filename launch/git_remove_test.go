package launch

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// TestRemoveStoreWhileItIsWritten: a git that outlives its lazaret writes for a
// moment into what the next one removes.
func TestRemoveStoreWhileItIsWritten(t *testing.T) {
	root := t.TempDir()
	dir := root + "/store/objects"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	time.AfterFunc(300*time.Millisecond, func() { stop.Store(true) })
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := 0; !stop.Load(); i++ {
			os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o600)
		}
	}()
	for i := 0; i < 10; i++ {
		if err := removeStore(root, "store"); err != nil {
			t.Fatal(err)
		}
		os.MkdirAll(dir, 0o700)
	}
	<-written
	if err := removeStore(root, "store"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
