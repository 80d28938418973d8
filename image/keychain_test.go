package image

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

func auth(user string) string {
	return `{"auth":"` + base64.StdEncoding.EncodeToString([]byte(user+":secret")) + `"}`
}

// home makes a home directory of files and returns it.
func home(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		mode := os.FileMode(0o600)
		if filepath.Base(filepath.Dir(path)) == "bin" {
			mode = 0o755
		}
		full := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	podmanFile  = ".config/containers/auth.json"
	dockerFile  = ".docker/config.json"
	runtimeFile = "run/containers/auth.json"
	hub         = "docker.io/library/debian"
)

func TestKeychain(t *testing.T) {
	auths := func(pairs ...string) string {
		s := ""
		for i := 0; i < len(pairs); i += 2 {
			s += `,"` + pairs[i] + `":` + pairs[i+1]
		}
		return `{"auths":{` + strings.TrimPrefix(s, ",") + `}}`
	}
	const helper = "#!/bin/sh\nread server\ncase $server in\nquay.io) echo '{\"Username\":\"helped\",\"Secret\":\"s\"}';;\n" +
		"https://index.docker.io/v1/) echo '{\"Username\":\"<token>\",\"Secret\":\"t\"}';;\n*) echo 'credentials not found in native keychain'; exit 1;;\nesac\n"
	for _, test := range []struct {
		what   string
		files  map[string]string
		env    []string
		target string
		user   string // who is found, "" for nobody
		says   string // a part of the problems, "" for none
	}{
		{"nothing there", nil, nil, hub, "", ""},
		{"podman's key for Docker Hub", map[string]string{podmanFile: auths("docker.io", auth("a"))}, nil, hub, "a", ""},
		{"docker's key for Docker Hub", map[string]string{dockerFile: auths("https://index.docker.io/v1/", auth("a"))}, nil, hub, "a", ""},
		{"docker's host key", map[string]string{dockerFile: auths("index.docker.io", auth("a"))}, nil, hub, "a", ""},
		{"an empty docker file hides nothing", map[string]string{dockerFile: "{}", podmanFile: auths("quay.io", auth("a"))}, nil, "quay.io/x/y", "a", ""},
		{"a docker file of nothing hides nothing", map[string]string{dockerFile: "", podmanFile: auths("quay.io", auth("a"))}, nil, "quay.io/x/y", "a", ""},
		{"an entry without credentials hides nothing", map[string]string{podmanFile: auths("quay.io", "{}"), dockerFile: auths("quay.io", auth("a"))}, nil, "quay.io/x/y", "a", ""},
		{"the runtime directory first", map[string]string{podmanFile: auths("quay.io", auth("b")), runtimeFile: auths("quay.io", auth("a"))}, []string{"XDG_RUNTIME_DIR=%/run"}, "quay.io/x/y", "a", ""},
		{"podman before docker", map[string]string{podmanFile: auths("quay.io", auth("a")), dockerFile: auths("quay.io", auth("b"))}, nil, "quay.io/x/y", "a", ""},
		{"REGISTRY_AUTH_FILE replaces podman's", map[string]string{podmanFile: auths("quay.io", auth("b")), "f": auths("quay.io", auth("a"))}, []string{"REGISTRY_AUTH_FILE=%/f"}, "quay.io/x/y", "a", ""},
		{"REGISTRY_AUTH_FILE alone", map[string]string{podmanFile: auths("quay.io", auth("b")), "f": "{}"}, []string{"REGISTRY_AUTH_FILE=%/f"}, "quay.io/x/y", "", ""},
		{"XDG_CONFIG_HOME", map[string]string{"xdg/containers/auth.json": auths("quay.io", auth("a"))}, []string{"XDG_CONFIG_HOME=%/xdg"}, "quay.io/x/y", "a", ""},
		{"DOCKER_CONFIG", map[string]string{"d/config.json": auths("quay.io", auth("a")), dockerFile: auths("quay.io", auth("b"))}, []string{"DOCKER_CONFIG=%/d"}, "quay.io/x/y", "a", ""},
		{"the longest namespace", map[string]string{podmanFile: auths("quay.io", auth("c"), "quay.io/team", auth("b"), "quay.io/team/app", auth("a"))}, nil, "quay.io/team/app", "a", ""},
		{"a shorter namespace", map[string]string{podmanFile: auths("quay.io", auth("c"), "quay.io/team", auth("a"))}, nil, "quay.io/team/other", "a", ""},
		{"not a longer name", map[string]string{podmanFile: auths("quay.io/tea", auth("c"), "quay.io.example.org", auth("d"))}, nil, "quay.io/team/app", "", ""},
		{"a port", map[string]string{podmanFile: auths("localhost:5000", auth("a"), "localhost", auth("b"))}, nil, "localhost:5000/x", "a", ""},
		{"a URL's path is not a namespace", map[string]string{dockerFile: auths("https://quay.io/some/where", auth("a"))}, nil, "quay.io/x/y", "a", ""},
		{"broken JSON", map[string]string{podmanFile: `{"auths": {"quay.io": {"auth": "c2Vj`, dockerFile: auths("quay.io", auth("a"))}, nil, "quay.io/x/y", "a", "not valid JSON"},
		{"a broken entry", map[string]string{podmanFile: auths("quay.io", `{"auth":"!!"}`)}, nil, "quay.io/x/y", "", "base64"},
		{"somebody else's broken entry", map[string]string{podmanFile: auths("ghcr.io", `{"auth":"!!"}`, "quay.io", auth("a"))}, nil, "quay.io/x/y", "a", ""},
		{"a missing file that is named", nil, []string{"REGISTRY_AUTH_FILE=%/f"}, hub, "", ""},
		{"a helper for all", map[string]string{dockerFile: `{"credsStore":"h"}`, "bin/docker-credential-h": helper}, nil, "quay.io/x/y", "helped", ""},
		{"a helper that has none", map[string]string{dockerFile: `{"credsStore":"h"}`, "bin/docker-credential-h": helper}, nil, "ghcr.io/x/y", "", ""},
		{"a helper for one host", map[string]string{podmanFile: `{"credHelpers":{"quay.io":"h"},"auths":{"quay.io":` + auth("b") + `}}`, "bin/docker-credential-h": helper}, nil, "quay.io/x/y", "helped", ""},
		{"a helper with a token", map[string]string{dockerFile: `{"credsStore":"h"}`, "bin/docker-credential-h": helper}, nil, hub, "<token>", ""},
		{"a missing helper", map[string]string{dockerFile: `{"credsStore":"h","auths":{"quay.io":` + auth("a") + `}}`}, nil, "quay.io/x/y", "a", "docker-credential-h is not installed"},
		{"a failing helper", map[string]string{dockerFile: `{"credsStore":"h"}`, "bin/docker-credential-h": "#!/bin/sh\necho locked\nexit 1\n"}, nil, hub, "", "locked"},
		{"a babbling helper", map[string]string{dockerFile: `{"credsStore":"h"}`, "bin/docker-credential-h": "#!/bin/sh\necho hello\n"}, nil, hub, "", "not understood"},
		{"a helper that is a path", map[string]string{dockerFile: `{"credsStore":"../../x/y"}`}, nil, hub, "", "not a name"},
	} {
		dir := home(t, test.files)
		environ := []string{"PATH=" + dir + "/bin:/usr/bin:/bin:."}
		for _, kv := range test.env {
			environ = append(environ, strings.ReplaceAll(kv, "%", dir))
		}
		repo, err := name.NewRepository(test.target)
		if err != nil {
			t.Fatal(err)
		}
		found, err := NewKeychain(environ, dir).Resolve(repo)
		if err != nil {
			t.Errorf("%s: %v", test.what, err)
			continue
		}
		l := found.(*login)
		user := l.Username
		if l.IdentityToken != "" {
			user = "<token>"
		}
		problems := strings.Join(l.problems, "; ")
		if user != test.user || !strings.Contains(problems, test.says) || test.says == "" && problems != "" {
			t.Errorf("%s: found %q with problems %q, want %q with %q", test.what, user, problems, test.user, test.says)
		}
		if strings.Contains(problems, "secret") || strings.Contains(problems, "c2Vj") {
			t.Errorf("%s: the problem tells the secret: %s", test.what, problems)
		}
		if user != "" && !strings.HasPrefix(l.from, dir) {
			t.Errorf("%s: found in %q", test.what, l.from)
		}
	}
}

