package image

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
)

// Keychain finds registry credentials where podman and docker keep them. All
// files are consulted, podman's first, and for each the most specific key
// (quay.io/team/app before quay.io/team before quay.io). What cannot be read is
// no error: a public image needs no credentials; it is told when the registry
// refuses.
type Keychain struct {
	files   []string
	helpers helpers
}

// NewKeychain returns the keychain of a user with this environment ("K=V") and
// home directory. REGISTRY_AUTH_FILE, XDG_RUNTIME_DIR, XDG_CONFIG_HOME and
// DOCKER_CONFIG are honoured; credential helpers are looked for in its PATH, and
// never inside one of the directories that an agent can write to.
func NewKeychain(environ []string, home string, outside ...string) *Keychain {
	env := make(map[string]string)
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	k := &Keychain{helpers: helpers{environ: environ, path: env["PATH"], outside: outside}}
	add := func(dir string, elem ...string) {
		if dir != "" {
			k.files = append(k.files, filepath.Join(append([]string{dir}, elem...)...))
		}
	}
	under := func(dir, name string) string { // home may be unknown
		if env[dir] == "" && home != "" {
			return filepath.Join(home, name)
		}
		return env[dir]
	}
	if f := env["REGISTRY_AUTH_FILE"]; f != "" {
		add(f)
	} else {
		add(env["XDG_RUNTIME_DIR"], "containers", "auth.json")
		add(under("XDG_CONFIG_HOME", ".config"), "containers", "auth.json")
	}
	add(under("DOCKER_CONFIG", ".docker"), "config.json")
	return k
}

// login is what a keychain found; it is also why it may not have found all.
type login struct {
	authn.AuthConfig
	from     string
	problems []string
}

// Authorization implements authn.Authenticator.
func (l *login) Authorization() (*authn.AuthConfig, error) { return &l.AuthConfig, nil }

// Resolve implements authn.Keychain.
func (k *Keychain) Resolve(target authn.Resource) (authn.Authenticator, error) {
	return k.ResolveContext(context.Background(), target)
}

// ResolveContext implements authn.ContextKeychain. It fails only with ctx.
func (k *Keychain) ResolveContext(ctx context.Context, target authn.Resource) (authn.Authenticator, error) {
	found := &login{}
	for _, file := range k.files {
		auths, err := readAuthFile(file)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				found.problems = append(found.problems, fmt.Sprintf("reading %s: %v", file, err))
			}
			continue
		}
		cfg, from, err := k.find(ctx, auths, target)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			found.problems = append(found.problems, fmt.Sprintf("%s: %v", file, err))
		}
		if cfg != (authn.AuthConfig{}) {
			found.AuthConfig, found.from = cfg, file+from
			break
		}
	}
	return found, nil
}

// authFile is podman's auth.json and docker's config.json alike.
type authFile struct {
	Auths       map[string]json.RawMessage `json:"auths"`
	CredHelpers map[string]string          `json:"credHelpers"`
	CredsStore  string                     `json:"credsStore"`
}

const maxAuthFile = 1 << 20

func readAuthFile(path string) (authFile, error) {
	var a authFile
	f, err := os.Open(path)
	if err != nil {
		return a, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAuthFile))
	if err != nil {
		return a, err
	}
	if len(b) == 0 { // docker makes it so, and podman too
		return a, nil
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return authFile{}, errors.New("it is not valid JSON") // without quoting: there are secrets in it
	}
	return a, nil
}

// find looks target up in one file: helpers for its host, then the helper for
// all, then what is written in the file itself.
func (k *Keychain) find(ctx context.Context, a authFile, target authn.Resource) (cfg authn.AuthConfig, from string, err error) {
	host := hostKey(target.RegistryStr())
	var errs []error
	for _, helper := range []string{helperFor(a.CredHelpers, host), a.CredsStore} {
		if helper == "" {
			continue
		}
		cfg, err := k.helpers.get(ctx, helper, host)
		if err != nil {
			errs = append(errs, err)
		} else if cfg != (authn.AuthConfig{}) {
			return cfg, " (docker-credential-" + helper + ")", errors.Join(errs...)
		}
	}
	byKey := make(map[string][]string)
	for _, written := range slices.Sorted(maps.Keys(a.Auths)) {
		key := authKey(written)
		byKey[key] = append(byKey[key], written)
	}
	name := host + strings.TrimPrefix(target.String(), target.RegistryStr())
	for ; name != "." && name != "/"; name = filepath.Dir(name) {
		for _, written := range byKey[name] {
			cfg, err := decodeAuth(a.Auths[written])
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", written, err))
			} else if cfg != (authn.AuthConfig{}) {
				return cfg, "", errors.Join(errs...)
			}
		}
	}
	return authn.AuthConfig{}, "", errors.Join(errs...)
}

func helperFor(byHost map[string]string, host string) string {
	for _, written := range slices.Sorted(maps.Keys(byHost)) {
		if authKey(written) == host {
			return byHost[written]
		}
	}
	return ""
}

// hostKey is the one name of a registry that has several.
func hostKey(host string) string {
	switch host {
	case "index.docker.io", "registry-1.docker.io":
		return "docker.io"
	}
	return host
}

// authKey turns a key as written into host[/namespace]: docker writes URLs
// (https://index.docker.io/v1/), of which only the host counts; podman writes
// hosts and namespaces.
func authKey(written string) string {
	rest, isURL := strings.CutPrefix(written, "https://")
	if !isURL {
		rest, isURL = strings.CutPrefix(written, "http://")
	}
	host, path, _ := strings.Cut(rest, "/")
	path = strings.Trim(path, "/")
	if isURL || path == "" || path == "v1" || path == "v2" {
		return hostKey(host)
	}
	return hostKey(host) + "/" + path
}

func decodeAuth(raw json.RawMessage) (authn.AuthConfig, error) {
	var e struct {
		Username, Password, Auth     string
		IdentityToken, RegistryToken string
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return authn.AuthConfig{}, errors.New("the entry is not understood")
	}
	cfg := authn.AuthConfig{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken, RegistryToken: e.RegistryToken}
	if e.Auth != "" {
		b, err := base64.StdEncoding.DecodeString(e.Auth)
		user, pass, ok := strings.Cut(string(b), ":")
		if err != nil || !ok {
			return authn.AuthConfig{}, errors.New("its \"auth\" is not base64 of user:password")
		}
		cfg.Username, cfg.Password = user, strings.TrimRight(pass, "\x00")
	}
	return cfg, nil
}

// anonymous is the keychain of who gives none.
type anonymous struct{}

func (anonymous) Resolve(authn.Resource) (authn.Authenticator, error) { return authn.Anonymous, nil }

// traced hands the registry library the login that was found for the
// reference, so that a keychain is asked once.
type traced struct{}

func (traced) Resolve(authn.Resource) (authn.Authenticator, error) { return authn.Anonymous, nil }

func (traced) ResolveContext(ctx context.Context, _ authn.Resource) (authn.Authenticator, error) {
	if t := traceOf(ctx); t != nil && t.login != nil {
		return t.login, nil
	}
	return authn.Anonymous, nil
}
