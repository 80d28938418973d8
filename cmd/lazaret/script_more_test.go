package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdMksocket leaves a socket that nobody listens on any more.
//
//	mksocket PATH
func cmdMksocket(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "mksocket")
	if len(args) != 1 {
		ts.Fatalf("usage: mksocket PATH")
	}
	// A socket's path is short; a script's directory is not.
	dir, err := os.MkdirTemp("", "s")
	ts.Check(err)
	defer os.RemoveAll(dir)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	ts.Check(err)
	l.SetUnlinkOnClose(false)
	ts.Check(l.Close())
	ts.Check(os.Rename(filepath.Join(dir, "s"), ts.MkAbs(args[0])))
}

// cmdUnblob deletes a blob of a registry, as one that lost its storage.
//
//	unblob REGISTRY/REPOSITORY DIGEST
func cmdUnblob(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "unblob")
	if len(args) != 2 {
		ts.Fatalf("usage: unblob REGISTRY/REPOSITORY DIGEST")
	}
	repo := reference(ts, args[0]).Context()
	req, err := http.NewRequest("DELETE", "http://"+repo.RegistryStr()+"/v2/"+repo.RepositoryStr()+"/blobs/"+args[1], nil)
	ts.Check(err)
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		ts.Fatalf("deleting the blob: %s", resp.Status)
	}
}
