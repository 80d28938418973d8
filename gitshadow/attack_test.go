package gitshadow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// naive is what a broker would be that trusts the store: git fetches from it.
const naive = `cp -a "$S" "$S.bare"; cd "$S.bare"; [ -e HEAD ] || echo 'ref: refs/heads/x' >HEAD; [ -e config ] || cp "$HOST/.git/config" .; cp "$HOST/../live/packed-refs" .
echo "$HOST/.git/objects" >>objects/info/alternates; cd "$HOST"; ulimit -v 3000000; timeout 5 git fetch -u "$S.bare" '+refs/heads/*:refs/heads/*' 2>&1 || echo "fetch: $?"
`

// attacks are what an agent does to its store. harm succeeds where it did harm:
// after a naive broker it must, so that the attack is one, and after ours not.
var attacks = []struct {
	name, setup, inside string
	harm                string // "" where a naive broker's harm is that it never ends, or cannot be shown
	arrives             bool   // the agent's own branch comes all the same
	said                string // of what is told
}{
	{
		name:   "alternates of its own, and a link to the refs of another repository",
		setup:  `git init -q ../secret; cd ../secret; echo KEY >key; git add key; git commit -qm secret; cd ../host`,
		inside: `mkdir -p $S/objects/info $S/refs/heads/lazaret; echo "$HOST/../secret/.git/objects" >$S/objects/info/alternates; ln -s $HOST/../secret/.git/refs/heads $S/refs/heads/lazaret/loot`,
		harm:   `git cat-file -e $(git -C ../secret rev-parse HEAD)`, said: `never "refs/heads/lazaret/loot": it is no ref`, arrives: true,
	},
	{
		name:   "a link to a ref of another repository, whose objects are linked too",
		setup:  `git init -q ../secret; cd ../secret; echo KEY >key; git add key; git commit -qm secret; cd ../host`,
		inside: `mkdir -p $S/refs/heads/lazaret/claude; for d in $HOST/../secret/.git/objects/??; do ln -s $d $S/objects/ 2>/dev/null || cp -rs $d/* $S/objects/${d##*/}/; done; git -C $HOST/../secret --git-dir=.git --work-tree=. rev-parse HEAD >$S/refs/heads/lazaret/claude/loot`,
		harm:   `git cat-file -e $(git -C ../secret rev-parse HEAD)`, said: `failed`, arrives: true,
	},
	{
		name:   "a link to a device that never ends",
		inside: `mkdir -p $S/refs/heads/lazaret; ln -s /dev/zero $S/refs/heads/lazaret/z`,
		harm:   "", said: `"refs/heads/lazaret/z": it is no ref`, arrives: true,
	},
	{
		name:   "a link to the terminal",
		inside: `mkdir -p $S/refs/heads/lazaret; ln -s /dev/tty $S/refs/heads/lazaret/z`,
		said:   `"refs/heads/lazaret/z": it is no ref`, arrives: true,
	},
	{
		name:   "a pipe that nobody writes to",
		inside: `mkdir -p $S/refs/heads/lazaret $S/objects/aa; mkfifo $S/refs/heads/lazaret/z $S/objects/pack/pack-aaaa.pack; mkfifo $S/objects/aa/$(printf %038d 0); echo aa$(printf %038d 0) >$S/refs/heads/lazaret/agent-claude`,
		said:   `"refs/heads/lazaret/z": it is no ref`,
	},
	{
		name:   "a ref file without end",
		inside: `mkdir -p $S/refs/heads/lazaret; truncate -s 1T $S/refs/heads/lazaret/z`,
		said:   `"refs/heads/lazaret/z": it is no ref`, arrives: true,
	},
	{
		name:   "refs that lead to files of the host",
		inside: `mkdir -p $S/refs/heads/lazaret/claude; ln -s $HOST/.git/refs/heads/main $S/refs/heads/lazaret/claude/x; mkdir -p $S/logs/refs/heads/lazaret; ln -sf $HOST/a $S/logs/refs/heads/lazaret/agent-claude; ln -s $HOST $S/refs/heads/lazaret/claude/dir`,
		said:   `"refs/heads/lazaret/claude/x": it is no ref`, arrives: true,
	},
	{
		name:   "an object with another one's name",
		inside: `id=$(printf 'evil' | git hash-object --stdin); mkdir -p $S/objects/$(echo $id | cut -c1-2); o=$(echo other | git hash-object -w --stdin); cp $S/objects/$(echo $o | sed 's,..,&/,') $S/objects/$(echo $id | sed 's,..,&/,'); t=$(printf "100644 blob $id\tf\n" | git mktree); c=$(git commit-tree -m x $t); git update-ref refs/heads/lazaret/claude/lie $c`,
		said:   `its content is that of`, arrives: true,
	},
	{
		name: "objects that say they have more bytes than there are",
		inside: `id=$(printf '%040d' 7); mkdir -p $S/objects/00; printf 'blob 99999999999999\0x' | python3 -c 'import sys,zlib;sys.stdout.buffer.write(zlib.compress(sys.stdin.buffer.read()))' >$S/objects/00/$(printf '%038d' 7)
mkdir -p $S/refs/heads/lazaret/claude; echo $id >$S/refs/heads/lazaret/claude/big`,
		said: `more than lazaret takes`, arrives: true,
	},
	{
		name: "a tree that grows without end when it is unpacked",
		inside: `python3 - <<'P'
import zlib,os,hashlib
c=zlib.compressobj()
p=os.environ['S']+'/objects/11'; os.makedirs(p,exist_ok=True)
with open(p+'/'+'1'*38,'wb') as f:
    f.write(c.compress(b'tree 100\0'))
    for _ in range(300): f.write(c.compress(bytes(1<<20)))
    f.write(c.flush())
P
mkdir -p $S/refs/heads/lazaret/claude; echo ` + strings.Repeat("1", 40) + ` >$S/refs/heads/lazaret/claude/bomb`,
		said: `another size`, arrives: true,
	},
	{
		name:   "a tree that would write hooks when checked out",
		inside: `b=$(echo evil | git hash-object -w --stdin); t=$(printf "100755 blob $b\tpost-checkout\n" | git mktree); h=$(printf "040000 tree $t\thooks\n" | git mktree); x=$(python3 -c "import sys,binascii;sys.stdout.buffer.write(b'40000 .git\0'+binascii.unhexlify('$h'))" | git hash-object -t tree -w --literally --stdin); c=$(git commit-tree -m x $x); git update-ref refs/heads/lazaret/claude/hooks $c`,
		harm:   `git cat-file -e refs/heads/lazaret/claude/hooks`, said: `hasDotgit`, arrives: true,
	},
	{
		name:   "submodules whose address is an option",
		inside: `printf '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=touch${IFS}/tmp/x\n' >.gitmodules; git add .gitmodules; git commit -qm m; git update-ref refs/heads/lazaret/claude/mod HEAD; git reset -q --hard HEAD~1`,
		harm:   `git cat-file -e refs/heads/lazaret/claude/mod`, said: `gitmodulesUrl`, arrives: true,
	},
	{
		name: "a submodule that names a program to fetch with",
		setup: `git init -q ../sub; git -C ../sub commit -q --allow-empty -m s; git -c protocol.file.allow=always submodule -q add ../sub vendor/lib; git commit -qm sub
rm -rf vendor/lib .git/modules; git init -q vendor/lib; git -C vendor/lib commit -q --allow-empty -m s; git -C vendor/lib config remote.origin.url ../../../sub; git -C vendor/lib config remote.origin.uploadpack 'touch $HOST/../RAN; false'; git config submodule.vendor/lib.active true; git config submodule.vendor/lib.url ../sub`,
		inside: `git update-index --add --cacheinfo 160000,` + strings.Repeat("5", 40) + `,vendor/lib; git commit -qm link`,
		harm:   `test -e ../RAN`, arrives: true,
	},
	{
		name:   "fetch.prune and its like in the host's settings",
		setup:  `git branch keep; git branch lazaret/keepme; git config fetch.prune true; git config fetch.pruneTags true; git config fetch.fsck.hasDotgit ignore`,
		inside: `git update-ref -d refs/heads/lazaret/keepme`,
		harm:   `! git rev-parse -q --verify refs/heads/lazaret/keepme`, arrives: true,
	},
	{
		name:   "the branch of another profile",
		setup:  `git branch lazaret/agent-codex`,
		inside: `git update-ref refs/heads/lazaret/agent-codex HEAD`,
		harm:   `test "$(git rev-parse refs/heads/lazaret/agent-codex)" != "$(git rev-parse main)"`, said: `hold "refs/heads/lazaret/agent-codex": it would move a ref of yours`, arrives: true,
	},
	{
		name:   "branches of the person's: moved, rewound, deleted",
		setup:  `git branch release; git branch old; git commit -q --allow-empty -m more; git branch rewound; git branch gone`,
		inside: `git update-ref refs/heads/release HEAD; git update-ref refs/heads/rewound HEAD~1; git update-ref -d refs/heads/gone; git update-ref refs/heads/new HEAD; git tag v9`,
		harm:   `test "$(git rev-parse release)" != "$(git rev-parse old)"`, said: `hold "refs/tags/v9": a new tag`, arrives: true,
	},
	{
		name:   "the branch that is checked out",
		inside: `git update-ref refs/heads/main HEAD`,
		said:   `hold "refs/heads/main": the branch is checked out here`, arrives: true,
	},
	{
		name:   "names that mean something else",
		setup:  `git config remote.origin.url https://example.org/x; git update-ref refs/remotes/up/main HEAD; git tag v1; git config remote.a/b.url /x`,
		inside: `for n in origin/main up/main v1 deadbeef HEAD x/FETCH_HEAD refs/heads/y heads/main a/b/c; do git update-ref "refs/heads/$n" HEAD; done; git update-ref refs/tags/main HEAD; git update-ref refs/heads/-f HEAD; git update-ref 'refs/heads/;x$(y)' HEAD; git update-ref "refs/heads/$(printf 'caf\303\251')" HEAD; git update-ref 'refs/heads/lazaret/claude/$(touch${IFS}x)' HEAD`,
		harm:   `git rev-parse -q --verify refs/heads/origin/main`, said: `hold "refs/heads/;x$(y)": its name could be more than a name to a program`, arrives: true,
	},
	{
		name:   "replaced objects and notes",
		inside: `git replace -f HEAD~1 HEAD; git notes add -m n HEAD`,
		said:   `never "refs/replace/`, arrives: true,
	},
	{
		name:   "a packed-refs that is a link",
		inside: `ln -sf $HOST/a $GIT_DIR/packed-refs; echo x >>a`,
		said:   `never "packed-refs"`, arrives: true,
	},
	{
		name:   "a packed-refs of other lines",
		inside: `printf 'xyz\n%s refs/heads/../../x\n' $(git rev-parse HEAD) >>$GIT_DIR/packed-refs`,
		said:   `never "packed-refs"`, arrives: true,
	},
	{
		name:    "locks left behind inside",
		inside:  `touch $S/refs/heads/lazaret/agent-claude.lock $S/refs/heads/main.lock $S/objects/maintenance.lock`,
		arrives: true,
	},
	{
		name:   "a pack that is none, and an index that lies",
		inside: `echo PACKnone >$S/objects/pack/pack-` + strings.Repeat("a", 40) + `.pack; echo lie >$S/objects/pack/pack-` + strings.Repeat("a", 40) + `.idx; echo lie >$S/objects/info/commit-graph; echo lie >$S/objects/pack/multi-pack-index; mkdir -p $S/refs/heads/lazaret/claude; echo ` + strings.Repeat("b", 40) + ` >$S/refs/heads/lazaret/claude/p`,
		said:   `the pack pack-`, arrives: true,
	},
	{
		name:   "a branch that leads to no commit",
		inside: `git hash-object -w a; mkdir -p $S/refs/heads/lazaret/claude; git hash-object a >$S/refs/heads/lazaret/claude/blob`,
		said:   `is no commit`, arrives: true,
	},
	{
		name:   "more branches than anybody needs",
		inside: `id=$(git rev-parse HEAD); mkdir -p $S/refs/heads/lazaret/claude; for i in $(seq 600); do echo $id >$S/refs/heads/lazaret/claude/b$i; done`,
		said:   `more than 500 branches and tags`, arrives: true,
	},
}

