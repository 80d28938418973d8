// Command lazaret-escalate asks the host, from inside a sandbox, to run a
// command there, and passes on what it printed and how it ended.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"lazaret/escalate/wire"
)

const help = `usage: lazaret-escalate [options] [--] COMMAND [ARGUMENT...]

You are in a sandbox. This asks the person at the host to run COMMAND on the
host, outside the sandbox, waits for the answer, prints what the command
printed and exits with its status. Use it only for what the sandbox cannot do:
the host's credentials, files outside /workspace, the host's services. Anything
else (installing packages, building, testing) do in the sandbox, as root.

options:
  --reason TEXT   why you need it, for the person who decides. Always say it, in
                  a sentence: what for, and what the command will change
  --stdin         pass on this program's standard input (at most 1 MiB)
  --timeout TIME  give up after TIME ("90s", "5m"), and end a command that runs by
                  then; else the host's own limits hold
  --json          print the host's whole answer as one line of JSON
  --help          print this

What to know:
- One program with its arguments, no shell: no pipes, no redirection, no ~ or
  $VAR or *. Pipe inside the sandbox: lazaret-escalate -- aws s3 ls | grep x
- Paths are the host's: /workspace is not there. The command runs in the
  workspace's directory, so name its files by relative paths.
- It has no terminal and no input unless --stdin is given: use options such as
  --yes or --no-pager where a program would ask.
- A person reads your request. It may take minutes; do not send it again
  meanwhile. Some commands are allowed in advance and run at once.
- The person may run a changed command; then that is printed on stderr.
- After a no (77), do not ask for the same thing in other words: go on without,
  or say what you could not do.

exit status: the command's own, 128+n after signal n, or
  77  denied, or the channel was shut       64  wrong usage of this program
  75  nobody answered in time: not a no     69  no channel to the host
  76  the conversation with the host failed
"lazaret-escalate: " in front of a line on stderr tells these from the command's.

examples:
  lazaret-escalate --reason "to deploy to staging, as asked" -- aws sts get-caller-identity
  lazaret-escalate --reason "the tests need the database" -- systemctl --user start postgresql
  git diff | lazaret-escalate --stdin --reason "to show you the patch" -- tee /tmp/patch
`

// Exit statuses, after sysexits.h.
const (
	exitUsage       = 64
	exitUnavailable = 69
	exitTimeout     = 75
	exitProtocol    = 76
	exitDenied      = 77
)

func main() { os.Exit(run(os.Args[1:], wire.Here, os.Stdin, os.Stdout, os.Stderr)) }

// options are what the command line says.
type options struct {
	reason  string
	timeout time.Duration
	stdin   bool
	json    bool
	help    bool
	command []string
}

func parse(args []string) (o options, err error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		arg := args[0]
		args = args[1:]
		name, value, inline := strings.Cut(arg, "=")
		switch name {
		case "--":
			o.command = args
			return o, nil
		case "--help", "-h":
			o.help = true
			return o, nil
		case "--stdin", "--json":
			if inline {
				return o, fmt.Errorf("%s takes no value", name)
			}
			o.stdin, o.json = o.stdin || name == "--stdin", o.json || name == "--json"
		case "--reason", "--timeout":
			if !inline {
				if len(args) == 0 {
					return o, fmt.Errorf("%s takes a value", name)
				}
				value, args = args[0], args[1:]
			}
			if name == "--reason" {
				o.reason = value
			} else if o.timeout, err = time.ParseDuration(value); err != nil || o.timeout <= 0 {
				return o, fmt.Errorf("--timeout: %q is no time such as 90s or 5m", value)
			}
		default:
			return o, fmt.Errorf("no option %s; put -- in front of the command", name)
		}
	}
	o.command = args
	return o, nil
}

func run(args []string, channel wire.Channel, stdin io.Reader, stdout, stderr io.Writer) int {
	fail := func(status int, format string, args ...any) int {
		fmt.Fprintf(stderr, "lazaret-escalate: "+format+"\n", args...)
		return status
	}
	o, err := parse(args)
	switch {
	case err != nil:
		return fail(exitUsage, "%v; see lazaret-escalate --help", err)
	case o.help:
		io.WriteString(stdout, help)
		return 0
	case len(o.command) == 0:
		return fail(exitUsage, "which command? lazaret-escalate [--reason TEXT] [--] COMMAND; see lazaret-escalate --help")
	}
	req := wire.Request{RequestID: strings.ToLower(rand.Text()), Command: wire.Quote(o.command), Justification: o.reason}
	if o.stdin {
		req.Stdin, err = io.ReadAll(io.LimitReader(stdin, wire.MaxStdin+1))
		if err != nil {
			return fail(exitUsage, "reading standard input: %v", err)
		}
	}
	if err := req.Check(); err != nil {
		return fail(exitUsage, "%v", err)
	}
	ctx := context.Background()
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	resp, err := channel.Ask(ctx, req)
	if err != nil {
		var none *wire.NoChannelError
		status := exitProtocol
		resp = wire.Response{RequestID: req.RequestID, Error: err.Error()}
		switch {
		case ctx.Err() != nil:
			status, resp.Status, resp.Error = exitTimeout, wire.Timeout, "no answer within "+o.timeout.String()
		case errors.As(err, &none):
			status, resp.Status = exitUnavailable, wire.NoChannel
		}
		if o.json {
			json.NewEncoder(stdout).Encode(resp)
			return status
		}
		return fail(status, "%s", resp.Error)
	}
	if o.json {
		json.NewEncoder(stdout).Encode(resp)
		return exitOf(resp)
	}
	return tell(resp, stdout, stderr, fail)
}

// exitOf is the exit status that tells of a response.
func exitOf(r wire.Response) int {
	switch r.Status {
	case wire.Approved, wire.Edited:
		return *r.ExitCode
	case wire.Timeout:
		return exitTimeout
	case wire.NoChannel:
		return exitUnavailable
	}
	return exitDenied
}

func tell(r wire.Response, stdout, stderr io.Writer, fail func(int, string, ...any) int) int {
	out, errs, err := r.Output()
	if err != nil {
		return fail(exitProtocol, "the host's answer is not understood: %v", err)
	}
	if r.Status == wire.Edited {
		fail(0, "the person at the host ran this instead: %s", r.Command)
	}
	io.Copy(stdout, bytes.NewReader(out))
	io.Copy(stderr, bytes.NewReader(errs))
	if r.Truncated {
		fail(0, "the host kept only the beginning of what it printed")
	}
	switch what := map[string]string{
		wire.Denied: "denied", wire.Aborted: "denied: the channel to the host was shut",
		wire.Timeout: "timeout", wire.NoChannel: "no channel to the host",
	}[r.Status]; {
	case what == "" && r.Error != "":
		fail(0, "%s", r.Error)
	case what != "" && r.Error != "":
		fail(0, "%s: %s", what, r.Error)
	case what != "":
		fail(0, "%s", what)
	}
	return exitOf(r)
}
