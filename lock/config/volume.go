package config

import (
	"path"
	"slices"
	"strings"
)

// sandbox is what the checks of host paths have to know: where the profile's
// state and lazaret's own files are, as written.
type sandbox struct {
	profile   string
	dataRoot  string // "" where it is missing or wrong
	socketDir string
}

// lexical gives the path that h names with {profile_dir} and {profile_name}
// filled in; ~, {workspace_dir} and {runtime_dir} stay, as if they were
// directories of the root. It is for comparing paths before any machine is
// known; the real paths are compared again at launch.
func (s sandbox) lexical(h hostPath) string {
	head := h.head
	if head == profileDir {
		head = path.Join(s.dataRoot, s.profile)
	}
	return path.Clean(head + strings.ReplaceAll(h.rest, profileName, s.profile))
}

// within tells whether p is dir or lies below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// checkSource takes the host side of a volume.
func (s sandbox) checkSource(written string) (underProfileDir bool, err error) {
	h, err := parseHostPath(written)
	if err != nil {
		return false, err
	}
	if h.head == profileDir && s.dataRoot == "" {
		return false, nil // data_root has been reported
	}
	p := s.lexical(h)
	if p == "/" {
		return false, errorf("name a directory below it", "/ cannot be a volume: it holds everything")
	}
	if err := s.checkWorkspaceSource(p); err != nil {
		return false, err
	}
	own := path.Join(s.dataRoot, s.profile)
	if s.dataRoot != "" {
		switch {
		case p == own:
			return false, errorf("name a directory in it: "+profileDir+"/NAME", "%s holds the profile's overlays and cannot be a volume itself", profileDir)
		case within(p, own):
			first, _, _ := strings.Cut(strings.TrimPrefix(p, own+"/"), "/")
			for _, suffix := range []string{"_changes", "_work", "_merged"} {
				if strings.HasSuffix(first, suffix) {
					return false, errorf("choose another name", "%s is the name of an overlay's directory", quote(first))
				}
			}
		case within(p, s.dataRoot):
			return false, errorf("use "+profileDir+"/NAME", "%s lies in data_root, where only the profile's own directory is open to it", quote(written))
		case within(s.dataRoot, p):
			return false, errorf("name a directory that does not hold it", "%s holds data_root (%s)", quote(written), Show(s.dataRoot))
		}
	}
	for _, kept := range []struct{ what, dir string }{
		{"socket_dir", allProfiles(s.socketDir)},
		{"lazaret's own configuration", "~/.config/lazaret"},
		{"lazaret's own records", "~/.local/state/lazaret"},
	} {
		if kept.dir != "" && (within(p, kept.dir) || within(kept.dir, p)) {
			return false, errorf("name a directory that is not part of it", "%s shares files with %s (%s)", quote(written), kept.what, Show(kept.dir))
		}
	}
	return s.dataRoot != "" && within(p, own), nil
}

// allProfiles gives the directory that holds dir for every {profile_name}:
// another profile's sockets are no more this one's than its own.
func allProfiles(dir string) string {
	if i := strings.Index(dir, profileName); i >= 0 {
		return path.Dir(dir[:i] + "x")
	}
	return dir
}

// checkWorkspaceSource refuses what is hidden or read-only in /workspace:
// a volume would show it a second time, without the protection.
func (s sandbox) checkWorkspaceSource(p string) error {
	if p == workspaceDir {
		return errorf("name a directory in it", "%s is in the sandbox already, at /workspace", workspaceDir)
	}
	rest, ok := strings.CutPrefix(p, workspaceDir+"/")
	if !ok {
		return nil
	}
	parts := strings.Split(rest, "/")
	if slices.Contains(parts, ".git") || strings.HasPrefix(parts[0], "lazaret.") {
		return errorf("name another directory", "%s is kept from the sandbox", quote(p))
	}
	return nil
}

// checkTarget takes a path in the sandbox that something is mounted at.
func checkTarget(p string) error {
	switch {
	case p == "":
		return errorf("write an absolute path", "is empty")
	case hasDotDot(p):
		return errorf("write the path without it", "has a .. segment")
	case !path.IsAbs(p):
		return errorf("write an absolute path in the sandbox", "%s is not an absolute path", quote(p))
	case p != path.Clean(p):
		return errorf("write "+quote(path.Clean(p)), "%s is not in its shortest form", quote(p))
	case p == "/":
		return errorf("name a directory below it", "/ is the image itself")
	}
	for _, dir := range []string{"/run/lazaret", "/proc", "/sys", "/dev"} {
		if within(p, dir) {
			return errorf("choose another path", "%s lies in %s, which is not the profile's", quote(p), dir)
		}
	}
	return nil
}

// checkPersistent takes an entry of persistent_dirs.
func checkPersistent(p string) (string, error) {
	if err := checkTarget(p); err != nil {
		return "", err
	}
	if within(p, "/workspace") {
		return "", errorf("the workspace persists by itself", "%s lies in /workspace", quote(p))
	}
	return p, nil
}

// checkVolumeTarget takes the container side of a volume.
func checkVolumeTarget(p string) error {
	if err := checkTarget(p); err != nil {
		return err
	}
	if p == "/workspace" {
		return errorf("choose another path", "/workspace is the workspace")
	}
	rest, ok := strings.CutPrefix(p, "/workspace/")
	if !ok {
		return nil
	}
	parts := strings.Split(rest, "/")
	if slices.Contains(parts, ".git") || parts[0] == ".vscode" || parts[0] == ".idea" || strings.HasPrefix(parts[0], "lazaret.") {
		return errorf("choose another path", "%s is covered by lazaret", quote(p))
	}
	return nil
}

// parseMode reads a volume's mode: a comma list of ro, rw, z and Z.
func parseMode(s string) (readOnly, readWrite bool, relabel string, err error) {
	const want = "write a comma list of ro or rw, and z or Z"
	seen := map[string]bool{}
	for word := range strings.SplitSeq(s, ",") {
		switch {
		case !slices.Contains([]string{"ro", "rw", "z", "Z"}, word):
			return false, false, "", errorf(want, "%s is not a mode", quote(word))
		case seen[word]:
			return false, false, "", errorf(want, "says %s twice", word)
		}
		seen[word] = true
		if word == "z" || word == "Z" {
			relabel = word
		}
	}
	switch {
	case seen["ro"] && seen["rw"]:
		return false, false, "", errorf(want, "says both ro and rw")
	case seen["z"] && seen["Z"]:
		return false, false, "", errorf(want, "says both z and Z")
	}
	return seen["ro"], seen["rw"], relabel, nil
}
