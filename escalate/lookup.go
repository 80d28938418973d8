package escalate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Place is a directory or file of the host that the sandbox can write to.
type Place struct {
	Path string // absolute, without symlinks
	What string // "the workspace"
}

// Lookup finds programs, and tells what the sandbox can change.
type Lookup struct {
	Path  []string // the person's PATH
	Reach []Place
	Self  string // the running lazaret
	Home  string // what programs take ~ for; "": nothing
}

// NewLookup takes the person's PATH, and keeps of it what the sandbox can
// neither write to nor lead elsewhere: a relative entry would be looked up in
// the workspace.
func NewLookup(path []string, reach []Place, self string) Lookup {
	l := Lookup{Reach: reach, Self: self}
	for _, dir := range path {
		if !filepath.IsAbs(dir) {
			continue
		}
		if _, err := l.real(filepath.Clean(dir)); err == nil {
			l.Path = append(l.Path, filepath.Clean(dir))
		}
	}
	return l
}

// ErrNoProgram says that a program is nowhere on the PATH.
var ErrNoProgram = errors.New("there is no such program on the host's PATH")

// find gives the file that a program's name means, as it was found and without
// symlinks.
func (l Lookup) find(name string) (found, real string, err error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			return "", "", errors.New("the program is named by a relative path, which leads into what the sandbox can write to")
		}
		name = filepath.Clean(name)
		real, err = l.executable(name)
		return name, real, err
	}
	if name == "" || name == "." || name == ".." {
		return "", "", ErrNoProgram
	}
	for _, dir := range l.Path {
		found = filepath.Join(dir, name)
		// One that cannot be run is passed over, as execvp does, and so is one
		// that the sandbox could replace.
		if real, err = l.executable(found); err == nil {
			return found, real, nil
		}
	}
	return "", "", ErrNoProgram
}

func (l Lookup) executable(path string) (string, error) {
	real, err := l.real(path)
	if err != nil {
		return "", err
	}
	fi, err := os.Lstat(real)
	switch {
	case err != nil:
		return "", err
	case !fi.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a file", path)
	case !utf8.ValidString(real):
		// What runs it is told its name as JSON, and so is another lazaret that asks.
		return "", fmt.Errorf("the path of %q is not UTF-8", real)
	case unix.Access(real, unix.X_OK) != nil:
		return "", fmt.Errorf("%s is not executable", path)
	}
	return real, nil
}

// place tells in which place of the sandbox's reach a path lies.
func (l Lookup) place(path string) (Place, bool) {
	for _, p := range l.Reach {
		if path == p.Path || strings.HasPrefix(path, strings.TrimSuffix(p.Path, "/")+"/") {
			return p, true
		}
	}
	return Place{}, false
}

// real follows every symlink of an absolute path that exists, and refuses a
// path of which any part lies in the sandbox's reach: whoever can write there
// decides where it leads.
func (l Lookup) real(path string) (string, error) {
	w := newWay("/", path)
	for len(w.rest) > 0 {
		s, err := w.next()
		if p, in := l.place(s.entry); in {
			return "", fmt.Errorf("%s lies in %s, which the sandbox can write to", s.entry, p.What)
		}
		if err != nil {
			return "", err
		}
	}
	return w.at, nil
}
