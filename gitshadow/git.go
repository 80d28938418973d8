package gitshadow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
)

// Git runs git on the host, for one repository. It is the only way lazaret does:
// what an agent wrote, and what the repository's or the person's own
// configuration says, must not become a program, a write or a connection. It
// runs only commands that it knows (commands), with everything pinned that a
// configuration could turn into more (pins), in an environment of its own.
//
// Filters cannot be pinned, since their names are anybody's to choose: so no
// command is known that compares with, or writes, files of a working tree.
type Git struct {
	Program string // absolute; see FindGit
	// GitDir is the repository. Without one, git looks for it from Dir upwards
	// and obeys the person's safe.directory, for which Home is needed.
	GitDir   string
	WorkTree string // "" where the command needs none
	// Dir is the working directory, "" is /: in the working tree, a file that
	// has a revision's name would stand in its way.
	Dir string

	Index      string   // in place of the repository's own index
	Objects    string   // in place of the repository's own objects
	Alternates []string // object directories to read from besides

	// Home and ConfigHome lead to the person's own settings, such as their
	// name. Without Home, no settings but the repository's are read.
	Home, ConfigHome string
	Env              []string      // more of the environment: an author's name and date
	Time             time.Duration // bounds one call; 0 is a minute
	Memory           uint64        // bounds what git may allocate, in bytes; 0 is no bound
}

// commands are what may be run, each with the options that are added to it.
// None looks at the files of a working tree, follows a submodule, opens a
// connection or runs a program, given the pins.
var commands = map[string][]string{
	"cat-file":         nil,
	"check-ref-format": nil,
	"commit-tree":      {"--no-gpg-sign"},
	"config":           nil, // reading only; see check
	"count-objects":    nil,
	"diff-index":       {"--cached", "--ignore-submodules=all", "--no-ext-diff", "--no-textconv"},
	"diff-tree":        {"--ignore-submodules=all", "--no-ext-diff", "--no-textconv"},
	"for-each-ref":     nil,
	"fsck":             nil,
	"hash-object":      {"--no-filters"},
	"index-pack":       {"--fsck-objects"},
	"ls-files":         nil,
	"ls-tree":          nil,
	"merge-base":       nil,
	"merge-tree":       nil,
	"mktree":           nil,
	"pack-objects":     {"--no-use-bitmap-index"},
	"read-tree":        nil, // without -u; see check
	"rev-list":         nil,
	"rev-parse":        nil,
	"symbolic-ref":     nil,
	"unpack-objects":   {"-q"},
	"update-index":     nil, // from --index-info, bits only; see check
	"update-ref":       nil,
	"var":              nil,
	"version":          nil,
	"worktree":         nil, // list only; see check
}

// only are the options that some commands may have, because others write what
// a configuration obeys, or files.
var only = map[string][]string{
	"config":       {"--get", "--get-all", "--get-regexp", "--list", "--local", "--worktree", "--type", "-z", "--null", "--name-only", "--includes", "--no-includes", "--show-origin", "--bool", "--file"},
	"read-tree":    {"--empty", "-m", "--prefix", "--index-output", "--aggressive", "-i", "--reset"},
	"update-index": {"--index-info", "-z", "--stdin", "--skip-worktree", "--no-skip-worktree", "--force-write-index", "--no-split-index", "--no-untracked-cache", "--no-fsmonitor"},
	"worktree":     {"--porcelain", "-z"},
}

// pins are settings that hold whatever a configuration says. An empty value
// takes away what was set before.
var pins = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=", "core.pager=cat", "core.editor=false", "core.askPass=", "core.sshCommand=false", "core.gitProxy=",
	"core.alternateRefsCommand=true", "core.attributesFile=/dev/null", "core.untrackedCache=keep",
	"credential.helper=", "gpg.program=false", "gpg.ssh.program=false", "gpg.x509.program=false",
	"commit.gpgSign=false", "tag.gpgSign=false", "tag.forceSignAnnotated=false", "log.showSignature=false", "push.gpgSign=false",
	"protocol.allow=never", "protocol.file.allow=never", "protocol.git.allow=never", "protocol.ssh.allow=never",
	"protocol.http.allow=never", "protocol.https.allow=never", "protocol.ext.allow=never",
	"fetch.prune=false", "fetch.pruneTags=false", "fetch.writeCommitGraph=false", "fetch.recurseSubmodules=false", "transfer.bundleURI=false",
	"submodule.recurse=false", "diff.ignoreSubmodules=all", "diff.submodule=short", "status.submoduleSummary=false",
	"core.filesRefLockTimeout=1000", "core.packedRefsTimeout=1000", "gc.auto=0", "maintenance.auto=false", "color.ui=false", "advice.objectNameWarning=false",
}

// environment is fixed: whatever GIT_ variable the person has set stays out.
var environment = []string{
	"PATH=/usr/bin:/bin", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0",
	"GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false", "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_SSH_COMMAND=false", "GIT_PAGER=cat",
	"GIT_ATTR_NOSYSTEM=1", "GIT_ALLOW_PROTOCOL=none", "GIT_PROTOCOL_FROM_USER=0", "GIT_LITERAL_PATHSPECS=1", "GIT_ADVICE=0",
}

// Output runs git and returns what it printed.
func (g Git) Output(ctx context.Context, args ...string) ([]byte, error) {
	return g.run(ctx, nil, nil, args)
}

