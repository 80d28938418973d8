package gitshadow

import (
	"cmp"
	"context"
	"path/filepath"
	"strconv"
)

// Person is what the person's own settings say that commits need.
type Person struct {
	Name, Email string
	Signs       bool // commits or tags are signed
}

// Settings asks the person's git what holds in a repository: g is for that
// repository, with the person's home. Hooks in the working tree that cannot be
// kept from the agent are refused.
func (r *Repo) Settings(ctx context.Context, g Git) (Person, error) {
	found, err := g.settings(ctx, hooksKey, "user.name", "user.email", "commit.gpgSign", "tag.gpgSign")
	if err != nil {
		return Person{}, refuse("\"git config --list\" says what is wrong"+withoutGit, "asking git where hooks are: "+err.Error())
	}
	if err := cmp.Or(r.hooksIn(r.Workspace, found[hooksKey], g.Home), r.nestedHooks(ctx, g)); err != nil {
		return Person{}, err
	}
	return Person{
		Name: found["user.name"], Email: found["user.email"],
		Signs: found.on("commit.gpgSign") || found.on("tag.gpgSign"),
	}, nil
}

// Environment is git's environment in the sandbox: settings that hold whatever
// configuration is read, from the image, the agent or the host.
func (s Shadow) Environment(who Person) map[string]string {
	out := map[string]string{}
	n := 0
	set := func(key, value string) {
		out["GIT_CONFIG_KEY_"+strconv.Itoa(n)], out["GIT_CONFIG_VALUE_"+strconv.Itoa(n)] = key, value
		n++
	}
	// Housekeeping is the host's, which knows what is still needed.
	set("gc.auto", "0")
	set("maintenance.auto", "false")
	// These write to objects/info and to the configuration, which fails: a gc
	// that is asked for does without, and so does a checkout of what a remote has.
	set("gc.writeCommitGraph", "false")
	set("repack.updateServerInfo", "false")
	set("branch.autoSetupMerge", "false")
	// The index was made on the host, where the same files have other numbers
	// and owners. Without these, the first look at a working tree reads all of it.
	set("core.checkStat", "minimal")
	set("core.trustctime", "false")
	// Nobody in the sandbox can watch for the host's changes, or has its keys.
	set("core.fsmonitor", "false")
	set("commit.gpgSign", "false")
	set("tag.gpgSign", "false")
	set("tag.forceSignAnnotated", "false")
	if who.Name != "" {
		set("user.name", who.Name)
	}
	if who.Email != "" {
		set("user.email", who.Email)
	}
	for _, p := range s.Places {
		set("safe.directory", filepath.Join("/workspace", p.Repo.Path))
	}
	if len(s.Places) > 0 {
		set("includeIf.gitdir:"+s.Places[0].Git+".path", filepath.Join(s.Places[0].Git, sparseConfig))
	}
	out["GIT_CONFIG_COUNT"] = strconv.Itoa(n)
	return out
}
