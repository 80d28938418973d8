package gitshadow

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// linksFrom bounds a commit, tag or tree, in bytes: these are read whole.
const linksFrom = 64 << 20

// loose copies one object that is a file of its own, having checked that it is
// what its name says, and returns what it leads to. None is fs.ErrNotExist.
func (s *staging) loose(store *beneath, id string) (links []string, err error) {
	name := "objects/" + id[:2] + "/" + id[2:]
	in, fi, err := store.regular(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if s.size += fi.Size(); s.size > bytesMost {
		return nil, errors.New("it has more bytes than lazaret takes at once")
	}
	to := filepath.Join(s.git.GitDir, name)
	if err := os.Mkdir(filepath.Dir(to), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	// What is checked is what is written, whatever the file holds a moment later.
	links, err = readObject(io.TeeReader(io.LimitReader(in, bytesMost), out), id, s.repo.ObjectFormat)
	if err = errors.Join(err, out.Close()); err != nil {
		os.Remove(to)
		return nil, fmt.Errorf("object %s: %w", id, err)
	}
	return links, nil
}

// readObject reads an object as git stores it, checks that it is the one with
// that id and returns what it leads to.
func readObject(r io.Reader, id, format string) (links []string, err error) {
	packed := bufio.NewReader(r)
	z, err := zlib.NewReader(packed)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	plain := bufio.NewReader(z)
	head, err := plain.ReadSlice(0)
	if err != nil || len(head) > 32 {
		return nil, errors.New("it does not begin as an object does")
	}
	kind, digits, _ := strings.Cut(string(head[:len(head)-1]), " ")
	size, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != digits {
		return nil, errors.New("it does not begin as an object does")
	}
	if size > objectMost || kind != "blob" && size > linksFrom {
		return nil, fmt.Errorf("it has %d bytes, more than lazaret takes", size)
	}
	h := newHash(format)
	h.Write(head)
	var body bytes.Buffer
	into := io.Writer(h)
	if kind != "blob" {
		into = io.MultiWriter(h, &body)
	}
	n, err := io.Copy(into, io.LimitReader(plain, size+1))
	if err != nil {
		return nil, err
	}
	if n != size {
		return nil, errors.New("it has another size than it says")
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != id {
		return nil, fmt.Errorf("its content is that of %s", got)
	}
	if _, err := packed.ReadByte(); err != io.EOF {
		return nil, errors.New("something follows its end")
	}
	return objectLinks(kind, body.Bytes(), format)
}

func newHash(format string) hash.Hash {
	if format == "sha256" {
		return sha256.New()
	}
	return sha1.New()
}

var errObject = errors.New("it is not written as such an object is")

// objectLinks lists the objects that one leads to. Whether it is sound in all
// else is for git to say.
func objectLinks(kind string, body []byte, format string) (links []string, err error) {
	switch kind {
	case "blob":
		return nil, nil
	case "tree":
		return treeLinks(body, format)
	case "commit", "tag":
	default:
		return nil, errObject
	}
	for len(body) > 0 {
		line, rest, _ := bytes.Cut(body, []byte("\n"))
		body = rest
		word, id, _ := strings.Cut(string(line), " ")
		if word != "tree" && word != "parent" && word != "object" {
			break
		}
		if !isID(id, format) {
			return nil, errObject
		}
		links = append(links, id)
	}
	return links, nil
}

func treeLinks(body []byte, format string) (links []string, err error) {
	n := hexLen(format) / 2
	for len(body) > 0 {
		i := bytes.IndexByte(body, 0)
		if i < 0 || len(body) < i+1+n {
			return nil, errObject
		}
		mode, _, _ := strings.Cut(string(body[:i]), " ")
		if mode != "160000" { // a submodule's commit is in another repository
			links = append(links, hex.EncodeToString(body[i+1:i+1+n]))
		}
		body = body[i+1+n:]
	}
	return links, nil
}
