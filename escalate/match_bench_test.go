package escalate

import (
	"fmt"
	"testing"

	"lazaret/escalate/wire"
)

// BenchmarkDecide is what is decided about a request before anybody is asked,
// with a long whitelist.
func BenchmarkDecide(b *testing.B) {
	p := Policy{Banned: banned}
	for i := range 200 {
		p.AutoApprove = append(p.AutoApprove, []string{fmt.Sprint("program", i), "sub", "command"})
	}
	p.AutoApprove = append(p.AutoApprove, []string{"true"})
	l := NewLookup([]string{"/usr/bin"}, nil, "/usr/bin/lazaret")
	b.ReportAllocs()
	for b.Loop() {
		if d := Decide(p, l, "true --some 'argument here'", false); !d.Auto {
			b.Fatal(d)
		}
	}
}

func BenchmarkParseRequest(b *testing.B) {
	line := []byte(`{"request_id":"0123456789abcdef","profile":"agent","command":"gh pr create --title 'a title' --body 'some text'","justification":"the branch is ready"}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := wire.ParseRequest(line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkQuote(b *testing.B) {
	argv := []string{"gh", "pr", "create", "--title", "it's a title", "--body", "some text\nwith lines"}
	b.ReportAllocs()
	for b.Loop() {
		wire.Quote(argv)
	}
}
