package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// treeDepth is how deep lazaret's own trees are: an image layout below a run
// directory has layout/blobs/sha256/file.
const treeDepth = 5

// removeTree removes base/name, a tree that lazaret itself made. It follows no
// link, does not leave the file system it starts on, and goes no deeper than
// lazaret's own trees are, so that whatever was put there instead is not
// removed with it.
func removeTree(base, name string) error {
	root, err := os.OpenRoot(base + "/")
	if err != nil {
		return err
	}
	defer root.Close()
	fi, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return removeBelow(root, name, device(fi), treeDepth)
}

func removeBelow(root *os.Root, name string, dev uint64, depth int) error {
	fi, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if device(fi) != dev {
		return fmt.Errorf("removing %s: something is mounted there", name)
	}
	if !fi.IsDir() {
		return root.Remove(name)
	}
	if depth == 0 {
		return fmt.Errorf("removing %s: deeper than anything lazaret makes", name)
	}
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	d.Close()
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range names {
		errs = append(errs, removeBelow(root, name+"/"+n, dev, depth-1))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return root.Remove(name)
}

func device(fi fs.FileInfo) uint64 { return fi.Sys().(*syscall.Stat_t).Dev }
