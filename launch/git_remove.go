package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
)

// takeOver makes what a sandbox wrote to a run's stores the person's own, in
// podman's namespace, where the ids of the sandbox's users are. The sandbox is
// gone, and no link is followed.
func (u *undoer) takeOver(ctx context.Context, name string) error {
	dir := filepath.Join(u.record.DataRoot, name)
	nested, err := filepath.Glob(filepath.Join(quoteGlob(dir), "nested", "*"))
	if err != nil {
		return err
	}
	var written []string
	for _, store := range append([]string{dir}, nested...) {
		for _, part := range []string{"objects", "refs", "logs"} {
			if path := filepath.Join(store, part); exists(path) {
				written = append(written, path)
			}
		}
	}
	if len(written) == 0 {
		return nil
	}
	for _, how := range [][]string{{"chown", "-h", "-R", "-P", "0:0"}, {"chmod", "-R", "u+rwX"}} {
		argv := append(append([]string{u.podman.Podman, "unshare"}, how...), "--")
		if _, err := proc.Output(ctx, proc.Cmd{Argv: append(argv, written...), Env: u.env}); err != nil {
			return fmt.Errorf("taking over what other users of the sandbox wrote: %w", err)
		}
	}
	return nil
}

// quoteGlob writes a path so that filepath.Glob takes it for itself.
func quoteGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// A git that a killed lazaret had started goes on for a moment, and may still be
// writing into what is removed.
const (
	lastWords = 5 * time.Second
	lastLook  = 20 * time.Millisecond
)

// removeStore removes what a run's git directories were made of. The sandbox
// wrote in it, so it may be of any depth.
func removeStore(dataRoot, name string) error {
	root, err := os.OpenRoot(dataRoot + "/")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	for end := time.Now().Add(lastWords); ; time.Sleep(lastLook) {
		err := root.RemoveAll(name)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.ENOTEMPTY) || time.Now().After(end) {
			return fmt.Errorf("removing %s: %w", name, err)
		}
	}
}
