package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// File is one entry of an assembled image.
type File struct {
	Path string      // absolute and clean
	Mode fs.FileMode // permissions, with fs.ModeSticky and fs.ModeDir where they apply
	Data []byte      // a regular file's content
	Link string      // if set, the Path of another File, of which this is a hard link
}

const tarBlock = 512

// layerTar packs files as the one tar there is of them: parents made, sorted,
// links after what they name, owned by root, at the epoch.
func layerTar(files []File) ([]byte, error) {
	all := make(map[string]File)
	for _, f := range files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" {
			return nil, fmt.Errorf("packing %q: the path is not absolute and clean", f.Path)
		}
		if _, twice := all[f.Path]; twice {
			return nil, fmt.Errorf("packing %q: it is there twice", f.Path)
		}
		all[f.Path] = f
	}
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
			if parent, ok := all[dir]; !ok {
				all[dir] = File{Path: dir, Mode: fs.ModeDir | 0o755}
			} else if !parent.Mode.IsDir() {
				return nil, fmt.Errorf("packing %q: %s is not a directory", f.Path, dir)
			}
		}
	}
	sorted := make([]File, 0, len(all))
	for _, f := range all {
		sorted = append(sorted, f)
	}
	rank := func(f File) int { return min(len(f.Link), 1) }
	slices.SortFunc(sorted, func(a, b File) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Path, b.Path))
	})
	size := 2 * tarBlock // the end
	for _, f := range sorted {
		size += tarBlock + (len(f.Data)+tarBlock-1)/tarBlock*tarBlock
	}
	// Growing by itself, the buffer would be copied and cleared over and over.
	var buf bytes.Buffer
	buf.Grow(size)
	w := tar.NewWriter(&buf)
	for _, f := range sorted {
		if err := writeEntry(w, f, all); err != nil {
			return nil, fmt.Errorf("packing %q: %w", f.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func writeEntry(w *tar.Writer, f File, all map[string]File) error {
	h := &tar.Header{
		Format:   tar.FormatUSTAR,
		Typeflag: tar.TypeReg,
		Name:     strings.TrimPrefix(f.Path, "/"),
		Mode:     int64(f.Mode.Perm()),
		Size:     int64(len(f.Data)),
		ModTime:  time.Unix(0, 0),
	}
	if f.Mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch {
	case f.Mode.IsDir():
		h.Typeflag, h.Name, h.Size = tar.TypeDir, h.Name+"/", 0
	case f.Link != "":
		target, ok := all[f.Link]
		if !ok || target.Link != "" || target.Mode.IsDir() {
			return fmt.Errorf("its link %q names no file", f.Link)
		}
		h.Typeflag, h.Linkname, h.Size, h.Mode = tar.TypeLink, strings.TrimPrefix(f.Link, "/"), 0, int64(target.Mode.Perm())
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	if h.Size == 0 {
		return nil
	}
	_, err := w.Write(f.Data)
	return err
}
