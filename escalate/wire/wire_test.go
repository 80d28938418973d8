package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	shellquote "github.com/kballard/go-shellquote"
)

// TestQuote: the host reads back what was quoted, and nothing in the quoting by
// itself keeps a command from running unasked.
func TestQuote(t *testing.T) {
	for _, argv := range [][]string{
		{"aws", "sts", "get-caller-identity", "--query", "Account"}, {"a b", ""}, {"it's", `"`, `\`, "$x", "`", "!", "~", "#", "*"},
		{"\n", "\t", "é", "\u202e"}, {"-", "--", "=", "'"},
	} {
		q := Quote(argv)
		got, err := shellquote.Split(q)
		if err != nil || !slices.Equal(got, argv) {
			t.Errorf("%q is %s, read back as %q, %v", argv, q, got, err)
		}
	}
	if q := Quote([]string{"x", "a b", "it's"}); strings.Contains(q, `\`) {
		t.Errorf("%s holds a backslash", q)
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("a", "b c", "it's")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		argv := []string{a, b, c}
		if got, err := shellquote.Split(Quote(argv)); err != nil || !slices.Equal(got, argv) {
			t.Errorf("%q: %q, %v", argv, got, err)
		}
	})
}

// FuzzParseRequest: what is taken for a request keeps every limit.
func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"request_id":"r","profile":"p","command":"true","justification":"","stdin":"eA=="}`))
	f.Add([]byte(`{"request_id":"r","command":"true"}{}`))
	f.Add([]byte(`{"Command":"x","command":"\ud800"}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := ParseRequest(line)
		if err != nil {
			return
		}
		if r.Check() != nil || strings.ContainsRune(r.Command, 0) || len(r.Command) > MaxCommand || len(r.Stdin) > MaxStdin {
			t.Errorf("%q: %+v", line, r)
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseRequest(b); err != nil || again.Command != r.Command || string(again.Stdin) != string(r.Stdin) {
			t.Errorf("%q is read back as %+v, %v", b, again, err)
		}
	})
}

// TestOutput: every output arrives as it was.
func TestOutput(t *testing.T) {
	for _, s := range []string{"", "text\n", "\x00\xff", "é", "\u2028"} {
		var r Response
		r.SetOutput([]byte(s), []byte("e"+s))
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back Response
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		out, errs, err := back.Output()
		if err != nil || string(out) != s || string(errs) != "e"+s {
			t.Errorf("%q: %q %q %v", s, out, errs, err)
		}
	}
}

// TestResponse: a host that contradicts itself is not believed.
func TestResponse(t *testing.T) {
	for line, ok := range map[string]bool{
		`{"status":"approved","approved":true,"exit_code":0}`: true,
		`{"status":"denied"}`:                               true,
		`{"status":"timeout"}`:                              true,
		`{"status":"approved","approved":true}`:             false,
		`{"status":"approved","exit_code":0}`:               false,
		`{"status":"denied","approved":true,"exit_code":0}`: false,
		`{"status":"fine"}`:                                 false,
		`{}`:                                                false,
		`nonsense`:                                          false,
	} {
		if _, err := readResponse(strings.NewReader(line + "\n")); (err == nil) != ok {
			t.Errorf("%s: %v", line, err)
		}
	}
}
