package gitshadow

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Policy says what may become of a ref that a sandbox made or moved.
type Policy struct {
	Profile string
	Run     string
	Given   map[string]string // the refs that the sandbox was given
	Host    HostRefs
}

// HostRefs are the refs of the host's repository as they are now.
type HostRefs struct {
	Refs       map[string]string // full name to id
	CheckedOut []string          // full names of the branches that some working tree has checked out
	Heads      []string          // the commits that working trees have checked out
	Remotes    []string          // names of remotes
}

// Verdict is what becomes of one ref.
type Verdict int

const (
	// Nothing: the host has it, or it is not new.
	Nothing Verdict = iota
	// Arrive: it becomes the host's ref of the same name.
	Arrive
	// Hold: it is kept under a name that means nothing else, for a yes.
	Hold
	// Never: it is only told about.
	Never
)

// Decision is a verdict with what it needs.
type Decision struct {
	Verdict Verdict
	Ref     string // the full name in the sandbox: untrusted text
	ID      string
	// Target is the host's ref that it becomes: at once, or with a yes.
	Target string
	Kept   string // Hold: the host's ref that keeps it until then
	Why    string // Hold, Never: in plain words
}

// stash is where git keeps changes that are put aside, and detached stands for
// a commit that is checked out and is no branch's. Both are looked at when the
// sandbox has ended: until then they come and go.
const stash, detached = "refs/stash", "HEAD"

// private are refs that mean something to the repository they are in only.
var private = []string{"refs/remotes/", "refs/bisect/", "refs/worktree/", "refs/rewritten/", "refs/prefetch/", "refs/original/"}

// own tells whether a branch is the profile's to move freely.
func (p Policy) own(ref string) bool {
	return ref == OwnBranch(p.Profile) || strings.HasPrefix(ref, "refs/heads/lazaret/"+p.Profile+"/")
}

// heldPrefix is where refs of a profile are kept for a yes.
func heldPrefix(profile string) string { return "refs/lazaret/held/" + profile + "/" }

// safeName are names that mean nothing to a shell or to a program's options.
var safeName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*$`)

var (
	hexName  = regexp.MustCompile(`^[0-9a-fA-F]{4,64}$`)
	describe = regexp.MustCompile(`-g[0-9a-fA-F]{4,}$`)
	headName = regexp.MustCompile(`^@$|^([A-Z]+_)?HEAD$|^(AUTO_MERGE|BISECT_[A-Z]+|NOTES_MERGE_[A-Z]+)$`)
)

// Decide says what becomes of a ref. ff tells whether the host's value of a
// ref leads to the new one.
func (p Policy) Decide(ref, id string) Decision {
	d := Decision{Ref: ref, ID: id}
	now := p.Host.Refs[ref]
	switch {
	case now == id, p.Given[ref] == id && (now == "" || !p.own(ref)):
		return d
	case ref == detached:
		return p.hold(d, "", "detached", "a commit on no branch")
	case slices.ContainsFunc(private, func(s string) bool { return strings.HasPrefix(ref, s) }):
		return d
	case ref == stash:
		// An entry of a stack is no ref that could become one of the host's.
		return p.hold(d, "", "stash", "changes the sandbox had stashed")
	case strings.HasPrefix(ref, "refs/heads/"), strings.HasPrefix(ref, "refs/tags/"):
	default:
		d.Verdict, d.Why = Never, "only branches and tags leave a sandbox"
		return d
	}
	short, tag := strings.CutPrefix(ref, "refs/tags/")
	short = strings.TrimPrefix(short, "refs/heads/")
	if why := p.means(short, tag); why != "" {
		// Under a name of the profile's own it harms nobody.
		name := short
		if !safeName.MatchString(name) {
			name = hashName(ref)
		}
		return p.hold(d, "refs/heads/lazaret/"+p.Profile+"/"+name, "odd/"+name, why)
	}
	kept := "heads/" + short
	if tag {
		kept = "tags/" + short
	}
	switch {
	case slices.Contains(p.Host.CheckedOut, ref):
		return p.hold(d, ref, kept, whyCheckedOut)
	case !tag && p.own(ref):
		// Compared with what is there when it is moved; see Broker.
		d.Verdict, d.Target = Arrive, ref
		return d
	case now != "":
		return p.hold(d, ref, kept, "it would move a ref of yours")
	case tag:
		return p.hold(d, ref, kept, "a new tag")
	}
	return p.hold(d, ref, kept, "a new branch")
}

// hashName is a name for a ref that cannot have its own.
func hashName(ref string) string { return fmt.Sprintf("ref-%x", sha256.Sum256([]byte(ref)))[:16] }

func (p Policy) hold(d Decision, target, kept, why string) Decision {
	d.Verdict, d.Target, d.Why = Hold, target, why
	d.Kept = heldPrefix(p.Profile) + p.Run + "/" + kept
	return d
}

// means says what else a short name would mean on the host, or to a program
// that it is given to.
func (p Policy) means(short string, tag bool) string {
	first, _, _ := strings.Cut(short, "/")
	last := short[strings.LastIndexByte(short, '/')+1:]
	switch {
	case !safeName.MatchString(short):
		return "its name could be more than a name to a program"
	case hexName.MatchString(short), describe.MatchString(short):
		return "its name reads as a commit's"
	case headName.MatchString(first), headName.MatchString(last):
		return "its name means something else to git"
	case slices.Contains([]string{"refs", "heads", "tags", "remotes"}, first):
		return "its name reads as another ref's"
	case slices.Contains(p.Host.Remotes, first):
		return "its name reads as a branch of the remote " + show(first)
	}
	// What git tries for a short name, but for the namespace that it is of.
	for _, other := range []string{"refs/" + short, "refs/tags/" + short, "refs/heads/" + short, "refs/remotes/" + short, "refs/remotes/" + short + "/HEAD"} {
		if tag && strings.HasPrefix(other, "refs/tags/") || !tag && strings.HasPrefix(other, "refs/heads/") {
			continue
		}
		if p.Host.Refs[other] != "" {
			return "its name is that of another ref here"
		}
	}
	return ""
}

// inTheWay tells which of the host's refs makes name impossible: a/b cannot be
// where a is, nor a where a/b is.
func inTheWay(refs map[string]string, name string) string {
	for i, c := range []byte(name) {
		if c == '/' && refs[name[:i]] != "" {
			return name[:i]
		}
	}
	for r := range refs {
		if strings.HasPrefix(r, name+"/") {
			return r
		}
	}
	return ""
}
