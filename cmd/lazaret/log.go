package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"lazaret/lock/config"
)

func newLogCmd(d *deps) *cobra.Command {
	var follow, asJSON bool
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Show what sandboxes were denied, and what they asked of the host",
		Long: `Log shows the audit log: connections and names that sandboxes of yours were
denied, and the commands that they asked to run on this machine, with who
decided and how they ended; oldest first. It changes nothing. The log is
audit.jsonl in ~/.local/state/lazaret (XDG_STATE_HOME). What the lazaret of a detached
sandbox said is told by "lazaret attach".`,
		Example: `  lazaret log
  lazaret log --follow
  lazaret log --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := d.auditFile()
			if path == "" {
				return noHome("the log")
			}
			return showLog(cmd.Context(), cmd.OutOrStdout(), path, follow, asJSON)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on showing what is added")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the lines as they are")
	return cmd
}

// logPause is how often a log that is followed is looked at.
const logPause = 200 * time.Millisecond

// logLine bounds a line, in bytes; lazaret writes none that is longer.
const logLine = 64 << 10

func showLog(ctx context.Context, out io.Writer, path string, follow, asJSON bool) error {
	f, err := os.Open(path)
	for errors.Is(err, fs.ErrNotExist) && follow {
		if !pause(ctx, logPause) {
			return nil
		}
		f, err = os.Open(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is nothing to tell yet
	}
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, logLine)
	var part []byte
	for {
		line, err := r.ReadSlice('\n')
		part = append(part, line...)
		switch {
		case err == nil && len(part) <= logLine:
			if err := showEntry(out, part, asJSON); err != nil {
				return err
			}
			part = part[:0]
		case err == nil || errors.Is(err, bufio.ErrBufferFull):
			part = part[:0] // nobody's line
		case !errors.Is(err, io.EOF):
			return fmt.Errorf("reading the audit log: %w", err)
		case !follow || !pause(ctx, logPause):
			return nil
		}
	}
}

// pause waits, and tells whether to go on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func showEntry(out io.Writer, line []byte, asJSON bool) error {
	var a auditEntry
	if json.Unmarshal(line, &a) != nil {
		return nil // cut off by the death of its writer
	}
	if asJSON {
		line, err := a.line() // again, whatever was in the file
		if err == nil {
			_, err = out.Write(line)
		}
		return err
	}
	if a.Ask != nil {
		_, err := fmt.Fprintf(out, "%s %s %s: %s%s %s: %s\n", a.Time.Local().Format(time.DateTime), config.Show(a.Run), config.Show(a.Profile),
			config.Show(a.Kind), config.Show(a.Ask.digests()), config.Show(a.Ask.text()), config.Show(a.Ask.outcome(a.Kind)))
		return err
	}
	count := ""
	if a.Count > 1 {
		count = fmt.Sprintf(", %d times", a.Count)
	}
	_, err := fmt.Fprintf(out, "%s %s %s: %s %s%s\n", a.Time.Local().Format(time.DateTime), config.Show(a.Run), config.Show(a.Profile),
		config.Show(a.Kind), config.Show(a.text()), count)
	return err
}
