package proc

import (
	"context"
	"testing"
)

// TestTelling: every program that ends is told of, however it ended.
func TestTelling(t *testing.T) {
	var got []int
	ctx := Telling(context.Background(), func(r Ran) { got = append(got, r.Status) })
	Output(ctx, Cmd{Argv: []string{"/bin/true"}})
	Output(ctx, Cmd{Argv: []string{"/bin/sh", "-c", "exit 3"}})
	Output(ctx, Cmd{Argv: []string{"/nowhere/at/all"}})
	if _, wait, err := Start(ctx, Cmd{Argv: []string{"/bin/sh", "-c", "kill -9 $$"}}); err == nil {
		wait()
	}
	Output(context.Background(), Cmd{Argv: []string{"/bin/true"}})
	if len(got) != 4 || got[0] != 0 || got[1] != 3 || got[2] != -1 || got[3] != 137 {
		t.Errorf("told of %v", got)
	}
}
