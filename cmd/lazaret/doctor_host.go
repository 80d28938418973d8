package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"lazaret/image"
	"lazaret/launch"
	"lazaret/lock"
	"lazaret/lock/config"
)

// examineHost says of everything that launching needs of this machine whether
// it is there, and starts a sandbox to see.
func examineHost(cmd *cobra.Command, d *deps, asJSON bool) error {
	env, err := d.launchEnv()
	if err != nil {
		return err
	}
	bar := d.newProgress(cmd.ErrOrStderr())
	bar.show("looking at this machine")
	list := launch.Examine(cmd.Context(), env, userName())
	if countFailing(list) == 0 {
		bar.show("starting a sandbox")
		list = append(list, d.trySandbox(cmd.Context(), env))
	}
	if countFailing(list) == 0 {
		bar.show("starting a sandbox with a network")
		list = append(list, d.tryNetwork(cmd.Context(), env))
	}
	if countFailing(list) == 0 {
		bar.show("starting a sandbox that must not begin")
		list = append(list, d.tryGate(cmd.Context(), env))
	}
	bar.clear()
	out := cmd.OutOrStdout()
	if asJSON {
		if err := json.NewEncoder(ascii{out}).Encode(list); err != nil {
			return err
		}
	} else if err := tellFindings(out, list); err != nil {
		return err
	}
	if n := countFailing(list); n > 0 {
		return hinted{fmt.Errorf("%s of launching not met on this machine", count(n, "requirement")), "do what stands below the table, then run it again"}
	}
	return nil
}

// userName is the person's, as the files of subordinate ids have it.
func userName() string {
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

func countFailing(list []launch.Finding) (n int) {
	for _, f := range list {
		if f.Verdict == launch.Failing {
			n++
		}
	}
	return n
}

func tellFindings(out io.Writer, list []launch.Finding) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tVERDICT\tWHAT IT IS\tFOUND")
	for _, f := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.ID, f.Verdict, f.What, config.Show(f.Found))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	first := true
	for _, f := range list {
		if f.Verdict == launch.Good || f.Fix == "" {
			continue
		}
		if first {
			fmt.Fprintln(out)
			first = false
		}
		fmt.Fprintf(out, "%s: %s\n", f.ID, config.Show(f.Fix))
	}
	return nil
}

// trySandbox starts a sandbox of lazaret's own image. Everything that a launch
// does, it does.
func (d *deps) trySandbox(ctx context.Context, env launch.Env) launch.Finding {
	f := launch.Finding{ID: "sandbox", What: "a sandbox under gVisor that really starts", Verdict: launch.Good}
	start := time.Now()
	if err := d.tryStart(ctx, env, ""); err != nil {
		f.Verdict, f.Found = launch.Failing, err.Error()
		f.Fix = hintOf(err)
		return f
	}
	f.Found = fmt.Sprintf("it starts, and is gone after %d ms", time.Since(start).Milliseconds())
	return f
}

func (d *deps) tryNetwork(ctx context.Context, env launch.Env) launch.Finding {
	f := launch.Finding{ID: "network", What: "its network, by a router of its own", Verdict: launch.Good}
	start := time.Now()
	if err := d.tryStart(ctx, env, doctorNetwork); err != nil {
		f.Verdict, f.Found = launch.Failing, err.Error()
		f.Fix = hintOf(err)
		return f
	}
	f.Found = fmt.Sprintf("the router runs, and is gone after %d ms", time.Since(start).Milliseconds())
	return f
}

// tryGate starts a sandbox whose gate stays shut: its command must not run, since
// it would before there is a policy of its network.
func (d *deps) tryGate(ctx context.Context, env launch.Env) launch.Finding {
	f := launch.Finding{ID: "gate", What: "a command that waits for its network", Verdict: launch.Good}
	gated := false
	got, err := d.try(ctx, env, doctorNetwork, func(p *launch.Plan) { gated = p.WithShutGate() })
	switch {
	case !gated && err == nil:
		f.Found = "the sandbox is made after its network"
	case got.ran:
		f.Verdict, f.Found = launch.Failing, "it ran without: podman or the runtime starts no hooks"
		f.Fix = "look for what is put before podman or runsc, and use them as they were released: a sandbox could send before lazaret has said what it may reach"
	case err != nil:
		f.Verdict, f.Found, f.Fix = launch.Failing, err.Error(), hintOf(err)
	default:
		f.Found = "it does not run while the gate is shut"
	}
	return f
}

