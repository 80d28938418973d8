package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// agent is this program inside a sandbox, doing what it is told: what starting
// the sandbox takes is not in what it measures.
type agent struct {
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

// insideAgent is the agent's command line in a sandbox.
var insideAgent = []string{"/bench/benchtable", insideCommand, "agent"}

// agent starts a sandbox whose command is an agent, and ends it with the
// experiment.
func (b *bench) agent(cmd *exec.Cmd) (*agent, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var talk tail
	cmd.Stderr = &talk
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a := &agent{in, bufio.NewReader(out), cmd}
	b.later(func() error {
		in.Close()
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%w\n%s", err, talk)
		}
		return nil
	})
	if _, err := a.ask("ping"); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, talk)
	}
	return a, nil
}

type answer struct {
	Value float64
	Err   string
}

// ask has the agent do something, and gives what it measured.
func (a *agent) ask(words ...string) (float64, error) {
	if err := json.NewEncoder(a.in).Encode(words); err != nil {
		return 0, err
	}
	line, err := a.out.ReadBytes('\n')
	if err != nil {
		return 0, fmt.Errorf("%q: the sandbox ended: %w", words, err)
	}
	var got answer
	if err := json.Unmarshal(line, &got); err != nil {
		return 0, err
	}
	if got.Err != "" {
		return 0, fmt.Errorf("%q: %w", words, errors.New(got.Err))
	}
	return got.Value, nil
}

// tail keeps the end of what a program says.
type tail []byte

func (t *tail) Write(b []byte) (int, error) {
	*t = append(*t, b...)
	*t = (*t)[max(0, len(*t)-4096):]
	return len(b), nil
}

func (t tail) String() string { return string(t) }

// perSecond turns an amount and the time it took into a rate.
func perSecond(amount float64, took time.Duration) float64 { return amount / took.Seconds() }
