package launch

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lazaret/gitshadow"
	"lazaret/internal/step"
	"lazaret/launch/podman"
	"lazaret/lock"
	"lazaret/lock/config"
	"lazaret/overlay"
)

// Options are what the person asked for besides the profile.
type Options struct {
	ID        string // run id
	Started   time.Time
	Command   []string // after --; empty: the profile's, else the image's
	Ephemeral bool     // persistent directories start empty and are not kept
	SkipSetup bool     // the profile's set-up does not run, whether it is due or not
	Helpers   lock.Helpers
	// EndWithoutNetwork ends the sandbox when its router dies; else it goes on
	// without a network.
	EndWithoutNetwork bool
	Detached          bool // the terminal is one that nobody need be at
}

// Plan is what this host will do, in the order it will do it.
type Plan struct {
	Record  Record
	Host    Host
	Engine  podman.Engine
	Steps   []step.Step
	Notices []string // what the person should know before it starts

	// Foreign are programs of another lazaret that the plan would run: Run
	// refuses to until the person has said so of each; see Agree.
	Foreign []lock.Foreign
	agreed  map[string]bool // by digest

	control  control
	services []service
	uplink   *uplink     // nil: no network at all
	asks     *escalation // nil: it may ask for nothing
	environ  []string    // podman's, in the helper
	branch   string      // that the sandbox's git starts on, or ""
	held     held
	writable []string    // see Writable
	gits     *gitBrokers // nil: nothing is brought home
}

// Resolve turns a lock and the facts of a host into a Plan. It touches nothing.
// Whatever the lock asks for that this build cannot give is refused, or said
// in a notice where the sandbox merely gets less than the lock allows.
func Resolve(f *lock.File, profile string, h Host, o Options) (*Plan, error) {
	p, err := f.Profile(profile)
	if err != nil {
		return nil, err
	}
	if err := f.CheckDerived(profile); err != nil {
		return nil, fmt.Errorf("checking the lock: %w", err)
	}
	pinned, ok := p.Image.Platforms[lock.PlatformKey(h.Platform)]
	if !ok {
		return nil, refuse(fmt.Sprintf("run \"lazaret lock --platform %s\" (once for each platform you need)", h.Platform),
			"profiles.%s.image: the lock was made for %s, this machine is %s", profile, platforms(p.Image), h.Platform)
	}
	foreign, err := f.ForeignHelpers(profile, h.Platform, o.Helpers)
	if err != nil {
		return nil, err
	}
	plan := &Plan{
		Foreign: foreign,
		Record:  Record{ID: o.ID, Profile: profile, Workspace: h.Workspace, DataRoot: h.DataRoot, Started: o.Started, Detached: o.Detached},
		Host:    h,
		// Cgroups of its own are what runsc cannot have without root.
		Engine: podman.Engine{Podman: h.Podman.Path, Runsc: h.Runsc.Path, RuntimeFlags: append([]string{"ignore-cgroups"}, p.Runtime[1:]...)},
	}
	r := resolver{Plan: plan, file: f, profile: p, pinned: pinned, opts: o, dir: filepath.Join(h.RuntimeDir, "lazaret", o.ID)}
	plan.control.record = plan.Record
	plan.writable = writable(p, h)
	if socket := filepath.Join(r.dir, controlSocket); len(socket) > socketPathMax {
		return nil, refuse("set XDG_RUNTIME_DIR to a shorter path", "the control socket's path has %d bytes, more than the %d a socket can have: %s",
			len(socket), socketPathMax, config.Show(socket))
	}
	r.environ = podman.InNamespace(append(slices.Clone(h.Environ), "CONTAINERS_CONF="+filepath.Join(r.dir, confFile)), h.UID, h.GID)
	for _, s := range h.replaceable() {
		r.notice(s)
	}
	if s := slowEnd(h.RuntimeDir, h.Podman.Version); s != "" {
		r.notice(s)
	}
	if err := r.unsupported(); err != nil {
		return nil, err
	}
	if err := r.setupOf(); err != nil {
		return nil, err
	}
	// What podman makes in /run depends on what it finds in the image.
	r.fixed = append(r.fixed, podman.Mount{Kind: "tmpfs", Target: "/run", Size: "16m"},
		// Podman's own is a file system of the host's: its size is bounded, but not
		// how many empty files it takes, in kernel memory that no process answers for.
		podman.Mount{Kind: "tmpfs", Target: "/dev/shm", Size: "64m", Mode: "1777"})
	r.base()
	r.describe()
	if err := r.network(); err != nil {
		return nil, err
	}
	r.image(pinned)
	if err := r.escalate(); err != nil {
		return nil, err
	}
	if err := r.git(); err != nil {
		return nil, err
	}
	if err := r.volumesApart(); err != nil {
		return nil, err
	}
	mounts, err := r.mounts()
	if err != nil {
		return nil, err
	}
	return plan, r.sandbox(pinned, mounts)
}

