package guard

import (
	"net/url"
	"unicode/utf8"
)

// Name is a path or text of a sandbox's choosing: any bytes. JSON can hold
// valid UTF-8 only, so that others are written as in a URL, behind a prefix.
type Name string

const nameEscape = "bytes:"

// MarshalText writes the name so that UnmarshalText gives the same bytes.
func (n Name) MarshalText() ([]byte, error) {
	s := string(n)
	if !utf8.ValidString(s) || len(s) >= len(nameEscape) && s[:len(nameEscape)] == nameEscape {
		return []byte(nameEscape + url.PathEscape(s)), nil
	}
	return []byte(s), nil
}

// UnmarshalText reads what MarshalText wrote.
func (n *Name) UnmarshalText(b []byte) error {
	s := string(b)
	if len(s) >= len(nameEscape) && s[:len(nameEscape)] == nameEscape {
		u, err := url.PathUnescape(s[len(nameEscape):])
		if err != nil {
			return err
		}
		s = u
	}
	*n = Name(s)
	return nil
}
