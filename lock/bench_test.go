package lock

import (
	"fmt"
	"testing"
)

// manyRanges is a lock with a hundred thousand denied ranges.
func manyRanges(b *testing.B) *File {
	f := richFile(b)
	for name, p := range f.Profiles {
		p.Network.Deny = nil
		for i := range 100_000 {
			p.Network.Deny = append(p.Network.Deny, fmt.Sprintf("16.%d.%d.%d/28", i>>12, i>>4&255, i<<4&255))
		}
		f.Profiles[name] = p
		break
	}
	return f
}

func BenchmarkFormat(b *testing.B) {
	f := richFile(b)
	b.ReportAllocs()
	for b.Loop() {
		f.Format()
	}
}

func BenchmarkParse(b *testing.B) {
	for name, f := range map[string]*File{"rich": richFile(b), "ranges": manyRanges(b)} {
		text := f.Format()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStale compares two lists of a hundred thousand, of which one has an
// element more.
func BenchmarkStale(b *testing.B) {
	old, fresh := manyRanges(b), manyRanges(b)
	for name, p := range fresh.Profiles {
		p.Network.Deny = append(p.Network.Deny, "17.0.0.0/8")
		fresh.Profiles[name] = p
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(Stale(old, fresh)) == 0 {
			b.Fatal("nothing differs")
		}
	}
}

func BenchmarkDiff(b *testing.B) {
	for name, f := range map[string]*File{"rich": richFile(b), "ranges": manyRanges(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Diff(nil, f)
			}
		})
	}
}
