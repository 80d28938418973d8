package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"lazaret/escalate/wire"
)

// insideCommand begins the command lines of what runs in sandboxes and
// namespaces.
const insideCommand = "inside"

func inside(args []string) int {
	var err error
	switch {
	case len(args) == 1 && args[0] == "agent":
		err = obey(os.Stdin, os.Stdout)
	case len(args) == 2 && args[0] == "pour":
		err = pour(os.Stdout, args[1])
	case len(args) == 3 && args[0] == "lab":
		err = lab(args[1], args[2])
	default:
		err = fmt.Errorf("no such thing: %q", args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchtable inside:", err)
		return 1
	}
	return 0
}

// obey answers each line, a list of words, with what it measured.
func obey(in io.Reader, out io.Writer) error {
	d, e := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var words []string
		if err := d.Decode(&words); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var a answer
		var err error
		if a.Value, err = do(words[0], words[1:]); err != nil {
			a.Err = err.Error()
		}
		if err := e.Encode(a); err != nil {
			return err
		}
	}
}

func do(verb string, args []string) (float64, error) {
	switch verb {
	case "ping":
		return 0, nil
	case "run": // ARGV...: milliseconds
		return taking(func() error { return said(exec.Command(args[0], args[1:]...)) })
	case "ask": // COMMAND: milliseconds
		return ask(args[0])
	case "up", "down": // ADDRESS BYTES: MiB/s
		return transfer(verb, args[0], args[1])
	case "connect": // ADDRESS: milliseconds, the median of some
		return connect(args[0])
	case "write": // DIRECTORY BYTES: MiB/s
		return writeOne(args[0], args[1])
	case "files": // DIRECTORY N: files/s
		return writeMany(args[0], args[1])
	}
	return 0, fmt.Errorf("no such thing: %s", verb)
}

// ask has the host run a command, as lazaret-escalate does once it has started.
func ask(command string) (float64, error) {
	return taking(func() error {
		r, err := wire.Here.Ask(context.Background(), wire.Request{RequestID: rand.Text(), Command: command})
		if err == nil && !r.Approved {
			err = errors.New("it was denied")
		}
		return err
	})
}

// transfer moves bytes to or from a pourer (see network.go).
func transfer(verb, address, amount string) (float64, error) {
	n, err := strconv.ParseInt(amount, 10, 64)
	if err != nil {
		return 0, err
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	start := time.Now()
	if _, err := fmt.Fprintf(c, "%s %d\n", verb, n); err != nil {
		return 0, err
	}
	buf := make([]byte, 256<<10)
	if verb == "up" {
		for left := n; left > 0; left -= int64(len(buf)) {
			if _, err := c.Write(buf[:min(left, int64(len(buf)))]); err != nil {
				return 0, err
			}
		}
		_, err = io.ReadFull(c, buf[:1]) // all of it has arrived
	} else {
		// Anything with WriteTo or ReadFrom would choose a buffer of its own.
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{io.LimitReader(c, n)}, buf)
	}
	return perSecond(float64(n)/(1<<20), time.Since(start)), err
}

// connect connects often enough for a median.
func connect(address string) (float64, error) {
	var took []float64
	for range 30 {
		start := time.Now()
		c, err := net.Dial("tcp", address)
		if err != nil {
			return 0, err
		}
		took = append(took, ms(time.Since(start)))
		c.Close()
	}
	slices.Sort(took)
	return quantile(took, 0.5), nil
}

func writeOne(dir, amount string) (float64, error) {
	n, err := strconv.Atoi(amount)
	if err != nil {
		return 0, err
	}
	block := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	name := filepath.Join(dir, "one")
	defer os.Remove(name)
	start := time.Now()
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	for left := n; left > 0 && err == nil; left -= len(block) {
		_, err = f.Write(block[:min(left, len(block))])
	}
	return perSecond(float64(n)/(1<<20), time.Since(start)), errors.Join(err, f.Close())
}

func writeMany(dir, amount string) (float64, error) {
	n, err := strconv.Atoi(amount)
	if err != nil {
		return 0, err
	}
	// They stay until the experiment is over: for each new file, ext4 passes over
	// all that were deleted in the last minutes.
	if dir, err = os.MkdirTemp(dir, "many-"); err != nil {
		return 0, err
	}
	text := bytes.Repeat([]byte("0123456789abcde\n"), 256) // 4 KiB
	start := time.Now()
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), text, 0o600); err != nil {
			return 0, err
		}
	}
	return perSecond(float64(n), time.Since(start)), nil
}

// pour prints bytes as a build prints its log, with a coloured word here and
// there.
func pour(to io.Writer, amount string) error {
	n, err := strconv.Atoi(amount)
	if err != nil {
		return err
	}
	var page []byte
	for i := range 40 {
		page = fmt.Appendf(page, "\x1b[32mok\x1b[0m   lazaret/package/number/%02d  0.%03ds  coverage: %d.0%% of statements\n", i, i*7, 50+i)
	}
	w := bufio.NewWriterSize(to, 64<<10)
	for left := n; left > 0; left -= len(page) {
		if _, err := w.Write(page[:min(left, len(page))]); err != nil {
			return err
		}
	}
	return w.Flush()
}
