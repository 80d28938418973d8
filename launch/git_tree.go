package launch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lazaret/gitshadow"
	"lazaret/internal/step"
)

// ownState is where lazaret keeps what is its own, below data_root: no profile
// has that name.
const ownState = ".lazaret"

// trees is where working trees of profiles' own lie, below data_root.
const trees = ownState + "/trees"

// treeDir is the working tree of the profile's own; "" where the sandbox has the
// workspace itself. Each workspace has another.
func (r *resolver) treeDir() string {
	k := r.Host.Git.Repo.Kind
	if r.profile.Git.Mode == "none" || r.profile.Git.Tree != "worktree" || k == gitshadow.None || k == gitshadow.Above {
		return ""
	}
	sum := sha256.Sum256([]byte(r.Host.Workspace))
	return filepath.Join(r.Host.DataRoot, trees, fmt.Sprintf("%s-%x", r.Record.Profile, sum[:6]))
}

// leftOut tells whether a mount has no place in a tree of the profile's own:
// lazaret reads its files in the workspace, where no sandbox is then.
func (r *resolver) leftOut(target string) bool {
	if r.treeDir() == "" {
		return false
	}
	if target == "/workspace/lazaret.lock" || target == "/workspace/lazaret.toml" {
		return true
	}
	o := r.file.Inputs.Override
	return o != nil && !filepath.IsAbs(o.Path) && !strings.HasPrefix(o.Path, "~/") && target != "/workspace" && within(filepath.Join("/workspace", o.Path), target)
}

// gitVoice says what a person should know of where the sandbox starts, and
// holds the lock of its tree until lazaret ends.
type gitVoice struct {
	live live
	lock *os.File
}

func (r *resolver) voice() *gitVoice {
	v := &gitVoice{}
	r.services = append(r.services, v)
	return v
}

func (v *gitVoice) begin(l live) { v.live = l }

func (v *gitVoice) finish(context.Context) {}

func (v *gitVoice) say(note string) {
	if v != nil && v.live.emit != nil {
		v.live.emit(step.Event{Step: "git.store", Kind: step.Notice, Attr: map[string]string{"notice": note}})
	}
}

// claim has the tree for this run alone.
func (v *gitVoice) claim(dataRoot, tree string) error {
	if err := closedDir(dataRoot, trees); err != nil {
		return err
	}
	f, err := os.OpenFile(tree+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return refuse("\"lazaret ps\" shows it; another profile, or tree = \"shared\", can run beside it",
				"a sandbox of this profile has the working tree %s already", shown(tree))
		}
		return err
	}
	v.lock = f
	return nil
}
