package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"lazaret/image"
)

// cmdOtherbuild makes DIR/lazaret a lazaret that was built differently: its
// helper programs differ from this one's in one byte, in the padding of their
// headers, and work the same.
//
//	otherbuild DIR
func cmdOtherbuild(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "otherbuild")
	if len(args) != 1 {
		ts.Fatalf("usage: otherbuild DIR")
	}
	program, err := os.ReadFile("/proc/self/exe")
	ts.Check(err)
	for _, name := range []string{image.SidecarName, image.EscalateName} {
		for _, platform := range image.Platforms() {
			b, err := image.Binary(name, platform)
			ts.Check(err)
			at := bytes.Index(program, b)
			if at < 0 {
				ts.Fatalf("this program does not hold %s for %s in one piece", name, platform)
			}
			other := bytes.Clone(b)
			const padding = 15 // the last byte of e_ident
			other[padding] = 1
			copy(program[at:], other)
			was, is := []byte(fmt.Sprintf("%x  %s", sha256.Sum256(b), name)), []byte(fmt.Sprintf("%x  %s", sha256.Sum256(other), name))
			if bytes.Count(program, was) != 1 {
				ts.Fatalf("this program lists %s for %s more than once", name, platform)
			}
			program = bytes.Replace(program, was, is, 1)
		}
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(os.WriteFile(filepath.Join(dir, "lazaret"), program, 0o755))
}

// cmdReadvar puts what a file holds into a variable.
//
//	readvar VAR FILE
func cmdReadvar(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "readvar")
	if len(args) != 2 {
		ts.Fatalf("usage: readvar VAR FILE")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}