func TestAttacksOnTheStore(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			w := newBench(t, "", a.setup)
			id := w.inside("echo work >>b; git commit -qam work; git rev-parse HEAD")
			w.inside(a.inside)
			if want := w.inside("git rev-parse HEAD 2>/dev/null || :"); len(want) == 40 && a.arrives {
				id = want
			}
			if a.harm != "" {
				// On a copy of everything, a broker that trusts.
				victim := filepath.Join(w.dir, "victim")
				sh(t, w.dir, "mkdir victim; cp -a host data live victim/; [ ! -d secret ] || cp -a secret victim/; [ ! -d sub ] || cp -a sub victim/")
				env := "export S='" + victim + strings.TrimPrefix(w.store.Dir, w.dir) + "' HOST='" + victim + "/host'\n"
				said, _ := trySh(victim, env+naive)
				if out, err := trySh(victim+"/host", a.harm); err != nil {
					t.Fatalf("the attack does no harm where nothing is in its way: %s\n%s", out, said)
				}
			}
			start := time.Now()
			err := w.pass()
			if took := time.Since(start); took > 2*time.Minute { // a busy machine takes half a minute
				t.Errorf("it took %v", took)
			}
			if a.harm != "" {
				if _, err := trySh(w.host, a.harm); err == nil {
					t.Errorf("harm was done: %s", a.harm)
				}
			}
			if said := w.said(); !strings.Contains(said, a.said) {
				t.Errorf("want %q in what is told:\n%s%v", a.said, said, err)
			}
			if got := w.hostRef(agentRef); a.arrives && got != id {
				t.Errorf("the agent's work has not come: %q, want %q; %v", got, id, err)
			}
		})
	}
}