func hintOf(err error) string {
	var h hinter
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// doctorConfig is the config of the sandbox that doctor starts.
const doctorConfig = `[storage]
data_root = %q
[network]
default_allow = []
default_deny = []
[escalation]
enabled = false
socket_dir = "{runtime_dir}/lazaret"
[profiles.doctor]
image = "builtin:shell"
git = "none"
%s
`

// doctorNetwork gives that sandbox a network.
const doctorNetwork = `allow_hosts = ["lazaret-doctor.invalid"]`

// tried is what became of a sandbox that doctor started.
type tried struct {
	status int
	said   string // by podman or the runtime
	ran    bool   // its command
}

// tryStart starts a sandbox of lazaret's own that must run.
func (d *deps) tryStart(ctx context.Context, env launch.Env, network string) error {
	got, err := d.try(ctx, env, network, func(*launch.Plan) {})
	switch {
	case err != nil:
		return err
	case got.status != 0:
		return hinted{fmt.Errorf("it ended with status %d: %s", got.status, got.said), "the runtime said this; see also \"dmesg\""}
	case !got.ran:
		return hinted{errors.New("it ended as if its command had run, which it has not"), "see \"dmesg\""}
	}
	return nil
}

// try launches a command that leaves a file, in a directory of its own and from a
// lock that lies nowhere, once change has seen the plan.
func (d *deps) try(ctx context.Context, env launch.Env, network string, change func(*launch.Plan)) (got tried, err error) {
	dir, err := os.MkdirTemp("", "lazaret-doctor-")
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	env.Workspace = filepath.Join(dir, "workspace")
	env.Terminal = false
	if err := os.Mkdir(env.Workspace, 0o700); err != nil {
		return got, err
	}
	file, helpers, err := doctorLock(ctx, filepath.Join(dir, "data"), network)
	if err != nil {
		return got, err
	}
	host, err := launch.Probe(file, "doctor", env)
	if err != nil {
		return got, err
	}
	plan, err := launch.Resolve(file, "doctor", host, launch.Options{
		ID: launch.NewID(), Started: time.Now(), Command: []string{"touch", "/workspace/ran"}, Ephemeral: true, Helpers: helpers,
	})
	if err != nil {
		return got, err
	}
	change(plan)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return got, err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return got, err
	}
	defer r.Close()
	said := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(io.LimitReader(r, 4<<10))
		io.Copy(io.Discard, r)
		said <- string(b)
	}()
	ctx, stop := untilSignal(ctx)
	defer stop()
	got.status, err = plan.Run(ctx, launch.IO{Stdin: null, Stdout: null, Stderr: w, Observe: d.observe})
	w.Close()
	got.said = strings.TrimSpace(<-said)
	_, missing := os.Lstat(filepath.Join(env.Workspace, "ran"))
	got.ran = missing == nil
	return got, unlessSignalled(ctx, err)
}

func doctorLock(ctx context.Context, data, network string) (*lock.File, lock.Helpers, error) {
	c, err := config.Load([]config.Layer{{Kind: config.User, Name: "lazaret doctor", Data: fmt.Appendf(nil, doctorConfig, data, network)}})
	if err != nil {
		return nil, lock.Helpers{}, err
	}
	helpers, err := ownHelpers()
	if err != nil {
		return nil, lock.Helpers{}, err
	}
	f, _, err := lock.Build(ctx, lock.Request{
		Config:   c,
		Inputs:   lock.Inputs{Platforms: []string{runtime.GOOS + "/" + runtime.GOARCH}, User: &lock.Input{Path: lock.UserPath, SHA256: strings.Repeat("0", 64)}},
		Helpers:  helpers,
		Resolver: image.NewResolver(image.Options{}),
	})
	return f, helpers, err
}