// Line runs git and returns what it printed as one line without its end.
func (g Git) Line(ctx context.Context, args ...string) (string, error) {
	out, err := g.run(ctx, nil, nil, args)
	return strings.TrimSuffix(string(out), "\n"), err
}

// Feed runs git with input on its stdin.
func (g Git) Feed(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	f, err := memoryFile(input)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return g.run(ctx, f, nil, args)
}

// Pipe runs git between two files. in may be nil.
func (g Git) Pipe(ctx context.Context, in, out *os.File, args ...string) error {
	_, err := g.run(ctx, in, out, args)
	return err
}

func (g Git) run(ctx context.Context, in, out *os.File, args []string) ([]byte, error) {
	c, err := g.command(args)
	if err != nil {
		return nil, err
	}
	c.Stdin, c.Stdout = in, out
	limit := g.Time
	if limit == 0 {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b, err := proc.Output(ctx, c)
	var pe *proc.Error
	if errors.As(err, &pe) {
		// Not with all the pins: this is for a person to read.
		err = &proc.Error{Argv: append([]string{"git"}, args...), Err: pe.Err, Stderr: pe.Stderr}
	}
	return b, err
}

// command is what a call runs, made of nothing but g and args.
func (g Git) command(args []string) (proc.Cmd, error) {
	if err := check(args); err != nil {
		return proc.Cmd{}, err
	}
	if !filepath.IsAbs(g.Program) {
		return proc.Cmd{}, fmt.Errorf("git's program %q is not an absolute path", g.Program)
	}
	argv := []string{g.Program, "--no-pager", "--no-replace-objects"}
	for _, p := range pins {
		argv = append(argv, "-c", p)
	}
	argv = append(append(append(argv, args[0]), commands[args[0]]...), args[1:]...)
	env := slices.Clone(environment)
	set := func(name, value string) {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	set("GIT_DIR", g.GitDir)
	set("GIT_WORK_TREE", g.WorkTree)
	set("GIT_INDEX_FILE", g.Index)
	set("GIT_OBJECT_DIRECTORY", g.Objects)
	var quoted []string
	for _, a := range g.Alternates {
		quoted = append(quoted, quoteAlternate(a))
	}
	set("GIT_ALTERNATE_OBJECT_DIRECTORIES", strings.Join(quoted, ":"))
	if g.Home == "" {
		set("HOME", "/nonexistent")
		set("GIT_CONFIG_GLOBAL", "/dev/null")
		set("GIT_CONFIG_NOSYSTEM", "1")
	} else {
		set("HOME", g.Home)
		set("XDG_CONFIG_HOME", g.ConfigHome)
	}
	// Without a terminal: a setting or a link can name it, and git would read
	// what the person types. A git that is killed leaves its lock files, and the
	// next one refuses the ref until a person removes them.
	return proc.Cmd{Argv: argv, Env: append(env, g.Env...), Dir: g.Dir, Memory: g.Memory, Session: true, Tidies: true}, nil
}

// check refuses what this type does not know.
func check(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("git is given no command")
	}
	if _, ok := commands[args[0]]; !ok {
		return fmt.Errorf("git %s is not a command that lazaret runs", args[0])
	}
	if args[0] == "worktree" && (len(args) < 2 || args[1] != "list") {
		return fmt.Errorf("git worktree is only ever asked for its list")
	}
	allowed, bounded := only[args[0]]
	for _, a := range args[1:] {
		if a == "--" {
			break
		}
		name, _, _ := strings.Cut(a, "=")
		switch {
		case args[0] == "update-index" && !strings.HasPrefix(a, "-"):
			return errors.New("git update-index of files is not what lazaret runs")
		case bounded && strings.HasPrefix(a, "-") && !slices.Contains(allowed, name):
			return fmt.Errorf("git %s %s is not what lazaret runs", args[0], name)
		case name == "--ext-diff", name == "--textconv", name == "--recurse-submodules", name == "--filters", name == "--output", name == "--no-filters" && args[0] != "hash-object":
			return fmt.Errorf("git %s %s is not what lazaret runs", args[0], name)
		}
	}
	if args[0] == "config" && !slices.ContainsFunc(args[1:], func(a string) bool {
		return a == "--list" || strings.HasPrefix(a, "--get")
	}) {
		return fmt.Errorf("git config is only ever read")
	}
	return nil
}

// FindGit finds git in PATH, never relative to the current directory and never
// inside one of the directories that an agent can write to.
func FindGit(path string, outside ...string) (string, error) {
	if file := proc.Find("git", path, outside...); file != "" {
		return file, nil
	}
	return "", noGit{}
}

type noGit struct{}

func (noGit) Error() string { return "git is not installed" }

// Hint is the next command.
func (noGit) Hint() string { return `install it: "apt-get install git" or your distribution's package` }

// quoteAlternate writes a path as GIT_ALTERNATE_OBJECT_DIRECTORIES takes it:
// in C quotes where it would be taken apart otherwise.
func quoteAlternate(path string) string {
	if !strings.ContainsAny(path, ":\"\n\\") {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(path) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// memoryFile is a file without a name that holds b.
func memoryFile(b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("input", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making git's input: %w", err)
	}
	f := os.NewFile(uintptr(fd), "input")
	if _, err := f.Write(b); err != nil {
		f.Close()
		return nil, fmt.Errorf("making git's input: %w", err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