// TestHostsLocks: what stands in the way on the host is waited for.
func TestHostsLocks(t *testing.T) {
	w := newBench(t, "", "")
	id := w.inside("echo x >>a; git commit -qam x; git rev-parse HEAD")
	lock := filepath.Join(w.host, ".git/refs/heads/lazaret/agent-claude.lock")
	if err := os.MkdirAll(filepath.Dir(lock), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.pass(); err == nil || !strings.Contains(w.said(), "failed") {
		t.Errorf("%v %s", err, w.said())
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := w.pass(); err != nil || w.hostRef(agentRef) != id {
		t.Errorf("%v %s", err, w.said())
	}
	if said := w.said(); strings.Contains(said, "failed") {
		t.Errorf("told although it came: %s", said)
	}
}

// TestInTheWay: names that cannot be beside each other.
func TestInTheWay(t *testing.T) {
	w := newBench(t, "", "git branch lazaret")
	id := w.inside("echo x >>a; git commit -qam x; git update-ref refs/heads/n HEAD; git rev-parse HEAD")
	if err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if got := w.hostRef("refs/lazaret/held/claude/" + testRun + "/heads/lazaret/agent-claude"); got != id {
		t.Errorf("kept %q: %s", got, w.said())
	}
	w.inside("git update-ref -d refs/heads/n; git update-ref refs/heads/n/m HEAD")
	if err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if out := w.onHost("git for-each-ref refs/lazaret/held"); strings.Count(out, id) != 3 {
		t.Errorf("kept: %s", out)
	}
}

// TestMovedOnTheHost: what the person did to the agent's branch is not undone.
func TestMovedOnTheHost(t *testing.T) {
	w := newBench(t, "", "")
	w.inside("echo x >>a; git commit -qam x")
	if err := w.pass(); err != nil {
		t.Fatal(err)
	}
	mine := w.onHost(`id=$(git commit-tree -p refs/heads/lazaret/agent-claude -m mine refs/heads/lazaret/agent-claude^{tree}); git update-ref refs/heads/lazaret/agent-claude $id; echo $id`)
	w.inside("echo y >>a; git commit -qam y")
	if err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if got := w.hostRef(agentRef); got != mine || !strings.Contains(w.said(), "it was moved here meanwhile") {
		t.Errorf("%q, want %q: %s", got, mine, w.said())
	}
	// One that holds both is fine.
	id := w.inside("git merge -q -m both " + mine + " && git rev-parse HEAD")
	if err := w.pass(); err != nil || w.hostRef(agentRef) != id {
		t.Errorf("%q, want %q: %s", w.hostRef(agentRef), id, w.said())
	}
}

// TestLast: what has no name of its own is kept at the end.
func TestLast(t *testing.T) {
	w := newBench(t, "", "")
	w.inside("echo x >>a; git stash -q; git checkout -q --detach; echo y >>b; git commit -qam loose")
	if err := w.pass(); err != nil || len(w.b.Notes()) != 0 {
		t.Fatalf("%v %s", err, w.said())
	}
	if err := w.b.Last(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.sound()
	held := w.onHost("git for-each-ref --format='%(refname)' refs/lazaret")
	if want := "refs/lazaret/held/claude/" + testRun + "/detached\nrefs/lazaret/held/claude/" + testRun + "/stash"; held != want {
		t.Errorf("kept %q", held)
	}
	// Looking at old commits leaves nothing.
	w = newBench(t, "", "git commit -q --allow-empty -m second")
	w.inside("git checkout -q --detach main~1")
	if err := w.b.Last(t.Context()); err != nil || len(w.b.Notes()) != 0 {
		t.Errorf("%v %s", err, w.said())
	}
}

// TestPackedRefsAndNoBranch: what is no packed-refs, with a commit on no branch.
func TestPackedRefsAndNoBranch(t *testing.T) {
	w := newBench(t, "", "")
	w.inside("echo x >>a; git commit -qam x; git checkout -q --detach; echo y >>a; git commit -qam y; echo nonsense >$GIT_DIR/packed-refs")
	if err := w.pass(); err != nil || !strings.Contains(w.said(), `never "packed-refs"`) {
		t.Errorf("%v %s", err, w.said())
	}
	if err := w.b.Last(t.Context()); err != nil || !strings.Contains(w.said(), `hold "HEAD"`) {
		t.Errorf("%v %s", err, w.said())
	}
}

// TestDeletedInside: what is deleted inside is not on the host, neither a
// branch nor what it had beyond what the sandbox was given.
func TestDeletedInside(t *testing.T) {
	w := newBench(t, "", "git branch keep")
	id := w.inside("echo x >>a; git commit -qam x; git rev-parse HEAD")
	if err := w.pass(); err != nil || w.hostRef(agentRef) != id {
		t.Fatalf("%v %s", err, w.said())
	}
	w.inside("rm -rf $S/refs/* $S/objects/* $S/logs/*")
	if err := w.pass(); err != nil || w.hostRef(agentRef) != id {
		t.Errorf("%v: %q, want %q", err, w.hostRef(agentRef), id)
	}
	if err := w.b.Last(t.Context()); err != nil || w.hostRef(agentRef) != id {
		t.Errorf("%v: %q, want %q", err, w.hostRef(agentRef), id)
	}
	w.inside("rm -f $GIT_DIR/packed-refs")
	if err := w.broker().Last(t.Context()); err != nil || w.hostRef(agentRef) != id || w.hostRef("keep") == "" {
		t.Errorf("%v: %q, want %q", err, w.hostRef(agentRef), id)
	}
	w.sound()
}