// resolver collects a Plan's steps.
type resolver struct {
	*Plan
	file    *lock.File
	profile lock.Profile
	opts    Options
	dir     string // run directory
	binds   int
	shadow  *gitshadow.Shadow // nil where the sandbox has no git
	fixed   []podman.Mount    // what every sandbox has, whatever its profile says
	place   overlay.Place     // where persistent directories lie; zero: there are none
	pinned  lock.PlatformImage
	setup   setup
}

// unsupported refuses what would be lost, and says what will be missing.
func (r *resolver) unsupported() error {
	if r.profile.Mounts["/run"].Kind == lock.KindOverlay {
		return refuse("name a directory in it, such as /run/NAME", "profiles.%s.persistent_dirs: /run is memory in every sandbox", r.Record.Profile)
	}
	if r.Host.Fleeting && len(r.persistent()) > 0 && !r.opts.Ephemeral {
		r.notice("storage.data_root is in memory (tmpfs): what is kept there is gone when the machine is switched off")
	}
	if l := r.profile.Limits; l != nil {
		if note := unheld(*l); note != "" {
			r.notice(note)
		}
	}
	return nil
}

func (r *resolver) notice(s string) { r.Notices = append(r.Notices, s) }

func (r *resolver) step(s step.Step) { r.Steps = append(r.Steps, s) }

// base is what every run begins with.
func (r *resolver) base() {
	r.step(step.Step{Name: "conf", Op: WriteFile{filepath.Join(r.dir, confFile), podman.Conf}})
	r.provide("/etc/hostname", hostname(r.Record.Profile)+"\n")
	r.provide("/run/.containerenv", "") // how programs know a container of podman's
	r.step(step.Step{Name: "control", Op: Listen{filepath.Join(r.dir, controlSocket), &r.control}})
	needs := []string{"conf"}
	if r.state() {
		needs = append(needs, "state")
	}
	r.step(step.Step{Name: "helper", Needs: needs, Op: &StartHelper{Conf: filepath.Join(r.dir, confFile)}})
}

// provide gives the sandbox a file that podman would otherwise make, and let the
// agent write to: it lies in a small memory file system of the host's, which
// the agent could fill.
func (r *resolver) provide(target, text string) {
	path := filepath.Join(r.dir, "file-"+strings.TrimLeft(filepath.Base(target), "."))
	r.step(step.Step{Name: "file " + target, Op: WriteFile{path, text}})
	r.fixed = append(r.fixed, podman.Mount{Kind: "bind", Source: path, Target: target, ReadOnly: true})
}

func (r *resolver) image(pinned lock.PlatformImage) {
	layout := layoutName(r.Record.ID)
	r.step(step.Step{
		Name: "image", Where: step.Podman, Needs: []string{"helper"},
		Op: Image{
			Engine: r.Engine, Environ: r.environ, PullEnv: r.Host.PullEnv, Profile: r.Record.Profile, Ref: r.profile.Image.Ref,
			Platform: r.Host.Platform, Pinned: pinned, Dir: r.Host.Workspace, Layout: filepath.Join(r.Host.CacheDir, layout),
			Memory: r.memory(), Known: r.Host.Known[pinned.Config],
		},
		Undo: []step.Undo{{Kind: undoTree, Base: baseCache, Name: layout}},
	})
}

func (r *resolver) memory() Memory {
	return Memory{Dir: r.Host.CacheDir, Environ: r.Host.Environ, Run: r.dir}
}

