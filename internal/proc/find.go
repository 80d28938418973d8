package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Find finds a program in a PATH, never relative to the current directory and
// never inside one of the directories outside of which it has to lie: those that
// an agent can write to. It returns the program's own file, which is no link, or
// "" where there is none.
func Find(name, path string, outside ...string) string {
	if strings.ContainsRune(name, '/') {
		return ""
	}
	outside = resolved(outside)
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil || beneath(file, outside) {
			continue
		}
		if fi, err := os.Stat(file); err == nil && fi.Mode().IsRegular() && unix.Access(file, unix.X_OK) == nil {
			return file
		}
	}
	return ""
}

// Outside returns what is left of a PATH without such directories, for a program
// that looks for others itself. What is not there is left out too: whoever makes
// it later may be the agent.
func Outside(path string, outside ...string) string {
	outside = resolved(outside)
	var left []string
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil && !beneath(real, outside) {
			left = append(left, real)
		}
	}
	return strings.Join(left, string(filepath.ListSeparator))
}

// resolved gives directories the names that the files in them are found by.
func resolved(dirs []string) (out []string) {
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		out = append(out, dir)
	}
	return out
}

func beneath(file string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
	})
}
