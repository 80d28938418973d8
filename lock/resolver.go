package lock

import "context"

// Resolver turns an image reference into digests. It is the only thing in
// locking that may ask the outside world; package image implements it.
type Resolver interface {
	// Resolve looks ref up for each platform ("linux/amd64"). A platform the
	// image lacks is an error naming the platforms it has. Resolve is called
	// concurrently.
	Resolve(ctx context.Context, ref string, platforms []string) (Image, error)
}
