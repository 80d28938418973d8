package gitshadow

import (
	"bytes"
	"fmt"
	"testing"
)

// BenchmarkPlan plans a repository with a hundred nested ones.
func BenchmarkPlan(b *testing.B) {
	r := Repo{Kind: Dir, GitDir: "/ws/.git", CommonDir: "/ws/.git", Head: "refs/heads/main", HeadID: fmt.Sprintf("%040d", 1), ObjectFormat: "sha1", RefFormat: "files"}
	for i := range 100 {
		n := r
		n.Path = fmt.Sprintf("vendor/lib%02d", i)
		n.GitDir = "/ws/" + n.Path + "/.git"
		n.CommonDir = n.GitDir
		r.Nested = append(r.Nested, n)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Plan(r, Wish{Profile: "agent", Mode: Quarantine, Branch: "auto", Size: 1 << 20}, "/s/0123456789ab", "/at"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPackedRefs reads what a sandbox's gc leaves in a large repository,
// as the broker does each second.
func BenchmarkPackedRefs(b *testing.B) {
	text := []byte("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range 100_000 {
		text = fmt.Appendf(text, "%040x refs/heads/many/%d\n", i+1, i)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if refs, _, err := parsePacked(text, "sha1", 100_000); err != nil || len(refs) != 100_000 {
			b.Fatal(err)
		}
	}
}

func BenchmarkWritePacked(b *testing.B) {
	var list []ref
	for i := range 100_000 {
		list = append(list, ref{name: fmt.Sprintf("refs/heads/many/%06d", i), id: fmt.Sprintf("%040x", i+1)})
	}
	b.ReportAllocs()
	for b.Loop() {
		var out bytes.Buffer
		if err := writePacked(&out, list, true); err != nil {
			b.Fatal(err)
		}
	}
}
