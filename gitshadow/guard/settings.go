package guard

import (
	"regexp"
	"strings"
)

// programs are the settings whose value git runs, or that lead git to read or
// write elsewhere. A * stands for any subsection.
var programs = []struct {
	key      string
	severity Severity
	why      string
	harmless func(value string) bool // values that run nothing
}{
	{"core.fsmonitor", Danger, "git status runs it", isBool},
	{"core.hookspath", Danger, "git runs the hooks that lie there", nil},
	{"core.sshcommand", Danger, "git fetch and push run it", nil},
	{"core.pager", Danger, "git log and diff run it", isPager},
	{"core.editor", Danger, "git commit runs it", nil},
	{"core.askpass", Danger, "git fetch and push run it", nil},
	{"core.gitproxy", Danger, "git fetch runs it", nil},
	{"core.alternaterefscommand", Danger, "git fetch runs it", nil},
	{"core.attributesfile", Warning, "git takes drivers of files from it", nil},
	{"sequence.editor", Danger, "git rebase runs it", nil},
	{"gpg.program", Danger, "git runs it to sign and to verify", isPlainGPG},
	{"gpg.*.program", Danger, "git runs it to sign and to verify", isPlainGPG},
	{"gpg.ssh.defaultkeycommand", Danger, "git commit runs it", nil},
	{"diff.external", Danger, "git diff runs it", nil},
	{"diff.*.command", Danger, "git diff runs it", nil},
	{"diff.*.textconv", Danger, "git diff and log run it", nil},
	{"difftool.*.cmd", Danger, "git difftool runs it", nil},
	{"difftool.*.path", Danger, "git difftool runs it", nil},
	{"merge.*.driver", Danger, "git merge runs it", nil},
	{"mergetool.*.cmd", Danger, "git mergetool runs it", nil},
	{"mergetool.*.path", Danger, "git mergetool runs it", nil},
	{"filter.*.clean", Danger, "git status, diff and add run it", nil},
	{"filter.*.smudge", Danger, "git checkout runs it", nil},
	{"filter.*.process", Danger, "git status, diff, add and checkout run it", nil},
	{"pager.*", Danger, "git runs it to show that command's output", isBool},
	{"interactive.difffilter", Danger, "git add -p runs it", nil},
	{"alias.*", Danger, "git runs it under that name", func(v string) bool {
		return !strings.HasPrefix(strings.TrimSpace(v), "!") && !strings.Contains(v, "-c")
	}},
	{"credential.helper", Danger, "git fetch and push run it", isHelper},
	{"credential.*.helper", Danger, "git fetch and push run it", isHelper},
	{"include.path", Danger, "git takes more settings from that file", nil},
	{"includeif.*.path", Danger, "git takes more settings from that file", nil},
	{"remote.*.uploadpack", Danger, "git fetch runs it", isPlain("git-upload-pack")},
	{"remote.*.receivepack", Danger, "git push runs it", isPlain("git-receive-pack")},
	{"remote.*.vcs", Danger, "git fetch and push run git-remote-NAME", nil},
	{"remote.*.url", Danger, "git fetch runs what this url names", func(v string) bool { return !oddURL(v) }},
	{"remote.*.pushurl", Danger, "git push runs what this url names", func(v string) bool { return !oddURL(v) }},
	{"branch.*.remote", Danger, "git pull runs what this url names", func(v string) bool { return !oddURL(v) }},
	{"branch.*.pushremote", Danger, "git push runs what this url names", func(v string) bool { return !oddURL(v) }},
	{"submodule.*.url", Danger, "git submodule update runs what this url names", func(v string) bool { return !oddURL(v) }},
	{"submodule.*.update", Danger, "git submodule update runs it", func(v string) bool { return !strings.HasPrefix(v, "!") }},
	{"url.*.insteadof", Warning, "git fetches from elsewhere than the url says", nil},
	{"url.*.pushinsteadof", Warning, "git pushes to elsewhere than the url says", nil},
	{"protocol.allow", Warning, "git lets urls run programs", isOneOf("never", "user")},
	{"protocol.ext.allow", Danger, "git lets urls run programs", isOneOf("never")},
	{"http.proxy", Warning, "git fetch and push go through it", isOneOf("")},
	{"http.*.proxy", Warning, "git fetch and push go through it", isOneOf("")},
	{"remote.*.proxy", Warning, "git fetch and push go through it", isOneOf("")},
	{"http.sslverify", Warning, "git no longer checks who answers", isOneOf("true", "1", "yes", "on")},
	{"http.*.sslverify", Warning, "git no longer checks who answers", isOneOf("true", "1", "yes", "on")},
	{"http.sslcainfo", Warning, "git trusts other authorities", nil},
	{"http.*.sslcainfo", Warning, "git trusts other authorities", nil},
	{"uploadpack.packobjectshook", Danger, "git runs it when others fetch", nil},
	{"gc.recentobjectshook", Danger, "git gc runs it", nil},
	{"hook.*.command", Danger, "git runs it as a hook", nil},
	{"trailer.*.command", Danger, "git commit runs it", nil},
	{"trailer.*.cmd", Danger, "git commit runs it", nil},
	{"sendemail.smtpserver", Danger, "git send-email runs it", func(v string) bool { return !strings.HasPrefix(v, "/") }},
	{"imap.tunnel", Danger, "git imap-send runs it", nil},
	{"browser.*.path", Danger, "git help and web--browse run it", nil},
	{"man.*.path", Danger, "git help runs it", nil},
	{"lfs.customtransfer.*.path", Danger, "git lfs runs it", nil},
	{"lfs.extension.*.clean", Danger, "git lfs runs it", nil},
	{"lfs.extension.*.smudge", Danger, "git lfs runs it", nil},
	{"fetch.bundleuri", Warning, "git fetch takes objects from there", nil},
}

