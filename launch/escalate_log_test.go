package launch

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lazaret/escalate"
)

// TestSaidIsWhole: an event tells of all that was approved: what it does not hold
// has a digest, and no argument can say that something is left out.
func TestSaidIsWhole(t *testing.T) {
	long := strings.Repeat("x", saidCommand)
	for _, tt := range []struct {
		argv []string
		kept int
		left string
	}{
		{[]string{"cat", "… 7 more", "2 more"}, 3, ""},
		{nil, 0, ""},
		{[]string{"cat", long, "a", "b"}, 2, "3"},
		{[]string{long, "a", "b"}, 1, "2"}, // there is not a byte left for the next
		{[]string{long[1:], "a", "b"}, 1, "2"},
		{[]string{long[1:], "", "b"}, 2, "1"},
		{[]string{long, "", ""}, 1, "2"},
		{[]string{long}, 1, ""},
	} {
		a, err := said(escalate.Entry{Kind: "decided", Status: "approved", Argv: tt.argv, InputSize: 3, InputSHA256: "abc"})
		var argv []string
		if err != nil || tt.argv != nil && json.Unmarshal([]byte(a["argv"]), &argv) != nil || len(argv) != tt.kept || a["left_out"] != tt.left {
			t.Errorf("%d arguments: %d, left out %q, %v", len(tt.argv), len(argv), a["left_out"], err)
		}
		sum := ""
		if tt.left != "" {
			sum = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(tt.argv, "\x00"))))
		}
		if a["argv_sha256"] != sum || a["input"] != "3" || a["input_sha256"] != "abc" {
			t.Errorf("%d arguments: %v", len(tt.argv), a)
		}
	}
}
