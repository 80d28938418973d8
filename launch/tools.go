package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lazaret/internal/proc"
	"lazaret/launch/podman"
	"lazaret/lock/config"
)

// Tool is a program lazaret runs.
type Tool struct {
	Path    string // absolute, without symlinks
	Version string
}

// The oldest versions that can do what a launch needs.
const (
	minPodmanMajor, minPodmanMinor = 4, 3
	// Older releases cannot start their network on kernels that namespace
	// net.core.rmem_default, and know fewer of the flags we give.
	minRunsc = 20260101
)

var (
	podmanVersion = regexp.MustCompile(`^podman version ((\d+)\.(\d+)\S*)`)
	runscVersion  = regexp.MustCompile(`^runsc version (release-(\d{8})\.\S+)`)
)

func podmanEnviron(getenv func(string) string) []string {
	return podman.Environ(getenv, "")
}

// findTools finds podman and runsc and checks their versions. The answers are
// kept in cacheDir as long as the program files stay the same: asking takes
// 35 ms, a sixth of a launch.
func findTools(cacheDir, path, workspace string) (pod, runsc Tool, err error) {
	cache := readToolCache(cacheDir)
	known := len(cache)
	if pod, err = findTool("podman", path, workspace, cache, checkPodman); err != nil {
		return Tool{}, Tool{}, err
	}
	if runsc, err = findTool("runsc", path, workspace, cache, checkRunsc); err != nil {
		return Tool{}, Tool{}, err
	}
	if len(cache) != known {
		writeToolCache(cacheDir, cache)
	}
	return pod, runsc, nil
}

func findTool(name, path, workspace string, cache map[string]string, check func(string) (string, error)) (Tool, error) {
	file, err := lookPath(name, path, workspace)
	if err != nil {
		return Tool{}, err
	}
	key, err := fileKey(file)
	if err != nil {
		return Tool{}, fmt.Errorf("looking at %s: %w", file, err)
	}
	if v, ok := cache[key]; ok {
		return Tool{file, v}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	// podman 5 wants a config directory that exists before it says its version.
	out, err := proc.Output(ctx, proc.Cmd{Argv: []string{file, "--version"}, Env: []string{"PATH=/usr/bin:/bin", "HOME=/", "XDG_CONFIG_HOME=/"}})
	if err != nil {
		return Tool{}, mute(name, file, err)
	}
	v, err := check(string(out))
	if err != nil {
		return Tool{}, err
	}
	cache[key] = v
	return Tool{file, v}, nil
}

// mute is a tool that does not say its version. One that takes too long may work.
func mute(name, file string, err error) error {
	if late := (*proc.LateError)(nil); errors.As(err, &late) {
		return fmt.Errorf("asking %s for its version: %w", name, err)
	}
	return lacks(name, "install a "+name+" that works on this machine", "%s does not say its version: %v", file, err)
}

func checkPodman(out string) (string, error) {
	m := podmanVersion.FindStringSubmatch(out)
	if m == nil {
		return "", lacks("podman", "install podman", "podman --version says %s", config.Show(firstLine(out)))
	}
	major, _ := strconv.Atoi(m[2])
	minor, _ := strconv.Atoi(m[3])
	if major < minPodmanMajor || major == minPodmanMajor && minor < minPodmanMinor {
		return "", lacks("podman", fmt.Sprintf("install podman %d.%d or newer", minPodmanMajor, minPodmanMinor), "podman %s is too old", m[1])
	}
	return m[1], nil
}

func checkRunsc(out string) (string, error) {
	m := runscVersion.FindStringSubmatch(out)
	if m == nil {
		return "", lacks("runsc", "install a released runsc", "runsc --version says %s", config.Show(firstLine(out)))
	}
	if date, _ := strconv.Atoi(m[2]); date < minRunsc {
		return "", lacks("runsc", fmt.Sprintf("install runsc release %d or newer: https://gvisor.dev/docs/user_guide/install/", minRunsc), "runsc %s is too old for current kernels", m[1])
	}
	return m[1], nil
}

// lookPath finds a program in PATH, never relative to the current directory
// and never inside the workspace, where the agent could have put it.
func lookPath(name, path, workspace string) (string, error) {
	if file := proc.Find(name, path, workspace); file != "" {
		return file, nil
	}
	checkNames := map[string]string{"podman": "podman", "runsc": "runsc", "nsenter": "userns", "git": "git"}
	packages := map[string]string{
		"podman": `install it: "apt-get install podman uidmap" or your distribution's package`,
		"runsc":  "install gVisor: https://gvisor.dev/docs/user_guide/install/",
	}
	return "", lacks(checkNames[name], packages[name], "%s is not installed: it is in no absolute directory of PATH outside the workspace", name)
}

// fileKey identifies the contents of a program file as far as a stat can.
func fileKey(file string) (string, error) {
	var s unix.Stat_t
	if err := unix.Stat(file, &s); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %d:%d %d %d.%d %d.%d", file, s.Dev, s.Ino, s.Size, s.Mtim.Sec, s.Mtim.Nsec, s.Ctim.Sec, s.Ctim.Nsec), nil
}

const toolCacheFile = "tools.json"

// readToolCache never fails: a cache that cannot be read is empty.
func readToolCache(dir string) map[string]string {
	cache := map[string]string{}
	if b, err := os.ReadFile(filepath.Join(dir, toolCacheFile)); err == nil {
		if json.Unmarshal(b, &cache) != nil {
			return map[string]string{}
		}
	}
	return cache
}

// writeToolCache never fails either: without it, the next launch asks again.
func writeToolCache(dir string, cache map[string]string) { writeCache(dir, toolCacheFile, cache) }

func writeCache(dir, name string, cache any) {
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	b, err := json.MarshalIndent(cache, "", "\t")
	if err != nil {
		return
	}
	sweepCache(dir, name)
	tmp, err := os.CreateTemp(dir, name+".*")
	if err != nil {
		return
	}
	_, werr := tmp.Write(append(b, '\n'))
	if cerr := tmp.Close(); werr != nil || cerr != nil || os.Rename(tmp.Name(), filepath.Join(dir, name)) != nil {
		os.Remove(tmp.Name())
	}
}

// sweepCache removes what a writeCache that was killed left behind.
func sweepCache(dir, name string) {
	left, err := fs.Glob(os.DirFS(dir), name+".*")
	if err != nil {
		return
	}
	for _, n := range left {
		path := filepath.Join(dir, n)
		if fi, err := os.Lstat(path); err == nil && time.Since(fi.ModTime()).Abs() > time.Hour {
			os.Remove(path)
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
