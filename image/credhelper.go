package image

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"lazaret/internal/proc"
)

// helpers runs credential helpers, each question once: one may ask a person to
// unlock something.
type helpers struct {
	environ []string
	path    string
	outside []string // where agents write, so that no helper comes from there

	mu    sync.Mutex
	known map[[2]string]answer
}

type answer struct {
	cfg authn.AuthConfig
	err error
}

// get asks docker-credential-NAME for a registry's credentials; the zero value
// means it has none.
func (h *helpers) get(ctx context.Context, name, host string) (authn.AuthConfig, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := [2]string{name, host}
	if a, ok := h.known[key]; ok {
		return a.cfg, a.err
	}
	cfg, err := h.ask(ctx, name, host)
	if ctx.Err() == nil {
		if h.known == nil {
			h.known = make(map[[2]string]answer)
		}
		h.known[key] = answer{cfg, err}
	}
	return cfg, err
}

func (h *helpers) ask(ctx context.Context, name, host string) (authn.AuthConfig, error) {
	program := "docker-credential-" + name
	file, err := h.lookup(program)
	if err != nil {
		return authn.AuthConfig{}, err
	}
	// Docker files its own registry under a URL, everybody else under the host.
	servers := []string{host}
	if host == "docker.io" {
		servers = []string{"https://index.docker.io/v1/", host}
	}
	for _, server := range servers {
		cfg, err := h.run(ctx, file, program, server)
		if err != nil || cfg != (authn.AuthConfig{}) {
			return cfg, err
		}
	}
	return authn.AuthConfig{}, nil
}

// lookup finds program in the user's PATH, outside of what agents write: with a
// virtual environment active, PATH begins in the workspace.
func (h *helpers) lookup(program string) (string, error) {
	if strings.ContainsRune(program, '/') {
		return "", fmt.Errorf("credential helper %q is not a name", program)
	}
	if file := proc.Find(program, h.path, h.outside...); file != "" {
		return file, nil
	}
	return "", fmt.Errorf("credential helper %s is not installed", program)
}

func (h *helpers) run(ctx context.Context, file, program, server string) (authn.AuthConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, file, "get")
	cmd.Args[0] = program // what some are links to looks at its name
	// Helpers run further programs, and are scripts of an interpreter in PATH.
	cmd.Env = append(slices.Clone(h.environ), "PATH="+proc.Outside(h.path, h.outside...))
	cmd.Dir = "/"
	cmd.Stdin = strings.NewReader(server)
	cmd.WaitDelay = time.Second
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Run(); err != nil {
		// The protocol says "none" by this sentence on stdout and a failure.
		said := strings.TrimSpace(stdout.String())
		if strings.Contains(said, "credentials not found") {
			return authn.AuthConfig{}, nil
		}
		return authn.AuthConfig{}, fmt.Errorf("%s: %w: %s", program, err, printable(said, 200))
	}
	var found struct{ Username, Secret string }
	if err := json.Unmarshal(stdout.Bytes(), &found); err != nil {
		return authn.AuthConfig{}, fmt.Errorf("%s: its answer is not understood", program)
	}
	if found.Username == "<token>" {
		return authn.AuthConfig{IdentityToken: found.Secret}, nil
	}
	return authn.AuthConfig{Username: found.Username, Password: found.Secret}, nil
}
