package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lazaret/gitshadow"
	"lazaret/lock/config"
)

// list says what there is.
func (m *merge) list(ctx context.Context) error {
	all, err := m.sources(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		n, err := gitshadow.CountNews(ctx, m.git, m.host.Refs[s.ref], m.host.Refs[m.branch])
		if err != nil {
			return err
		}
		fmt.Fprintf(m.out, "%s: %s that your branch does not have: lazaret merge %s\n", config.Show(strings.TrimPrefix(s.ref, "refs/heads/")), plural(n, "commit"), s.profile)
	}
	waiting, err := m.waiting(ctx)
	if err != nil {
		return err
	}
	for _, h := range waiting {
		command := h.Apply(m.host)
		if command == nil {
			command = []string{"log", h.Kept}
		}
		loses := ""
		if n, err := gitshadow.CountNews(ctx, m.git, h.Now, h.ID); h.Now != "" && err == nil && n > 0 {
			loses = fmt.Sprintf(" (takes %s from it)", plural(n, "commit"))
		}
		fmt.Fprintf(m.out, "%s%s: %s\n", config.Show(heldName(h)), loses, gitLine(command))
	}
	if len(all)+len(waiting) == 0 {
		fmt.Fprintln(m.talk, "lazaret: note: nothing of a sandbox's waits here")
	}
	return nil
}

// waiting lists the held refs that are not for the branch that is checked out.
func (m *merge) waiting(ctx context.Context) (out []gitshadow.Held, err error) {
	for _, h := range gitshadow.HeldRefs(m.host, m.profile) {
		done, err := h.Settled(ctx, m.git)
		if err != nil {
			return nil, err
		}
		if !done && h.Target != m.branch {
			out = append(out, h)
		}
	}
	return out, nil
}

func heldName(h gitshadow.Held) string {
	if h.Target != "" {
		return h.Profile + " " + h.Target
	}
	return h.Profile + " " + h.Kept
}

// apply sets what waits for a yes.
func (m *merge) apply(ctx context.Context) error {
	var errs []error
	n := 0
	waiting, err := m.waiting(ctx)
	if err != nil {
		return err
	}
	for _, h := range waiting {
		command := h.Apply(m.host)
		// What would take commits from a ref is not done with all the others.
		if h.Target == "" || command == nil || h.Now != "" && !m.forward(ctx, h) {
			how := gitLine(command)
			if command == nil {
				how = "lazaret merge, in the working tree that has it checked out"
			}
			fmt.Fprintf(m.talk, "lazaret: note: %s is for you to take: %s\n", config.Show(h.Kept), how)
			continue
		}
		n++
		if m.dryRun {
			fmt.Fprintln(m.out, gitLine(command))
			continue
		}
		if err := h.Take(ctx, m.git, m.host); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", config.Show(h.Target), err))
			continue
		}
		m.host.Refs[h.Target] = h.ID
		fmt.Fprintf(m.out, "%s is %.12s\n", config.Show(h.Target), h.ID)
	}
	if n == 0 {
		fmt.Fprintln(m.talk, "lazaret: note: no branch or tag waits for a yes")
	}
	return errors.Join(append(errs, m.forget(ctx))...)
}

// forward tells whether a held ref leads on from where its target is.
func (m *merge) forward(ctx context.Context, h gitshadow.Held) bool {
	n, err := gitshadow.CountNews(ctx, m.git, h.Now, h.ID)
	return err == nil && n == 0 && strings.HasPrefix(h.Target, "refs/heads/")
}
