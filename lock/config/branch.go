package config

import "strings"

// checkBranch takes "auto", "" or a name that git takes for a new branch: the
// rules of git check-ref-format --branch, and no name that means something
// else to git (HEAD) or looks like a full reference.
func checkBranch(s string) error {
	if s == "" || s == "auto" {
		return nil
	}
	bad := func(why string) error {
		return errorf(`write "auto", "" or a branch name`, "%s is not a branch name: it %s", quote(s), why)
	}
	switch {
	case s == "@" || s == "HEAD":
		return bad("means something else to git")
	case strings.HasPrefix(s, "-"):
		return bad("starts with -")
	case strings.HasPrefix(s, "refs/"):
		short := strings.TrimPrefix(s, "refs/heads/")
		return errorf("write "+quote(short), "%s is a full reference, not a branch name", quote(s))
	case strings.HasPrefix(s, "/") || strings.HasSuffix(s, "/") || strings.Contains(s, "//"):
		return bad("has an empty part")
	case strings.HasSuffix(s, "."):
		return bad("ends in a dot")
	case strings.Contains(s, ".."):
		return bad("holds ..")
	case strings.Contains(s, "@{"):
		return bad("holds @{")
	case strings.ContainsAny(s, " ~^:?*[\\") || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return bad(`holds a space or one of ~ ^ : ? * [ \`)
	}
	for part := range strings.SplitSeq(s, "/") {
		switch {
		case strings.HasPrefix(part, "."):
			return bad("has a part that starts with a dot")
		case strings.HasSuffix(part, ".lock"):
			return bad("has a part that ends in .lock")
		}
	}
	return nil
}