// runs are the endings of names whose value is a program in git and in what
// comes with it: what a later version of git knows is not missed.
var runs = regexp.MustCompile(`(cmd|command|program|editor|pager|helper|hook|hookspath|textconv|driver|askpass|tunnel|process|clean|smudge)$`)

// dangerOf says what a setting does on the host, or ok false for nothing.
func dangerOf(s setting) (severity Severity, why string, ok bool) {
	value := s.value
	if s.bare {
		value = "true"
	}
	known := false
	for _, p := range programs {
		if !matchKey(p.key, s) {
			continue
		}
		known = true
		if p.harmless != nil && p.harmless(value) {
			continue
		}
		if !ok || p.severity > severity {
			severity, why, ok = p.severity, p.why, true
		}
	}
	if !known && s.section != "user" && runs.MatchString(s.name) && !isBool(value) {
		return Danger, "git, or a part of it, runs it", true
	}
	return severity, why, ok
}

// matchKey matches SECTION.NAME, SECTION.*.NAME, and SECTION.*, which any
// name and subsection of the section matches.
func matchKey(pattern string, s setting) bool {
	section, rest, _ := strings.Cut(pattern, ".")
	if section != s.section {
		return false
	}
	if rest == "*" {
		return true
	}
	i := strings.LastIndexByte(rest, '.')
	if i < 0 {
		return s.sub == "" && rest == s.name
	}
	sub, name := rest[:i], rest[i+1:]
	if name != s.name {
		return false
	}
	if p, ok := strings.CutSuffix(sub, "*"); ok {
		return strings.HasPrefix(s.sub, p) && s.sub != ""
	}
	return sub == s.sub
}

func isOneOf(values ...string) func(string) bool {
	return func(v string) bool {
		for _, w := range values {
			if strings.EqualFold(v, w) {
				return true
			}
		}
		return false
	}
}

var isBool = isOneOf("true", "false", "yes", "no", "on", "off", "1", "0", "")

func isPlain(name string) func(string) bool { return func(v string) bool { return v == name } }

var isPlainGPG = isOneOf("gpg", "gpg2", "gpgsm", "ssh-keygen")

var isPager = isOneOf("", "cat", "less")

// isHelper knows the helpers of git's own that only ask or keep.
var isHelper = isOneOf("", "cache", "store", "libsecret", "osxkeychain", "manager", "manager-core", "wincred")

// oddURL tells whether a url makes git run something, or could.
func oddURL(u string) bool {
	switch {
	case strings.HasPrefix(u, "-"), strings.ContainsAny(u, "\n\r\x00"):
		return true
	case strings.Contains(u, "::"):
		// helper::address runs git-remote-helper; [::1] is an address.
		helper, _, _ := strings.Cut(u, "::")
		return !strings.ContainsAny(helper, ":/[@")
	case strings.Contains(u, "://-"):
		return true // a host that ssh takes as an option
	}
	host, _, scp := strings.Cut(u, ":")
	return scp && strings.Contains(host, "@-")
}

// secretValue is a url with a password, or with what may be a token.
var (
	secretValue = regexp.MustCompile(`(?i)://[^/@\s]*:[^/@\s]+@|https?://[^/@\s]+@`)
	secretKey   = regexp.MustCompile(`(?i)^http\.(.*\.)?extraheader$|pass$|password$|token$|secret$`)
)

// credential tells whether a setting holds a secret that a sandbox which sees
// the file can read.
func credential(s setting) bool {
	return secretKey.MatchString(s.key()) && !isBool(s.value) || secretValue.MatchString(s.value) || secretValue.MatchString(s.sub)
}
