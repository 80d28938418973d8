package config

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Tokens are what the tokens in host paths stand for on this machine: absolute
// directories, and the profile's name. An empty one is not known here.
type Tokens struct {
	ProfileName  string // {profile_name}
	ProfileDir   string // {profile_dir}: data_root/profile_name
	WorkspaceDir string // {workspace_dir}
	RuntimeDir   string // {runtime_dir}: XDG_RUNTIME_DIR
	Home         string // ~
}

// The tokens.
const (
	profileName  = "{profile_name}"
	profileDir   = "{profile_dir}"
	workspaceDir = "{workspace_dir}"
	runtimeDir   = "{runtime_dir}"
)

// profileNames begins with a letter or digit: a name is an argument of commands,
// and must not pass for one of their flags.
var profileNames = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{1,31}$`)

// hostPath is a host path taken apart, as it was written.
type hostPath struct {
	head string // "", "~" or the token of a directory, which can only come first
	rest string // starts with / or is empty; {profile_name} still in place
}

// parseHostPath takes a host path apart without expanding it.
func parseHostPath(s string) (hostPath, error) {
	switch {
	case s == "":
		return hostPath{}, errorf("write an absolute path, or one that starts with ~/", "is empty")
	case strings.ContainsRune(s, 0):
		return hostPath{}, errorf("", "holds a zero byte")
	case hasDotDot(s):
		return hostPath{}, errorf("write the path without it", "has a .. segment, which could lead out of where it seems to be")
	}
	h := hostPath{rest: s}
	for _, head := range []string{"~", profileDir, workspaceDir, runtimeDir} {
		after, ok := strings.CutPrefix(s, head)
		switch {
		case !ok:
			continue
		case after != "" && after[0] != '/' && head == "~":
			return hostPath{}, errorf("write ~/ for your home directory", "%s: ~ stands for a home directory only alone or before /", quote(s))
		case after != "" && after[0] != '/':
			// {profile_dir}2 would be another profile's directory.
			return hostPath{}, errorf("write "+head+"/", "%s: %s must be followed by /", quote(s), head)
		}
		h = hostPath{head: head, rest: after}
		break
	}
	if err := checkTokens(h.rest); err != nil {
		return hostPath{}, err
	}
	if h.head == "" && s[0] != '/' {
		return hostPath{}, errorf("write an absolute path, or one that starts with ~/ or {workspace_dir}/", "%s is a relative path", quote(s))
	}
	return h, nil
}

// checkTokens takes {profile_name} and no other braces.
func checkTokens(rest string) error {
	open := strings.IndexAny(rest, "{}")
	for open >= 0 && strings.HasPrefix(rest[open:], profileName) {
		rest = rest[open+len(profileName):]
		open = strings.IndexAny(rest, "{}")
	}
	if open < 0 {
		return nil
	}
	token, _, closed := strings.Cut(rest[open:], "}")
	if rest[open] == '}' || !closed || strings.Contains(token[1:], "{") {
		return errorf("", "holds a brace that belongs to no token")
	}
	token += "}"
	known := []string{profileName, profileDir, workspaceDir, runtimeDir}
	if slices.Contains(known, token) {
		return errorf("", "%s stands for an absolute path and can only come first", token)
	}
	hint := "the tokens are " + strings.Join(known, ", ")
	if near := Nearest(token, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	return errorf(hint, "unknown token %s", quote(token))
}

// Expand gives the absolute, clean path that s stands for on this machine.
// Only s is expanded, once and from left to right: a directory whose own name
// holds a token stays as it is. A .. segment, before or after, is an error.
func Expand(s string, t Tokens) (string, error) {
	h, err := parseHostPath(s)
	if err != nil {
		return "", err
	}
	expanded := h.rest
	if strings.Contains(expanded, profileName) {
		if !profileNames.MatchString(t.ProfileName) {
			return "", errorf("", "%s: {profile_name} is not known here", quote(s))
		}
		expanded = strings.ReplaceAll(expanded, profileName, t.ProfileName)
	}
	if h.head != "" {
		dir := map[string]string{"~": t.Home, profileDir: t.ProfileDir, workspaceDir: t.WorkspaceDir, runtimeDir: t.RuntimeDir}[h.head]
		switch {
		case dir == "" && h.head == runtimeDir:
			return "", errorf("log in through a session that sets XDG_RUNTIME_DIR", "%s: {runtime_dir} is not known here", quote(s))
		case !path.IsAbs(dir) || strings.ContainsRune(dir, 0):
			return "", errorf("", "%s: %s is not known here", quote(s), h.head)
		}
		expanded = dir + expanded
	}
	if hasDotDot(expanded) {
		return "", errorf("", "%s has a .. segment once it is expanded", quote(s))
	}
	return path.Clean(expanded), nil
}

// hasDotDot tells whether a path has a .. segment.
func hasDotDot(p string) bool {
	return slices.Contains(strings.Split(p, "/"), "..")
}
