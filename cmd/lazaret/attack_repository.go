package main

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// makeRepository writes a git repository with one commit of files at its top.
// It needs no git: what the attacks meet is the same on every machine.
func makeRepository(dir string, files map[string]string) error {
	put := func(kind string, data []byte) ([]byte, error) {
		whole := append(fmt.Appendf(nil, "%s %d\x00", kind, len(data)), data...)
		sum := sha1.Sum(whole)
		name := hex.EncodeToString(sum[:])
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		z.Write(whole)
		z.Close()
		return sum[:], writeBelow(dir, filepath.Join("objects", name[:2], name[2:]), b.Bytes(), 0o444)
	}
	var tree []byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		blob, err := put("blob", []byte(files[name]))
		if err != nil {
			return err
		}
		tree = append(append(tree, "100644 "+name+"\x00"...), blob...)
	}
	top, err := put("tree", tree)
	if err != nil {
		return err
	}
	const who = "Dev <dev@example.com> 1577836800 +0000"
	commit, err := put("commit", fmt.Appendf(nil, "tree %x\nauthor %s\ncommitter %s\n\nfirst\n", top, who, who))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"HEAD":               "ref: refs/heads/main\n",
		"config":             "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n[user]\n\tname = Dev\n\temail = dev@example.com\n",
		"refs/heads/main":    hex.EncodeToString(commit) + "\n",
		"refs/heads/side":    hex.EncodeToString(commit) + "\n",
		"refs/tags/v1":       hex.EncodeToString(commit) + "\n",
		"hooks/pre-commit":   "#!/bin/sh\n",
		"info/exclude":       "# nothing\n",
		"objects/info/packs": "",
	} {
		if err := writeBelow(dir, name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