// A helper in the directory one happens to be in is a stranger's program.
func TestHelperFromHere(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	dir := home(t, map[string]string{dockerFile: `{"credsStore":"h"}`, "bin/docker-credential-h": "#!/bin/sh\n: >" + ran + "\n"})
	t.Chdir(filepath.Join(dir, "bin"))
	repo, err := name.NewRepository(hub)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{".", "", ":", "../bin"} {
		if _, err := NewKeychain([]string{"PATH=" + path}, dir).Resolve(repo); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("it was run")
	}
	if _, err := NewKeychain([]string{"PATH=" + dir + "/bin"}, dir).Resolve(repo); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ran); err != nil {
		t.Error("the test could not have seen it run")
	}
}

// Nor is one that an agent left where PATH begins in the workspace, as with a
// virtual environment that is active; nor is what a helper runs itself.
func TestHelperOfAnAgents(t *testing.T) {
	repo, err := name.NewRepository(hub)
	if err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	theirs := "#!/bin/sh\n: >" + ran + "\n"
	const ours = "#!/usr/bin/env hsh\n"
	dir := home(t, map[string]string{dockerFile: `{"credsStore":"h"}`, "bin/docker-credential-h": ours,
		"bin/hsh":                          "#!/bin/sh\necho '{\"Username\":\"u\",\"Secret\":\"s\"}'\n",
		"ws/.venv/bin/hsh":                 theirs,
		"ws/.venv/bin/docker-credential-h": theirs})
	if err := errors.Join(os.Symlink(dir+"/ws/.venv/bin", dir+"/venv"), os.Mkdir(dir+"/link", 0o755),
		os.Symlink(dir+"/ws/.venv/bin/docker-credential-h", dir+"/link/docker-credential-h")); err != nil {
		t.Fatal(err)
	}
	ask := func(path string, outside ...string) *login {
		found, err := NewKeychain([]string{"HOME=" + dir, "PATH=" + path + ":" + dir + "/bin:/usr/bin:/bin"}, dir, outside...).Resolve(repo)
		if err != nil {
			t.Fatal(err)
		}
		return found.(*login)
	}
	for _, first := range []string{"/ws/.venv/bin", "/venv", "/link", "/bin/../ws/.venv/bin"} {
		l := ask(dir+first, dir+"/ws")
		if _, err := os.Stat(ran); err == nil || l.Username != "u" {
			t.Fatalf("%s: found %q with problems %q, theirs ran: %v", first, l.Username, l.problems, err == nil)
		}
	}
	ask(dir + "/ws/.venv/bin")
	if _, err := os.Stat(ran); err != nil {
		t.Error("the test could not have seen it run")
	}
}

