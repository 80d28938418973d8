package proc

import (
	"context"
	"time"
)

// Ran is a program that was run to its end.
type Ran struct {
	Argv   []string      `json:"argv"`
	Start  time.Time     `json:"start"`
	Took   time.Duration `json:"took"`
	Status int           `json:"status"` // as ExitStatus has it
}

type ranKey struct{}

// Telling gives a context under which each program that ends is told of. tell
// may be called concurrently.
func Telling(ctx context.Context, tell func(Ran)) context.Context {
	return context.WithValue(ctx, ranKey{}, tell)
}

// told tells of a program that ended, where somebody wants to know.
func told(ctx context.Context, argv []string, start time.Time, err error) {
	if tell, ok := ctx.Value(ranKey{}).(func(Ran)); ok {
		tell(Ran{argv, start, time.Since(start), ExitStatus(err)})
	}
}
