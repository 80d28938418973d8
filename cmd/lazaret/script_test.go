package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets this test binary be lazaret itself, which scripts run by name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lazaret": faultyMain, "lazaret-world": worldMain, "lazaret-probe": probeMain})
}

const scripts = "../../testdata/script"

// TestScript runs the scripts that need nothing but this machine's loopback
// interface: no root, no podman, no network.
func TestScript(t *testing.T) {
	testscript.Run(t, scriptParams(t, func(name string) bool { return !strings.HasPrefix(name, "e2e_") }))
}

// scriptParams is what all scripts run under. wanted chooses by file name.
func scriptParams(t *testing.T, wanted func(name string) bool) testscript.Params {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(scripts, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, f := range all {
		if wanted(filepath.Base(f)) {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		t.Fatalf("no script in %s is wanted", scripts)
	}
	cmds := map[string]func(*testscript.TestScript, bool, []string){
		"action":     cmdAction,
		"answer":     cmdAnswer,
		"job":        cmdJob,
		"gitrepo":    cmdGitrepo,
		"mkfifo":     cmdMkfifo,
		"otherbuild": cmdOtherbuild,
		"readvar":    cmdReadvar,
		"mksocket":   cmdMksocket,
		"unblob":     cmdUnblob,
		"randomenv":  cmdRandomenv,
		"setmtime":   cmdSetmtime,
		"mtime":      cmdMtime,
	}
	maps.Copy(cmds, registryCmds())
	return testscript.Params{
		Files:               files,
		Cmds:                cmds,
		Setup:               setupScript,
		Condition:           scriptCondition,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("LAZARET_UPDATE") == "1",
	}
}

// setupScript gives a script a home of its own and nothing of the person's who
// runs the tests.
func setupScript(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	env.Setenv("HOME", home)
	env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	repo, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	env.Setenv("REPO", repo)
	return os.MkdirAll(home, 0o700)
}

// scriptCondition knows the conditions beyond testscript's own. One that is
// unknown is an error: a misspelt one would skip its line for ever.
func scriptCondition(cond string) (bool, error) {
	switch cond {
	case "root":
		return os.Geteuid() == 0, nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}
