package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lazaret/lock/config"
)

// linksMax is how many symlinks one path may hold: the kernel's own limit
// (path_resolution(7)).
const linksMax = 40

// resolve follows the symlinks of a path, as much of it as exists, and refuses
// one that lies in writable: the directories that some sandbox can write to.
// Whoever wrote "cache -> ~/.ssh" there would be given that at the next launch.
// How the path came there does not matter, only where the link lies.
func resolve(path string, writable ...string) (string, error) {
	real, rest, links := "/", split(path), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, name)
		fi, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return filepath.Join(append([]string{next}, rest...)...), nil
		case err != nil:
			return "", err
		case fi.Mode().Type() != fs.ModeSymlink:
			real = next
			continue
		}
		if links++; links > linksMax {
			return "", refuse("remove the links that lead to one another", "%s holds too many symlinks", config.Show(path))
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		for _, dir := range writable {
			if dir != "" && within(real, dir) {
				return "", refuse("remove the symlink and look at what else the last session left",
					"%s is a symlink to %s, and a sandbox could have made it", config.Show(next), config.Show(to))
			}
		}
		if _, err := os.Stat(next); errors.Is(err, fs.ErrNotExist) {
			return "", refuse("remove it", "%s is a symlink to nowhere", config.Show(next))
		}
		if filepath.IsAbs(to) {
			real = "/"
		}
		rest = append(split(to), rest...)
	}
	return real, nil
}

// split takes a path apart; empty elements and dots mean nothing.
func split(path string) (names []string) {
	for _, n := range strings.Split(path, "/") {
		if n != "" && n != "." {
			names = append(names, n)
		}
	}
	return names
}

// within tells whether path is dir or lies below it. Both are clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// touch tells whether one of two paths contains the other.
func touch(a, b string) bool { return within(a, b) || within(b, a) }
