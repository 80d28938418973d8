package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzResponse: what a sandbox takes for its host's answer does not contradict
// itself, and any output comes through as it was.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(`{"status":"approved","approved":true,"exit_code":0,"stdout":"x"}`), []byte("out"), []byte("\xff"))
	f.Add([]byte(`{"status":"denied","approved":true}`), []byte(nil), []byte("\u2028"))
	f.Add([]byte(`{"status":"timeout"}{`), []byte("\x00"), []byte("<&>"))
	f.Fuzz(func(t *testing.T, line, out, errs []byte) {
		if r, err := readResponse(bytes.NewReader(append(line, '\n'))); err == nil {
			if ran := r.Status == Approved || r.Status == Edited; r.Approved != ran || ran && r.ExitCode == nil {
				t.Fatalf("%q: %+v", line, r)
			}
			r.Output()
		}
		zero := 0
		r := Response{RequestID: "r", Status: Approved, Approved: true, ExitCode: &zero}
		r.SetOutput(out, errs)
		b, err := json.Marshal(r)
		if err != nil || bytes.ContainsRune(b, '\n') {
			t.Fatalf("%q, %v", b, err)
		}
		back, err := readResponse(strings.NewReader(string(b) + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if o, e, err := back.Output(); err != nil || !bytes.Equal(o, out) || !bytes.Equal(e, errs) {
			t.Fatalf("%q %q arrive as %q %q, %v", out, errs, o, e, err)
		}
	})
}
