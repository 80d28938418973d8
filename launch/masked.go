package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maskTargets are the places in the workspace that host programs obey on
// sight, with their in-container paths.
var maskTargets = []string{"/workspace/.git", "/workspace/.idea", "/workspace/.vscode"}

// masked looks at what the masks will cover. A symlink is refused: the mask
// would land on what it points to, and the link itself stay the agent's.
func masked(ws string, shared bool) (map[string]fs.FileMode, error) {
	out := map[string]fs.FileMode{}
	for _, target := range append([]string{"/workspace/lazaret.lock", "/workspace/lazaret.toml"}, maskTargets...) {
		name := strings.TrimPrefix(target, "/workspace/")
		fi, err := os.Lstat(filepath.Join(ws, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("looking at %s: %w", name, err)
		case !fi.IsDir() && !fi.Mode().IsRegular():
			return nil, refuse("replace it with a real file or directory", "%s in the workspace is %s: a mask over it would not hold", name, kindOf(fi.Mode()))
		}
		if shared && fi.IsDir() && isEmpty(filepath.Join(ws, name)) {
			continue
		}
		out[target] = fi.Mode()
	}
	return out, nil
}

func isEmpty(dir string) bool {
	f, err := os.Open(dir + "/") // not a pipe, if it is one by now
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

func kindOf(m fs.FileMode) string {
	switch m.Type() {
	case fs.ModeSymlink:
		return "a symlink"
	case fs.ModeNamedPipe:
		return "a named pipe"
	case fs.ModeSocket:
		return "a socket"
	}
	return "neither a file nor a directory"
}
