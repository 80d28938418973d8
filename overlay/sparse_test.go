package overlay

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// sparseEntries are a file of 8 EiB in a few kilobytes, in each form that a
// reader of archives fills up with zeros.
func sparseEntries(t *testing.T) map[string][]byte {
	t.Helper()
	const size = int64(1)<<62 + (1<<62 - 1)
	// raw is what the library writes no more: records before a file.
	raw := func(name, data string, records ...string) []byte {
		var pax strings.Builder
		for i := 0; i < len(records); i += 2 {
			line := fmt.Sprintf(" %s=%s\n", records[i], records[i+1])
			n := len(line)
			for len(fmt.Sprint(n))+len(line) != n {
				n = len(fmt.Sprint(n)) + len(line)
			}
			fmt.Fprintf(&pax, "%d%s", n, line)
		}
		return append(block(t, "usr/PaxHeaders/f", tar.TypeXHeader, pax.String()), block(t, name, tar.TypeReg, data)...)
	}
	pad := func(s string) string { return s + strings.Repeat("\x00", 512-len(s)) }
	return map[string][]byte{
		"0.0": raw("usr/f", "x", "GNU.sparse.size", fmt.Sprint(size), "GNU.sparse.numblocks", "1", "GNU.sparse.offset", fmt.Sprint(size-1), "GNU.sparse.numbytes", "1"),
		"0.1": raw("usr/f", "x", "GNU.sparse.size", fmt.Sprint(size), "GNU.sparse.numblocks", "1", "GNU.sparse.map", fmt.Sprintf("%d,1", size-1), "GNU.sparse.name", "usr/f"),
		"1.0": raw("usr/f", pad(fmt.Sprintf("1\n%d\n1\n", size-1))+"x",
			"GNU.sparse.major", "1", "GNU.sparse.minor", "0", "GNU.sparse.name", "usr/f", "GNU.sparse.realsize", fmt.Sprint(size)),
	}
}

// block is an entry as it lies in an archive.
func block(t *testing.T, name string, kind byte, data string) []byte {
	t.Helper()
	h := make([]byte, 512)
	copy(h, name)
	copy(h[100:], "0000644\x000000000\x000000000\x00")
	copy(h[124:], fmt.Sprintf("%011o\x0000000000000\x00        ", len(data)))
	h[156] = kind
	copy(h[257:], "ustar\x0000")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	h = append(h, data...)
	return append(h, make([]byte, (512-len(data)%512)%512)...)
}

// A file of exabytes in a few kilobytes keeps no import busy.
func TestImportOfHoles(t *testing.T) {
	for form, data := range sparseEntries(t) {
		data = append(data, make([]byte, 1024)...)
		if h, err := tar.NewReader(bytes.NewReader(data)).Next(); err != nil || h.Size < 1<<62 {
			t.Fatalf("%s: the test's archive is %+v, %v", form, h, err)
		}
		dir, done := t.TempDir(), make(chan error, 1)
		go func() { done <- unpack(t, dir, data) }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "holes that are not written out") {
				t.Errorf("%s: %v", form, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: it is still read", form)
		}
	}
}
