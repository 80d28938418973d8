package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"lazaret/escalate"
	"lazaret/launch"
)

// denier says no to everything that the arena's sandboxes ask for, as a careful
// person would: nothing is run on this machine for an attack.
type denier struct {
	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	asked map[string]escalate.Ask // by id
	found []string
}

// askedMostAtOnce is how many requests a person may be shown at a time before
// that counts as a flood.
const askedMostAtOnce = 64

func (a *arena) deny(ctx context.Context) *denier {
	ctx, stop := context.WithCancel(ctx)
	n := &denier{stop: stop, done: make(chan struct{}), asked: map[string]escalate.Ask{}}
	env := launch.Env{Getenv: a.getenv}
	go func() {
		defer close(n.done)
		for ctx.Err() == nil {
			all, _ := launch.Asking(ctx, env)
			for _, far := range all {
				if rel, err := filepath.Rel(a.dir, far.Record.Workspace); err == nil && filepath.IsLocal(rel) {
					n.answer(ctx, far)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return n
}

func (n *denier) answer(ctx context.Context, far launch.Far) {
	asks, err := far.Pending(ctx)
	if err != nil {
		return
	}
	n.mu.Lock()
	if len(asks) > askedMostAtOnce {
		n.found = append(n.found, fmt.Sprintf("%d requests wait for the person at once", len(asks)))
	}
	n.mu.Unlock()
	for _, ask := range asks {
		n.mu.Lock()
		n.asked[ask.ID] = ask
		n.found = append(n.found, wrong(ask)...)
		n.mu.Unlock()
		far.Answer(ctx, ask.Seq, escalate.Verdict{Kind: escalate.Deny, By: "lazaret doctor"})
	}
}

// wrong says what of a request no person should ever be shown.
func wrong(ask escalate.Ask) (out []string) {
	if len(ask.Argv) > 0 && filepath.Base(ask.Argv[0]) == "lazaret" && ask.Trouble == "" {
		out = append(out, "a person was asked to run lazaret itself for the sandbox")
	}
	return out
}

func (n *denier) taken() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := slices.Clone(n.found)
	n.found = nil
	return out
}

func (n *denier) end() {
	n.stop()
	<-n.done
}
