package launch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lazaret/escalate"
	"lazaret/escalate/wire"
	"lazaret/gitshadow"
	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/lock/config"
)

// Names below the run directory.
const (
	clientDir = "client" // the sandbox's program
	emptyDir  = "empty"  // where commands run that nobody is asked about
)

// renewTime is how often the sandbox gets another certificate: it is good for
// twice as long.
const renewTime = 12 * time.Hour

// escalation is what lets the sandbox ask for commands, while it runs.
type escalation struct {
	config escalate.Config
	still  Still
	certs  Certificates
	seen   []string // directories of the host that the sandbox sees
	mark   string   // the file that says that the sandbox stands still

	live   live
	daemon *escalate.Daemon
	failed error // why there is none
	stop   context.CancelFunc
	going  sync.WaitGroup

	mu   sync.Mutex
	uids []idRange // who may call, of the host's users
}

// escalate adds what lets the sandbox ask for commands of the host.
func (r *resolver) escalate() error {
	e := r.profile.Escalation
	if !e.Enabled {
		return nil
	}
	socket := filepath.Join(r.Host.SocketDir, r.Record.socketName())
	if len(socket) > socketPathMax {
		return refuse("set escalation.socket_dir to a shorter path", "the escalation socket's path has %d bytes, more than the %d a socket can have: %s",
			len(socket), socketPathMax, config.Show(socket))
	}
	timeout, err := time.ParseDuration(e.Timeout)
	if err != nil {
		return fmt.Errorf("profiles.%s.escalation.timeout: %w", r.Record.Profile, err)
	}
	lookup := escalate.Lookup{Path: r.Host.CommandPath, Reach: r.Host.reach(r.profile), Self: r.Host.Lazaret}
	s := &escalation{
		config: escalate.Config{
			Profile: r.Record.Profile, Run: r.Record.ID,
			Policy: whitelist(e),
			Lookup: lookup, Dir: r.Host.Workspace, Empty: filepath.Join(r.dir, emptyDir),
			Env:     append(slices.Clone(r.Host.CommandEnv), "PATH="+strings.Join(lookup.Path, ":")),
			Timeout: timeout, CommandTime: escalate.DefaultCommandTime, MaxOutput: e.MaxOutput,
			Runners: &escalate.Runners{Lazaret: r.Host.Lazaret},
			Now:     time.Now, Limits: escalate.DefaultLimits, Door: escalate.DefaultDoor,
		},
		still: Still{Engine: r.Engine, Environ: r.environ, Name: r.Record.Container(), Runsc: runscRoot(r.Host.RuntimeDir)},
		mark:  filepath.Join(r.dir, suspendedFile),
	}
	s.config.Peer = s.peer
	s.config.Log = s.log
	r.asks = s
	r.services = append(r.services, s)
	s.verbs(&r.control)
	r.step(step.Step{Name: "escalate.empty", Op: EmptyDir{s.config.Empty}})
	r.step(step.Step{Name: "escalate.nothing", Op: WriteFile{filepath.Join(r.dir, nothingFile), ""}})
	from := r.client()
	r.step(step.Step{
		Name: "escalate.client", Where: step.Podman, Needs: []string{"helper", clientStep},
		Op: EscalateClient{From: from, Dir: filepath.Join(r.dir, clientDir)},
	})
	r.step(step.Step{
		Name: "escalate.socket", Needs: []string{"escalate.empty"}, Op: ListenEscalate{socket, s},
		Undo: []step.Undo{{Kind: undoSocket, Base: baseSocket, Name: socket}},
	})
	// On the sandbox's PATH, last, so that it hides nothing of the image's.
	r.fixed = append(r.fixed, r.bindAfter(wire.BinDir, Source{Path: filepath.Join(r.dir, clientDir), Exists: true, Dir: true}, "ro", "escalate.client"))
	return nil
}

// escalateMount adds what one of the lock's mounts for escalation needs.
func (r *resolver) escalateMount(target, kind string) (podman.Mount, bool) {
	s := r.asks
	if s == nil {
		return podman.Mount{}, false
	}
	switch kind {
	case lock.KindEscalate:
		src := Source{Path: filepath.Join(r.dir, clientDir, wire.ClientName), Exists: true}
		return r.bindAfter(target, src, "ro", "escalate.client"), true
	case lock.KindEscalateSocket:
		src := Source{Path: filepath.Join(r.Host.SocketDir, r.Record.socketName()), Exists: true}
		return r.bindAfter(target, src, "ro", "escalate.socket"), true
	case lock.KindCerts:
		at := filepath.Join(r.dir, mountsDir, strconv.Itoa(r.binds))
		r.binds++
		s.certs = Certificates{Target: at, escalation: s}
		r.step(step.Step{Name: "escalate.certs", Where: step.Podman, Needs: []string{"helper", "escalate.socket"}, Op: s.certs})
		return podman.Mount{Kind: "bind", Source: at, Target: target, ReadOnly: true}, true
	}
	return podman.Mount{}, false
}

// whitelist is what the lock lets run without a question.
func whitelist(e lock.Escalation) escalate.Policy {
	return escalate.Policy{AutoApprove: e.AutoApprove, AutoApproveExact: e.AutoApproveExact, Banned: config.Banned}
}