func (r *resolver) sandbox(pinned lock.PlatformImage, mounts []podman.Mount) error {
	command := r.opts.Command
	if len(command) == 0 {
		command = r.profile.Command
	}
	if len(command) == 0 {
		command = append(slices.Clone(pinned.Entrypoint), pinned.Command...)
	}
	if len(command) == 0 {
		return refuse(fmt.Sprintf("set command in [profiles.%s] or run \"lazaret launch %s -- COMMAND\"", r.Record.Profile, r.Record.Profile),
			"profiles.%s: neither the profile nor its image has a command", r.Record.Profile)
	}
	run := podman.Run{
		Name:         r.Record.Container(),
		Image:        pinned.Config,
		Hostname:     hostname(r.Record.Profile),
		Workdir:      "/workspace",
		Command:      command,
		TTY:          r.Host.Terminal,
		Env:          map[string]string{},
		Mounts:       parentsFirst(append(r.fixed, mounts...)),
		Capabilities: r.profile.Capabilities,
		IDFile:       filepath.Join(r.dir, "sandbox.id"),
		PIDFile:      filepath.Join(r.dir, "sandbox.pid"),
		InitFile:     filepath.Join(r.dir, "sandbox.init"),
	}
	tasks := r.tasks()
	if r.uplink != nil {
		run.Network = "ns:" + late(netnsValue)
	}
	if r.gated() {
		run.Hooks = r.hooks()
		tasks += tasksRouter // it may come after they are counted
	}
	r.terminalEnv(run.Env, pinned)
	if r.asks != nil {
		run.Env["PATH"] = r.sandboxPath(pinned.Env)
	}
	if r.shadow != nil {
		if len(r.shadow.Places) > 0 {
			r.branch = strings.TrimPrefix(r.shadow.Places[0].Branch, "refs/heads/")
		}
		maps.Copy(run.Env, r.shadow.Environment(r.Host.Git.Person))
	}
	secrets := map[string]string{}
	for k, v := range r.profile.Env {
		name, ok := strings.CutPrefix(v, "env:")
		if k == "PATH" && r.asks != nil {
			continue // with the client's directory, above
		}
		if !ok {
			run.Env[k] = v
			continue
		}
		name = strings.TrimSuffix(name, "?")
		if _, set := r.Host.Secrets[name]; set {
			secrets[k] = name
			delete(run.Env, k) // podman would take that, and not the file's
		}
	}
	if len(secrets) > 0 {
		run.EnvFile = secretsFile
	}
	r.lookAt(run.Mounts)
	r.setUp(run, secrets)
	needs := []string{}
	for _, s := range r.Steps {
		if !r.gated() || !slices.Contains(beside, s.Name) {
			needs = append(needs, s.Name)
		}
	}
	r.step(step.Step{
		Name: "sandbox", Where: step.Podman, Needs: needs,
		Op:   Sandbox{Engine: r.Engine, Environ: r.environ, Run: run, Secrets: secrets, Tasks: tasks, Store: r.Host.Known[pinned.Config].containers()},
		Undo: []step.Undo{{Kind: undoContainer, Name: run.Name}},
	})
	return nil
}

// parentsFirst sorts mounts so that none covers another.
func parentsFirst(mounts []podman.Mount) []podman.Mount {
	slices.SortStableFunc(mounts, func(a, b podman.Mount) int { return strings.Compare(a.Target, b.Target) })
	return mounts
}

// hostname makes a valid host name of a profile's name.
func hostname(profile string) string {
	return strings.Trim(strings.ReplaceAll(profile, "_", "-"), "-") + "-sandbox"
}

func platforms(i lock.Image) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(i.Platforms)) {
		out = append(out, strings.ReplaceAll(k, "-", "/"))
	}
	return strings.Join(out, ", ")
}

// Text is the plan for --dry-run: one block a step.
func (p *Plan) Text() string {
	var b strings.Builder
	for _, n := range p.Notices {
		fmt.Fprintf(&b, "# %s\n", n)
	}
	for _, x := range p.Foreign {
		fmt.Fprintf(&b, "# the %s is another lazaret's, %s: it is run once you agree to that\n", x.Kind, x.Digest)
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s (%s)\n", s.Name, s.Where)
		for _, l := range s.Op.Show() {
			fmt.Fprintf(&b, "  %s\n", l)
		}
		for _, u := range s.Undo {
			fmt.Fprintf(&b, "  undo: %s\n", u)
		}
	}
	return b.String()
}
