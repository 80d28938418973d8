package launch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// heldBy makes the record of a run whose lazaret is the process of that name, and
// gives its lock, held.
func heldBy(t *testing.T, name string) (dir string, lock *os.File) {
	t.Helper()
	runtimeDir := t.TempDir()
	c, err := newClaim(runtimeDir, testRecord("/ws"))
	if err != nil {
		t.Fatal(err)
	}
	c.close()
	if err := write(c.dir, supervisorLock, name); err != nil {
		t.Fatal(err)
	}
	if lock, err = lockFile(filepath.Join(c.dir, supervisorLock)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	return c.dir, lock
}

// zombie is the name of a process that was killed and is still to be seen.
func zombie(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Wait() })
	name, err := processName(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if processEnded(name) {
		t.Error("a process that lives is taken to have ended")
	}
	cmd.Process.Kill()
	if !processEnded(name) { // at once: that it must is enough
		t.Error("a process that was killed is taken to live")
	}
	return name
}

// TestCleanWaitsForADyingLazaret: whoever was just killed may hold its lock for a
// moment yet, or somebody does who only looks.
func TestCleanWaitsForADyingLazaret(t *testing.T) {
	for name, process := range map[string]string{
		"killed": zombie(t), "gone": "1073741823/1", "another by now": processOf(t) + "0",
	} {
		t.Run(name, func(t *testing.T) {
			dir, lock := heldBy(t, process)
			time.AfterFunc(200*time.Millisecond, func() { lock.Close() })
			c, err := claimDead(t.Context(), filepath.Dir(dir), filepath.Base(dir))
			if err != nil {
				t.Fatalf("taken to live: %v", err)
			}
			defer c.close()
			if !beingCleaned(dir) {
				t.Error("the lock does not say that it is being cleaned")
			}
		})
	}
}

// TestCleanLeavesWhoLives: without a wait, and for ever; nor is one waited for
// for ever.
func TestCleanLeavesWhoLives(t *testing.T) {
	for name, process := range map[string]string{"alive": processOf(t), "without a name": "", "nonsense": "x/y"} {
		t.Run(name, func(t *testing.T) {
			dir, _ := heldBy(t, process)
			start := time.Now()
			if _, err := claimDead(t.Context(), filepath.Dir(dir), filepath.Base(dir)); !errors.Is(err, errHeld) {
				t.Fatalf("got %v", err)
			}
			if took := time.Since(start); took >= holdPatience {
				t.Errorf("it took %v", took)
			}
		})
	}
	dir, _ := heldBy(t, zombie(t))
	if _, err := claimDead(t.Context(), filepath.Dir(dir), filepath.Base(dir)); !errors.Is(err, errHeld) {
		t.Errorf("a lock that stays held: got %v", err)
	}
}

func processOf(t *testing.T) string {
	t.Helper()
	name, err := processName(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestClaimNamesItsProcess, for whoever cleans.
func TestClaimNamesItsProcess(t *testing.T) {
	c, err := newClaim(t.TempDir(), testRecord("/ws"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	b, err := readRegular(filepath.Join(c.dir, supervisorLock))
	if err != nil || string(b) != processOf(t) {
		t.Errorf("%q, %v", b, err)
	}
	if died(c.dir) {
		t.Error("a run that lives is taken for dead")
	}
}
