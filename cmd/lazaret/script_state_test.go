package main

import (
	"archive/tar"
	"bytes"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/rogpeppe/go-internal/testscript"

	"lazaret/image"
)

// cmdPushLinked pushes lazaret's own shell image with symlinks in it.
//
//	push-linked REF PATH=TARGET...
func cmdPushLinked(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "push-linked")
	img, err := image.Shell("linux/amd64")
	ts.Check(err)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, a := range args[1:] {
		path, to, _ := strings.Cut(a, "=")
		ts.Check(w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: path, Linkname: to, Mode: 0o777}))
	}
	ts.Check(w.Close())
	img, err = mutate.AppendLayers(img, static.NewLayer(b.Bytes(), types.OCIUncompressedLayer))
	ts.Check(err)
	ref, err := name.ParseReference(args[0])
	ts.Check(err)
	ts.Check(remote.Write(ref, img))
}

// cmdEvilArchive writes an archive of state whose entries are files of those
// names; the first of them is a link where a flag says so.
//
//	evil-archive FILE [-link=TARGET] [-hard=TARGET] NAME...
func cmdEvilArchive(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "evil-archive")
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(h tar.Header, text string) {
		h.Mode, h.Size = 0o755, int64(len(text))
		ts.Check(w.WriteHeader(&h))
		_, err := w.Write([]byte(text))
		ts.Check(err)
	}
	put(tar.Header{Name: "lazaret-state.json"}, `{"version":1,"layers":{"root":{"path":"/root","driver":"native"}}}`)
	put(tar.Header{Name: "root/", Typeflag: tar.TypeDir}, "")
	link := tar.Header{}
	for _, a := range args[1:] {
		if to, ok := strings.CutPrefix(a, "-link="); ok {
			link = tar.Header{Typeflag: tar.TypeSymlink, Linkname: to}
			continue
		}
		if to, ok := strings.CutPrefix(a, "-hard="); ok {
			link = tar.Header{Typeflag: tar.TypeLink, Linkname: to}
			continue
		}
		if link.Typeflag != 0 {
			link.Name = a
			put(link, "")
			link = tar.Header{}
			continue
		}
		put(tar.Header{Name: a, Typeflag: tar.TypeReg}, "planted")
	}
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o600))
}
