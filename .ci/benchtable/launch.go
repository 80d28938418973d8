package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// everything is a profile with all that launching has to do.
var everything = profile{escalate: true, lines: `persistent_dirs = ["/root"]`}

func prepareLaunch(ctx context.Context, b *bench, wanted func(string) bool, missing map[string]string) ([]side, error) {
	all, err := b.newWorkspace(ctx, "all", everything)
	if err != nil {
		return nil, err
	}
	some, err := b.newWorkspace(ctx, "some", profile{})
	if err != nil {
		return nil, err
	}
	sides := []side{
		{"launch all", func() (float64, error) {
			return taking(func() error { return said(all.launch(ctx, "true")) })
		}},
		{"launch net git", func() (float64, error) {
			return taking(func() error { return said(some.launch(ctx, "true")) })
		}},
		{"podman run", func() (float64, error) {
			cmd, err := all.podman(ctx, nil, "true")
			if err != nil {
				return 0, err
			}
			return taking(func() error { return said(cmd) })
		}},
	}
	if b.srt == "" {
		missing["srt"] = b.noSrt
	} else if err := said(all.run(ctx, b.srt, "true")); err != nil {
		missing["srt"] = "srt does not run here: " + firstLine(err)
	} else {
		sides = append(sides, side{"srt", func() (float64, error) {
			return taking(func() error { return said(all.run(ctx, b.srt, "true")) })
		}})
	}
	return among(sides, wanted), nil
}

// among leaves out what nobody wants.
func among(sides []side, wanted func(string) bool) (out []side) {
	for _, s := range sides {
		if wanted(s.series) {
			out = append(out, s)
		}
	}
	return out
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func prepareEight(ctx context.Context, b *bench, _ func(string) bool, _ map[string]string) ([]side, error) {
	var all []*workspace
	for i := range 8 {
		w, err := b.newWorkspace(ctx, fmt.Sprint("eight", i), everything)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	atOnce := func(make func(*workspace) (*exec.Cmd, error)) func() (float64, error) {
		return func() (float64, error) {
			return taking(func() error {
				var g errgroup.Group
				for _, w := range all {
					g.Go(func() error {
						cmd, err := make(w)
						if err != nil {
							return err
						}
						return said(cmd)
					})
				}
				return g.Wait()
			})
		}
	}
	return []side{
		{"launch eight", atOnce(func(w *workspace) (*exec.Cmd, error) { return w.launch(ctx, "true"), nil })},
		{"podman run eight", atOnce(func(w *workspace) (*exec.Cmd, error) { return w.podman(ctx, nil, "true") })},
	}, nil
}

func prepareTeardown(ctx context.Context, b *bench, _ func(string) bool, _ map[string]string) ([]side, error) {
	w, err := b.newWorkspace(ctx, "teardown", everything)
	if err != nil {
		return nil, err
	}
	name := "lazaret-bench-teardown"
	return []side{
		{"teardown", func() (float64, error) { return afterLastWord(w.launch(ctx, "echo", "done")) }},
		{"podman rm", func() (float64, error) {
			cmd, err := w.podman(ctx, []string{"-d", "--name", name}, "sleep", "1000")
			if err != nil {
				return 0, err
			}
			if err := said(cmd); err != nil {
				return 0, err
			}
			return taking(func() error {
				return said(w.run(ctx, runsc("rm", "--force", "--time", "0", name)...))
			})
		}},
	}, nil
}

// afterLastWord gives the time from what a sandbox's command prints as its last
// word to the end of everything.
func afterLastWord(cmd *exec.Cmd) (float64, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var talk tail
	cmd.Stderr = &talk
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	_, err = bufio.NewReader(out).ReadString('\n')
	start := time.Now()
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return 0, fmt.Errorf("%w\n%s", err, talk)
	}
	return ms(time.Since(start)), nil
}

func prepareVersion(ctx context.Context, b *bench, _ func(string) bool, _ map[string]string) ([]side, error) {
	return []side{
		{"version", func() (float64, error) {
			return taking(func() error { return said(exec.CommandContext(ctx, b.lazaret(), "--version")) })
		}},
		{"true", hostTrue(ctx)},
	}, nil
}

// hostTrue is what starting any program takes here.
func hostTrue(ctx context.Context) func() (float64, error) {
	return func() (float64, error) {
		return taking(func() error { return exec.CommandContext(ctx, "/bin/true").Run() })
	}
}
