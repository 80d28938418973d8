package gitshadow

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Store is the directory that a sandbox writes the objects, refs and logs of
// one repository to, instead of to the host's. Everything in those three is the
// agent's, and hostile: it is read with nothing but beneath, never given to git,
// and never written to once the sandbox has it. What lies beside them is
// lazaret's own, and no sandbox sees it.
//
//	objects/  refs/  logs/    what the sandbox has
//	packed-refs               the refs that it was given
//	origin.json               Origin
type Store struct{ Dir string }

// StoresDir is where the stores lie, below a data root: no profile has that name.
const StoresDir = ".lazaret/git"

const (
	originFile = "origin.json"
	givenFile  = "packed-refs"
)

// Origin is what must be known to bring home what a sandbox wrote, also when
// the lazaret that made the store is gone.
type Origin struct {
	Run     string `json:"run"`
	Profile string `json:"profile"`
	Mode    string `json:"mode"`   // Quarantine or Writeback
	Branch  string `json:"branch"` // full name of the branch the sandbox was started on; "" where it was none
	Repo    Repo   `json:"repo"`   // without what is nested in it
}

var (
	runPattern     = regexp.MustCompile(`^[0-9a-f]{12}$`)
	profilePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{1,31}$`) // as in lock/config
)

// IsProfile tells whether a profile can have that name.
func IsProfile(name string) bool { return profilePattern.MatchString(name) }

func (o Origin) check() error {
	switch {
	case !runPattern.MatchString(o.Run):
		return fmt.Errorf("%q is no run", o.Run)
	case !profilePattern.MatchString(o.Profile):
		return fmt.Errorf("%q is no profile", o.Profile)
	case !filepath.IsAbs(o.Repo.CommonDir) || !filepath.IsAbs(o.Repo.GitDir):
		return errors.New("the repository is nowhere")
	case o.Mode != Quarantine && o.Mode != Writeback:
		return fmt.Errorf("%q is no mode of writing back", o.Mode)
	case !slices.Contains([]string{"sha1", "sha256"}, o.Repo.ObjectFormat):
		return fmt.Errorf("%q is no object format", o.Repo.ObjectFormat)
	}
	return nil
}

// Begin writes down whose store this is, before a sandbox has it. What is in a
// store without that is nobody's, and thrown away.
func (s Store) Begin(o Origin) error {
	o.Repo.Nested = nil
	if err := o.check(); err != nil {
		return fmt.Errorf("making the git store: %w", err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := writeWhole(filepath.Join(s.Dir, originFile), text); err != nil {
		return fmt.Errorf("making the git store: %w", err)
	}
	return nil
}

// Origin reads what Begin wrote.
func (s Store) Origin() (Origin, error) {
	var o Origin
	text, err := readFile(filepath.Join(s.Dir, originFile), smallFile)
	if err == nil {
		err = json.Unmarshal([]byte(text), &o)
	}
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return Origin{}, fmt.Errorf("reading the git store %s: %w", show(s.Dir), err)
	}
	return o, nil
}

// given reads the refs that the sandbox was given.
func (s Store) given(format string) (map[string]string, error) {
	text, err := readFile(filepath.Join(s.Dir, givenFile), packedMax)
	if err != nil {
		return nil, fmt.Errorf("reading the git store %s: %w", show(s.Dir), err)
	}
	refs, _, err := parsePacked([]byte(text), format, givenMost)
	return refs, err
}

// Stores lists the stores of a run that sandboxes had: the outermost
// repository's first.
func Stores(dataRoot, run string) ([]Store, error) {
	if !runPattern.MatchString(run) {
		return nil, fmt.Errorf("%q is no run", run)
	}
	dir := filepath.Join(dataRoot, StoresDir, run)
	nested, err := os.ReadDir(filepath.Join(dir, "nested"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	all := []Store{{dir}}
	for _, e := range nested {
		all = append(all, Store{filepath.Join(dir, "nested", e.Name())})
	}
	return slices.DeleteFunc(all, func(s Store) bool { return !exists(filepath.Join(s.Dir, originFile)) }), nil
}