// reach lists what the sandbox can write to, most telling first.
func (h Host) reach(p lock.Profile) []escalate.Place {
	out := []escalate.Place{{Path: h.Workspace, What: "the workspace"}}
	for _, target := range slices.Sorted(maps.Keys(p.Mounts)) {
		m := p.Mounts[target]
		if s, ok := h.Sources[target]; ok && m.Kind == lock.KindBind && strings.HasPrefix(m.Mode, "rw") && !within(s.Path, h.Workspace) {
			out = append(out, escalate.Place{Path: s.Path, What: "the volume " + target})
		}
	}
	if p.Git.Mode == gitshadow.Writeback {
		// They are the host's own, also where the repository's directory is not
		// in the workspace: a linked worktree's, a submodule's.
		for _, r := range append([]gitshadow.Repo{h.Git.Repo}, h.Git.Repo.Nested...) {
			if r.CommonDir == "" || within(r.CommonDir, h.Workspace) {
				continue
			}
			for _, name := range []string{"objects", "refs", "logs"} {
				out = append(out, escalate.Place{Path: filepath.Join(r.CommonDir, name), What: "what git keeps of the repository"})
			}
		}
	}
	return append(out, escalate.Place{Path: h.DataRoot, What: "the directory where sandboxes keep their state"})
}

// sandboxPath is the sandbox's PATH with the client's directory at its end.
func (r *resolver) sandboxPath(env []string) string {
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" // podman's own
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	if v := r.profile.Env["PATH"]; v != "" {
		path = v
	}
	return path + ":" + wire.BinDir
}

// begin makes the daemon, whose socket a step will open.
func (s *escalation) begin(l live) {
	s.live = l
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	if s.daemon, s.failed = escalate.New(s.config); s.failed != nil {
		return
	}
	s.going.Go(func() { s.renew(ctx) })
	s.going.Go(func() { s.watchSockets(ctx) })
	s.going.Go(func() {
		select {
		case <-s.daemon.Queue().Aborted():
			s.live.emit(step.Event{Kind: step.Notice, Attr: map[string]string{"notice": "escalation was shut by you: the sandbox can ask for nothing more"}})
		case <-ctx.Done():
		}
	})
	if l.answer != nil && l.session != nil {
		s.going.Go(func() { l.answer(ctx, Answering{Desk: s.daemon.Queue(), Session: l.session, Screen: l.screen, Box: s}) })
	}
}

// renew gives the sandbox new certificates before the old ones are over.
func (s *escalation) renew(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		h := s.live.helper()
		if time.Since(last) < renewTime || h == nil {
			continue
		}
		op := s.certs
		op.Renew = true
		in, err := op.values()
		if err == nil {
			_, err = h.do(ctx, op, in)
		}
		if err != nil && ctx.Err() == nil {
			s.live.emit(step.Event{Kind: step.Notice, Err: err.Error(), Attr: map[string]string{"notice": "the sandbox's certificate for asking was not renewed"}})
		}
		last = time.Now()
	}
}

// finish ends what was asked for, and everything that came of it.
func (s *escalation) finish(context.Context) {
	s.stop()
	if s.daemon != nil {
		s.daemon.Close()
	}
	s.going.Wait()
}

// Suspend makes the sandbox stand still, or else ends it.
func (s *escalation) Suspend(ctx context.Context) error {
	err := os.WriteFile(s.mark, nil, 0o600)
	if err == nil {
		err = s.perform(ctx, false)
	}
	if err != nil {
		s.live.end(fmt.Errorf("suspending the sandbox, which was ended instead: %w", err))
	}
	return err
}

// Resume lets the sandbox go on.
func (s *escalation) Resume(ctx context.Context) error {
	if err := s.perform(ctx, true); err != nil {
		return err
	}
	return os.Remove(s.mark)
}

// ErrEnded is the end of a sandbox that the person ended when it asked.
var ErrEnded = errors.New("you ended the sandbox")

// End ends the sandbox.
func (s *escalation) End(context.Context) error {
	s.live.end(ErrEnded)
	return nil
}

// stillTime bounds how long standing still may take.
const stillTime = 15 * time.Second

func (s *escalation) perform(ctx context.Context, resume bool) error {
	ctx, cancel := context.WithTimeout(ctx, stillTime)
	defer cancel()
	h := s.live.helper()
	if h == nil {
		return errHelperGone
	}
	op := s.still
	op.Resume = resume
	_, err := h.do(ctx, op, nil)
	return err
}

// idRange is a range of user ids of the host.
type idRange struct{ first, count uint32 }

// peer tells whether a user of the host may be the sandbox: its person, or one
// of the subordinate ids that podman's user namespace maps.
func (s *escalation) peer(uid uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uids == nil {
		s.uids = []idRange{{uint32(os.Getuid()), 1}}
		if h := s.live.helper(); h != nil {
			b, err := os.ReadFile("/proc/" + strconv.Itoa(h.pid) + "/uid_map")
			if err == nil {
				s.uids = append(s.uids, idRanges(string(b))...)
			}
		}
	}
	return slices.ContainsFunc(s.uids, func(r idRange) bool { return uid >= r.first && uid-r.first < r.count })
}

// idRanges reads the outer side of a uid_map.
func idRanges(text string) (out []idRange) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(f[1], 10, 32)
		count, err2 := strconv.ParseUint(f[2], 10, 32)
		if err1 == nil && err2 == nil {
			out = append(out, idRange{uint32(first), uint32(count)})
		}
	}
	return out
}
