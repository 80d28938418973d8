package gitshadow

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// show writes text that a repository chose so that none of it acts on a
// terminal or passes for words of lazaret's.
func show(s string) string { return strconv.Quote(s) }

// readHead reads what is checked out.
func (r *Repo) readHead() error {
	text, err := readFile(filepath.Join(r.GitDir, "HEAD"), smallFile)
	if err != nil {
		return err
	}
	text = strings.TrimRight(text, " \t\r\n")
	name, symbolic := strings.CutPrefix(text, "ref:")
	if !symbolic {
		if !isID(text, r.ObjectFormat) {
			return refuse("\"git status\" says what git makes of it"+withoutGit, show(r.GitDir)+"/HEAD names no branch and no commit")
		}
		r.Detached, r.HeadID = true, text
		return nil
	}
	name = strings.TrimLeft(name, " \t")
	if !strings.HasPrefix(name, "refs/heads/") || !cleanRef(name) {
		return refuse("check out a branch"+withoutGit, show(r.GitDir)+"/HEAD is "+show(name)+", which is no branch")
	}
	r.Head = name
	r.HeadID, err = r.readRef(name)
	r.Unborn = err == nil && r.HeadID == ""
	return err
}

// isID tells whether s is an object's id in the format.
func isID(s, format string) bool {
	if len(s) != hexLen(format) {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// cleanRef tells whether a full ref name can be a path below the common
// directory: stricter than git in what it takes, so that no reading of files
// goes anywhere else.
func cleanRef(name string) bool {
	if !strings.HasPrefix(name, "refs/") || filepath.Clean(name) != name {
		return false
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c == 0x7f || strings.IndexByte(`~^:?*[\`, c) >= 0 {
			return false
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.Contains(name, "..") && !strings.Contains(name, "@{") && !strings.HasSuffix(name, ".")
}

// readRef gives the id that a branch or tag has, "" where there is none.
func (r *Repo) readRef(name string) (string, error) {
	for range 5 {
		text, err := readFile(filepath.Join(r.CommonDir, name), smallFile)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || isDir(filepath.Join(r.CommonDir, name)) {
				return r.packedRef(name)
			}
			return "", err
		}
		text = strings.TrimRight(text, " \t\r\n")
		to, symbolic := strings.CutPrefix(text, "ref:")
		if !symbolic {
			if !isID(text, r.ObjectFormat) {
				return "", refuse("\"git fsck\" says what git makes of it"+withoutGit, "the ref "+show(name)+" holds no commit")
			}
			return text, nil
		}
		if name = strings.TrimSpace(to); !cleanRef(name) {
			break
		}
	}
	return "", refuse("\"git symbolic-ref\" shows where it leads"+withoutGit, "the ref "+show(name)+" leads nowhere")
}

func (r *Repo) packedRef(name string) (string, error) {
	text, err := readFile(filepath.Join(r.CommonDir, "packed-refs"), packedMax)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	n := hexLen(r.ObjectFormat)
	for line := range strings.Lines(text) {
		if len(line) > n+1 && line[n] == ' ' && strings.TrimRight(line[n+1:], "\r\n") == name && isID(line[:n], r.ObjectFormat) {
			return line[:n], nil
		}
	}
	return "", nil
}
