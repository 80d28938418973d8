package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lazaret/escalate/wire"
	"lazaret/internal/step"
	"lazaret/lock/config"
)

// EscalateClient shows the program with which the sandbox asks, in a directory
// of the run's own, for every user in the sandbox to run. The program itself
// stays where it was verified: a copy in memory for each sandbox is as large as
// all else that lazaret holds there.
type EscalateClient struct {
	From string
	Dir  string
}

// Do mounts the program under its own name.
func (o EscalateClient) Do(ctx context.Context, in step.Values) (step.Values, error) {
	if err := os.Mkdir(o.Dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(o.Dir, 0o755); err != nil { // whatever the umask
		return nil, err
	}
	return Bind{Source: o.From, Target: filepath.Join(o.Dir, wire.ClientName)}.Do(ctx, in)
}

// Show gives the command that would do the same.
func (o EscalateClient) Show() []string {
	return []string{"mount --bind " + shown(o.From, filepath.Join(o.Dir, wire.ClientName))}
}

// EmptyDir makes the directory that commands run in which nobody is asked
// about. It stays empty: not even its owner can make a file in it.
type EmptyDir struct{ Path string }

// Do makes the directory.
func (o EmptyDir) Do(context.Context, step.Values) (step.Values, error) {
	return nil, os.Mkdir(o.Path, 0o500)
}

// Show gives the command that would do the same.
func (o EmptyDir) Show() []string { return []string{"mkdir -m 0500 " + shown(o.Path)} }

// ListenEscalate opens the socket on which the sandbox asks.
type ListenEscalate struct {
	Path string

	escalation *escalation
}

// Do makes the socket's directory private, or refuses one that is not, and
// answers on the socket until the sandbox's command has ended.
func (o ListenEscalate) Do(context.Context, step.Values) (step.Values, error) {
	if err := o.escalation.failed; err != nil {
		return nil, err
	}
	dir := filepath.Dir(o.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	fd, err := openPrivate(dir)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: o.Path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // that is the undo's, on every way out
	// The directory keeps others out. Inside, not only root may ask.
	if err := os.Chmod(o.Path, 0o666); err != nil {
		l.Close()
		return nil, err
	}
	o.escalation.daemon.Serve(l)
	return nil, nil
}

// Show names the socket.
func (o ListenEscalate) Show() []string { return []string{"listen on " + shown(o.Path)} }

// openPrivate opens a directory that must be ours alone.
func openPrivate(dir string) (fd int, err error) {
	fd, err = unix.Openat2(unix.AT_FDCWD, dir, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, fmt.Errorf("opening %s: %w", config.Show(dir), err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, err
	}
	if int(st.Uid) != os.Getuid() || st.Mode&0o077 != 0 {
		unix.Close(fd)
		return -1, refuse("chmod 700 it, or choose another escalation.socket_dir",
			"escalation.socket_dir: %s is not a directory that only you can use", config.Show(dir))
	}
	return fd, nil
}

// socketName is the name of a run's socket in socket_dir.
func (r Record) socketName() string { return r.Profile + "-" + r.ID + ".sock" }

// removeSocket removes a run's own socket from a directory that is ours alone.
// Anything else under that name stays.
func (u *undoer) removeSocket(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || filepath.Base(path) != u.record.socketName() {
		return fmt.Errorf("refusing to remove %q, which is not this run's socket", path)
	}
	fd, err := openPrivate(filepath.Dir(path))
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstatat(fd, u.record.socketName(), &st, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK || int(st.Uid) != os.Getuid() {
		return nil // gone, or not what was made
	}
	if err := unix.Unlinkat(fd, u.record.socketName(), 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// Certificates puts what the sandbox proves itself with into memory that only
// the helper's mounts have. It goes with the helper, whatever happens.
type Certificates struct {
	Target string
	Renew  bool // it is mounted, the files are replaced

	escalation *escalation
}

// certValue is the Value that holds one of the files.
func certValue(name string) string { return "escalate." + name }

var certFiles = []string{wire.CAFile, wire.CertFile, wire.KeyFile}

// values are what only this operation shall know.
func (o Certificates) values() (step.Values, error) {
	files, err := o.escalation.daemon.Credentials()
	if err != nil {
		return nil, err
	}
	out := step.Values{}
	for name, text := range files {
		out[certValue(name)] = text
	}
	return out, nil
}

// Do mounts the memory and writes the files, for every user in the sandbox to
// read: the run's directory keeps those of the host out.
func (o Certificates) Do(_ context.Context, in step.Values) (step.Values, error) {
	if !o.Renew {
		if err := os.Mkdir(o.Target, 0o700); err != nil {
			return nil, err
		}
		if err := unix.Mount("lazaret-certs", o.Target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=256k,nr_inodes=32,mode=0755"); err != nil {
			return nil, fmt.Errorf("mounting memory for the certificates: %w", err)
		}
	}
	for _, name := range certFiles {
		// A whole file takes the place of the old one, whoever reads it.
		tmp := filepath.Join(o.Target, "."+name)
		if err := os.WriteFile(tmp, []byte(in[certValue(name)]), 0o444); err != nil {
			return nil, err
		}
		if err := os.Chmod(tmp, 0o444); err != nil {
			return nil, err
		}
		if err := os.Rename(tmp, filepath.Join(o.Target, name)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Show gives the command and names the files.
func (o Certificates) Show() []string {
	return []string{"mount -t tmpfs -o size=256k lazaret-certs " + shown(o.Target), "write " + strings.Join(certFiles, " ") + " there"}
}