func TestHelperIsAskedOnce(t *testing.T) {
	dir := home(t, map[string]string{dockerFile: `{"credsStore":"h"}`,
		"bin/docker-credential-h": "#!/bin/sh\nread s\necho x >>\"$HOME/count\"\necho '{\"Username\":\"u\",\"Secret\":\"s\"}'\n"})
	k := NewKeychain([]string{"PATH=" + dir + "/bin:/bin", "HOME=" + dir}, dir)
	done := make(chan bool)
	for range 8 {
		go func() {
			repo, err := name.NewRepository("quay.io/x/y")
			if err == nil {
				_, err = k.Resolve(repo)
			}
			if err != nil {
				t.Error(err)
			}
			done <- true
		}()
	}
	for range 8 {
		<-done
	}
	if b, err := os.ReadFile(filepath.Join(dir, "count")); string(b) != "x\n" {
		t.Errorf("asked %d times, %v", len(b)/2, err)
	}
}

func TestHangingHelper(t *testing.T) {
	dir := home(t, map[string]string{dockerFile: `{"credsStore":"h"}`, "bin/docker-credential-h": "#!/bin/sh\nexec sleep 60\n"})
	repo, err := name.NewRepository(hub)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := NewKeychain([]string{"PATH=" + dir + "/bin:/bin"}, dir).ResolveContext(ctx, repo); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// What is wrong with credentials does not matter to a public image, and is
// told when it does.
func TestBrokenCredentials(t *testing.T) {
	r := newRegistry(t)
	ref := r.push(t, "app:1", multiArch(t, "1"))
	dir := home(t, map[string]string{podmanFile: `{broken`, dockerFile: `{"credsStore":"h"}`})
	k := NewKeychain(nil, dir)
	if _, err := NewResolver(Options{Keychain: k}).Resolve(t.Context(), ref, both); err != nil {
		t.Errorf("a public image: %v", err)
	}
	r.password(true)
	_, err := NewResolver(Options{Keychain: k}).Resolve(t.Context(), ref, both)
	checkError(t, err, new(*RegistryError), "docker-credential-h is not installed")
	checkError(t, err, new(*RegistryError), "auth.json: it is not valid JSON")
	if err != nil && !strings.Contains(err.(*RegistryError).Hint(), "podman login "+r.host) {
		t.Errorf("the hint is %q", err.(*RegistryError).Hint())
	}
	dir = home(t, map[string]string{podmanFile: `{"auths":{"` + r.host + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("u:p")) + `"}}}`, dockerFile: "{}"})
	if _, err := NewResolver(Options{Keychain: NewKeychain(nil, dir)}).Resolve(t.Context(), ref, both); err != nil {
		t.Errorf("with podman's credentials: %v", err)
	}
	// An unknown keychain that fails is a problem like any other.
	r.inFront(func(http.ResponseWriter, *http.Request) bool { return false })
	if _, err := NewResolver(Options{Keychain: failing{}}).Resolve(t.Context(), ref, both); err != nil {
		t.Errorf("with a failing keychain: %v", err)
	}
}

type failing struct{}

func (failing) Resolve(authn.Resource) (authn.Authenticator, error) {
	return nil, errors.New("no keyring")
}
