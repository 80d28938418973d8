package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Side is one of several things that are measured in turn.
type side struct {
	series string
	do     func() (float64, error)
}

// experiment measures series that need the same preparations.
type experiment struct {
	name   string
	clone  bool // measured in the clone, by whoever owns it; else by the account
	rounds int
	series []string
	// prepare gives the sides of the series that are wanted. A series that
	// this machine cannot have gets its reason in missing.
	prepare func(ctx context.Context, b *bench, wanted func(string) bool, missing map[string]string) ([]side, error)
}

// take runs the experiments that the rows need. Each side has its turn in every
// round, so that whatever else the machine does meets all of them; the order
// turns round, and the first round, which warms up, does not count. What fails
// leaves its rows without numbers.
func take(ctx context.Context, b *bench, all []experiment, need []Row, runs int, talk io.Writer) (t Taken, worst float64, err error) {
	t = newTaken()
	wanted := func(series string) bool {
		return slices.ContainsFunc(need, func(r Row) bool { return r.Ours == series || r.Theirs == series })
	}
	for _, e := range all {
		if !slices.ContainsFunc(e.series, wanted) {
			continue
		}
		worst = max(worst, busy())
		start := time.Now()
		err := e.run(ctx, b, wanted, runs, t)
		if ctx.Err() != nil {
			return t, worst, ctx.Err()
		}
		if err != nil { // the others are still worth having
			fmt.Fprintf(talk, "%s: %v\n", e.name, err)
			for _, s := range e.series {
				delete(t.Samples, s)
				t.Failed[s] = firstLine(err)
			}
		}
		fmt.Fprintf(talk, "%-12s %5.1f s\n", e.name, time.Since(start).Seconds())
	}
	return t, worst, nil
}

func (e experiment) run(ctx context.Context, b *bench, wanted func(string) bool, runs int, t Taken) (err error) {
	b.begin()
	defer func() { err = errors.Join(err, b.end()) }()
	sides, err := e.prepare(ctx, b, wanted, t.Missing)
	if err != nil {
		return err
	}
	rounds := e.rounds
	if runs > 0 && rounds > 1 {
		rounds = runs
	}
	for round := range rounds + 1 {
		if rounds == 1 && round == 1 {
			break // measured once, without a warm-up
		}
		for _, s := range sides {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			v, err := s.do()
			if err != nil {
				return fmt.Errorf("%s: %w", s.series, err)
			}
			if round > 0 || rounds == 1 {
				t.Samples[s.series] = append(t.Samples[s.series], v)
			}
		}
		slices.Reverse(sides)
	}
	return nil
}

// taking times f, in milliseconds.
func taking(f func() error) (float64, error) {
	start := time.Now()
	err := f()
	return ms(time.Since(start)), err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
