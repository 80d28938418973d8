package config

import (
	"strings"

	"github.com/kballard/go-shellquote"
)

// metacharacters are what a shell would act on. lazaret never uses a shell, so
// an entry that holds one does not mean what it seems to.
const metacharacters = ";|&$()`<>\\"

// ParseCommand splits a command into its argument vector by the shell's rules
// of quoting. Metacharacters, also quoted ones, and characters that do not
// show are refused: what is approved without asking must be plain to read.
func ParseCommand(s string) ([]string, error) {
	const array = `write it without, or for a profile's command as an array: ["sh", "-c", "…"]`
	if i := strings.IndexAny(s, metacharacters); i >= 0 {
		return nil, errorf(array, "holds %s, and there is no shell to act on it", s[i:i+1])
	}
	if err := checkVisible(s, ""); err != nil {
		return nil, err
	}
	argv, err := shellquote.Split(s)
	switch {
	case err != nil:
		return nil, errorf("close it", "holds a quote that is not closed")
	case len(argv) == 0:
		return nil, errorf("", "is empty")
	case argv[0] == "":
		return nil, errorf("", "names no program")
	}
	return argv, nil
}

// approvable tells why argv may not be run without asking: an error with the
// reason, or nil. See Banned.
func approvable(argv []string) error {
	if reason, banned := Banned(argv); banned {
		return errorf("leave it to be asked for each time", "%s cannot be approved in advance: it %s", quote(argv[0]), reason)
	}
	return nil
}
