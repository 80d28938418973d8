package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// noNeg refuses "! cmd" for a command that can only succeed.
func noNeg(ts *testscript.TestScript, neg bool, name string) {
	if neg {
		ts.Fatalf("%s cannot be negated", name)
	}
}

// cmdGitrepo makes DIR a git repository with one commit of all that is in it;
// author and dates are fixed, so that object ids are too.
//
//	gitrepo DIR
func cmdGitrepo(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "gitrepo")
	if len(args) != 1 {
		ts.Fatalf("usage: gitrepo DIR")
	}
	for _, k := range []string{"AUTHOR", "COMMITTER"} {
		ts.Setenv("GIT_"+k+"_NAME", "A U Thor")
		ts.Setenv("GIT_"+k+"_EMAIL", "author@example.com")
		ts.Setenv("GIT_"+k+"_DATE", "2020-01-01T00:00:00Z")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	for _, git := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "-A"},
		{"commit", "-q", "--allow-empty", "-m", "first"},
	} {
		// Other scripts may change what the account has configured.
		ts.Check(ts.Exec("git", append([]string{"-C", dir, "-c", "commit.gpgsign=false"}, git...)...))
	}
}

// cmdMkfifo makes a FIFO that nobody writes to.
//
//	mkfifo PATH
func cmdMkfifo(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "mkfifo")
	if len(args) != 1 {
		ts.Fatalf("usage: mkfifo PATH")
	}
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o600))
}

// cmdRandomenv sets what must not matter to random values: $TZ, $LANG,
// $SOURCE_DATE_EPOCH, $HOME, the XDG directories, and $UMASK and $NEWDIR for
// the script to use.
//
//	randomenv
func cmdRandomenv(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "randomenv")
	pick := func(of ...string) string { return of[rand.IntN(len(of))] }
	n := strconv.FormatUint(rand.Uint64(), 36)
	home := ts.MkAbs("home-" + n)
	for _, kv := range [][2]string{
		{"TZ", pick("UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia", "nonsense")},
		{"LANG", pick("C", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8", "")},
		{"SOURCE_DATE_EPOCH", strconv.Itoa(rand.IntN(2_000_000_000))},
		{"HOME", home},
		{"XDG_CONFIG_HOME", pick("", home+"/c", "relative")},
		{"XDG_STATE_HOME", pick("", home+"/s", "relative")},
		{"TMPDIR", pick("", home)},
		{"UMASK", pick("000", "022", "027", "077", "0777")},
		{"NEWDIR", pick("a", "b c", "dä", "e:f,g") + n},
	} {
		ts.Setenv(kv[0], kv[1])
		ts.Logf("%s=%s", kv[0], kv[1])
	}
	ts.Check(os.MkdirAll(home, 0o700))
}

// cmdSetmtime makes a file old, so that mtime can tell whether it was written.
//
//	setmtime PATH
func cmdSetmtime(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "setmtime")
	if len(args) != 1 {
		ts.Fatalf("usage: setmtime PATH")
	}
	ts.Check(os.Chtimes(ts.MkAbs(args[0]), long(), long()))
}

// cmdMtime succeeds when nobody wrote a file since setmtime.
//
//	[!] mtime PATH
func cmdMtime(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: mtime PATH")
	}
	fi, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if old := fi.ModTime().Equal(long()); old == neg {
		ts.Fatalf("%s: %v", args[0], fmt.Sprintf("untouched is %v", old))
	}
}

// long is a time long ago.
func long() time.Time { return time.Unix(1_000_000_000, 0) }
