package gitshadow

// Kind is what lies at .git in a working tree.
type Kind int

// Kinds of repository.
const (
	None      Kind = iota // no repository
	Dir                   // .git is the git directory
	Worktree              // .git is a file: a linked working tree
	Submodule             // .git is a file: a submodule's working tree
	Above                 // the directory lies in the working tree of a repository further up
)

func (k Kind) String() string {
	return [...]string{"no repository", "repository", "linked working tree", "submodule", "subdirectory of a repository"}[k]
}

// Repo is what a probe found at one working tree: plain data. Paths are
// absolute and without symlinks unless they say otherwise.
type Repo struct {
	Workspace string // the working tree's directory; of Above: the directory that was looked at
	Path      string // of a nested one: Workspace below the outermost; else ""
	Prefix    string // of Above: Workspace below the repository's working tree
	Kind      Kind
	GitFile   bool   // of a nested one: .git is a file
	GitDir    string // what git calls $GIT_DIR
	CommonDir string // where objects, refs and config are; GitDir but for linked working trees
	Name      string // of a submodule: its name, where its git directory is

	ObjectFormat string // sha1 or sha256
	RefFormat    string // files or reftable

	Head     string // the full name of the branch that is checked out; "" where Detached
	HeadID   string // the commit that is checked out; "" where Unborn
	Unborn   bool   // Head has no commit yet
	Detached bool   // a commit is checked out, not a branch

	Shallow        bool // history ends early, by CommonDir/shallow
	Sparse         bool // not every tracked file is in the working tree
	Partial        bool // objects are fetched from a remote when they are needed
	WorktreeConfig bool // GitDir/config.worktree is read too
	HeadLog        bool // there is CommonDir/logs/HEAD
	LFS            bool // tracked files may be pointers to what git-lfs keeps

	// Alternates are the object directories that objects are borrowed from, in
	// git's order, those that borrow themselves before what they borrow from.
	Alternates []string
	// HooksPath is where the working tree holds the hooks that git runs (core.hooksPath),
	// below the outermost Workspace and clean; "" where they are elsewhere.
	HooksPath string
	// Hookless are the directories on the way to HooksPath that are not there,
	// outermost first.
	Hookless []string
	// HookFiles are the files of the outermost Workspace that hooks are links to,
	// below it and clean. Where such a link leads and there is no file, is in
	// HookGone.
	HookFiles, HookGone []string
	// Nested are the repositories below Workspace, parents first: submodules
	// that are checked out, and others.
	Nested []Repo
	// Unseen says that the search for nested repositories ended early.
	Unseen bool

	User, Email string // whose commits these are; "" where git does not know
}

// Zero is the object id that stands for none.
func (r Repo) Zero() string {
	const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
	return zeros[:hexLen(r.ObjectFormat)]
}

// hexLen is how many digits an object id has.
func hexLen(format string) int {
	if format == "sha256" {
		return 64
	}
	return 40
}

// RefusedError is a repository that cannot be shown to a sandbox safely.
type RefusedError struct {
	What string // the thing, and what is wrong with it
	Do   string // the way out
}

func (e *RefusedError) Error() string { return e.What }

// Hint is the way out.
func (e *RefusedError) Hint() string { return e.Do }
