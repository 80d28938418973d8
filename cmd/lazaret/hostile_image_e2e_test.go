package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lazaret/image"
	"lazaret/testdata/attacks"
)

// TestEndToEndHostileImage launches images made to harm: each is refused, with
// an error that names it, or contained, and this machine is as it was. Plain
// podman has a go at each as well.
func TestEndToEndHostileImage(t *testing.T) {
	needE2E(t)
	s := newSandboxed(t)
	for _, h := range hostileImages() {
		t.Run(h.name, func(t *testing.T) {
			s.t = t
			victim := filepath.Join(t.TempDir(), "victim")
			if err := writeBelow(victim, "canary", []byte("secret\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			os.Chmod(victim, 0o777)
			dir, err := os.MkdirTemp("", "lazaret-hostile-") // podman makes a name of it
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			id := h.layOut(t, dir, victim)
			t.Cleanup(func() { exec.Command("podman", "rmi", "-f", id).Run() })
			h.attack(t, s, dir, victim)
			if h.plain != "-" {
				h.attackPodman(t, dir, victim)
			}
		})
	}
}

// TestEndToEndAttackLiars: an image whose programs say that everything was
// withstood makes nothing so. What succeeds against plain podman is found there.
func TestEndToEndAttackLiars(t *testing.T) {
	needE2E(t)
	s := newSandboxed(t)
	dir := t.TempDir()
	h := hostileImage{text: liar, layer: liars()}
	id := h.layOut(t, dir, "")
	t.Cleanup(func() { exec.Command("podman", "rmi", "-f", id).Run() })
	h.configure(t, s, dir)
	s.must("lock", "--platform", "linux/amd64")
	s.must("trust", "--yes")
	before := s.quiet()
	c := exec.Command(s.self, "doctor", "--attack", "--plain", "--json", "--only", "proc-kernel", "--only", "environment-leak", "--only", "git-hook", "shell")
	c.Dir, c.Env = s.ws, s.env
	out, err := c.Output()
	var lines []attackLine
	if err := json.Unmarshal(out, &lines); err != nil || len(lines) != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, l := range lines {
		if l.Verdict != verdictHeld || l.Plain != attacks.Succeeds || strings.Contains(l.Why+l.PlainIs, "trust me") {
			t.Errorf("%+v", l)
		}
	}
	if err != nil {
		t.Error(err)
	}
	if diff := s.settled(before); diff != "" {
		t.Errorf("the host is not as it was\n%s", diff)
	}
}

// layOut makes the image and gives its id.
func (h hostileImage) layOut(t *testing.T, dir, victim string) string {
	t.Helper()
	spell := strings.NewReplacer("{VICTIM}", victim).Replace
	img, err := image.Shell("linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	if h.layer != nil {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, e := range h.layer {
			e.Name, e.Linkname = spell(e.Name), spell(e.Linkname)
			for k, v := range e.PAXRecords {
				e.PAXRecords = map[string]string{k: spell(v)}
			}
			body := ""
			if e.Typeflag == tar.TypeReg && !strings.Contains(e.Name, ".wh.") {
				body = spell(h.text)
			}
			e.Size = int64(len(body))
			if err := w.WriteHeader(&e); err != nil {
				t.Fatal(err)
			}
			w.Write([]byte(body))
		}
		w.Close()
		if img, err = mutate.AppendLayers(img, static.NewLayer(b.Bytes(), types.OCIUncompressedLayer)); err != nil {
			t.Fatal(err)
		}
	}
	cf, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cf = cf.DeepCopy()
	if h.config != nil {
		h.config(&cf.Config)
	}
	for i, kv := range cf.Config.Env {
		cf.Config.Env[i] = spell(kv)
	}
	cf.Author = t.Name() // an id of its own
	if img, err = mutate.ConfigFile(img, cf); err != nil {
		t.Fatal(err)
	}
	if h.annotations != nil {
		img = mutate.Annotations(img, h.annotations).(v1.Image)
	}
	p, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = p.AppendImage(img, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"}))
	}
	if err != nil {
		t.Fatal(err)
	}
	id, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// configure has the profile run the image.
func (h hostileImage) configure(t *testing.T, s *sandboxed, dir string) {
	t.Helper()
	config := strings.Replace(shellConfig(filepath.Join(filepath.Dir(s.ws), "data")), `"builtin:shell"`, fmt.Sprintf("%q", "oci:"+dir), 1)
	persist := ""
	if h.persist != "" {
		persist = fmt.Sprintf("%q", h.persist)
	}
	config = strings.Replace(config, `"/root", "/etc"`, persist, 1)
	if err := os.WriteFile(filepath.Join(s.ws, "lazaret.toml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
}

// attack locks and launches.
func (h hostileImage) attack(t *testing.T, s *sandboxed, dir, victim string) {
	h.configure(t, s, dir)
	s.empty()
	theirs := snapshot(t, victim)
	out, err := h.run(s, "lock", "--platform", "linux/amd64")
	if h.lock != "" || err != nil {
		h.refusal(t, "locking", h.lock, out, err)
	} else {
		if b, err := os.ReadFile(filepath.Join(s.ws, "lazaret.lock")); err != nil || !regexp.MustCompile(h.pins).Match(b) {
			t.Errorf("the lock does not show %q: %v\n%s", h.pins, err, b)
		}
		s.must("trust", "--yes")
		before := s.quiet()
		out, err = h.run(s, "launch", "shell", "--", "/bin/sh", "-c", h.steps())
		switch {
		case h.launch == "podman":
			if err == nil || !strings.Contains(out, "Error: ") || !strings.Contains(out, "lazaret: note: podman could not start it") {
				t.Errorf("launching: %v\n%s", err, out)
			}
		case h.launch != "":
			h.refusal(t, "launching", h.launch, out, err)
		case err != nil || !regexp.MustCompile(h.says).MatchString(out):
			t.Errorf("launching: %v\n%q, want %q", err, out, h.says)
		}
		s.empty()
		if diff := s.settled(before); diff != "" {
			t.Errorf("the host is not as it was\n%s", diff)
		}
	}
	if strings.ContainsAny(out, "\x1b\x9b") {
		t.Errorf("it acts on the terminal: %q", out)
	}
	if now := snapshot(t, victim); now != theirs {
		t.Errorf("the person's directory is not as it was\n%s", difference(theirs, now))
	}
}

// empty removes what profiles keep.
func (s *sandboxed) empty() {
	if out, err := exec.Command("podman", "unshare", "rm", "-rf", filepath.Join(filepath.Dir(s.ws), "data")).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// run runs lazaret, which has to come to an end.
func (h hostileImage) run(s *sandboxed, args ...string) (string, error) {
	c, out := s.cmd(nil, args...)
	if err := c.Start(); err != nil {
		return "", err
	}
	late := time.AfterFunc(longEnough, func() { c.Process.Signal(os.Interrupt) })
	defer time.AfterFunc(2*longEnough, func() { c.Process.Kill() }).Stop()
	err := c.Wait()
	if !late.Stop() {
		err = context.DeadlineExceeded
	}
	return out.String(), err
}

// refusal looks at an error: two lines, of which the first says what is wrong.
func (h hostileImage) refusal(t *testing.T, doing, want, out string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s is not refused: %s", doing, out)
	}
	m := regexp.MustCompile(`(?m)^lazaret: error: (.*)\nlazaret: hint: .+\n\z`).FindStringSubmatch(out)
	if m == nil || !regexp.MustCompile(want).MatchString(m[1]) {
		t.Errorf("%s: %v\n%q, want an error of two lines about %q", doing, err, out, want)
	}
}

// steps are what is tried in the sandbox.
func (h hostileImage) steps() string {
	if h.script != "" {
		return h.script
	}
	var b strings.Builder
	for _, e := range h.layer {
		fmt.Fprintf(&b, "(mkdir /%[1]s/made; echo x >/%[1]s/written; chmod 4777 /%[1]s/.; cat /%[1]s/canary) 2>/dev/null\n", e.Name)
	}
	return b.String() + "echo tried"
}

// attackPodman has plain podman run the same.
func (h hostileImage) attackPodman(t *testing.T, dir, victim string) {
	ws := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*longEnough)
	defer cancel()
	name := "lazaret-hostile-" + randomHex()
	defer exec.Command("podman", "rm", "-f", "-v", "-t", "0", "-i", name).Run()
	out, err := exec.CommandContext(ctx, "podman", "--runtime", ordinary(t), "run", "-q", "--rm", "--name", name, "-e", "PODMAN=1", "-v", ws+":/workspace", "oci:"+dir, "/bin/sh", "-c", h.steps()).CombinedOutput()
	got := string(out) + strings.ReplaceAll(snapshot(t, ws), ws, "workspace")
	if now := snapshot(t, victim); strings.Contains(now, "written") {
		got += "the person's directory is written to\n"
	}
	if h.plain != "" && !regexp.MustCompile(h.plain).MatchString(got) {
		t.Errorf("plain podman: %v: %q, want %q", err, got, h.plain)
	}
}

// snapshot is all of a directory as text.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		text, _ := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %s %s\n", path, fi.Mode(), text)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return b.String()
}
