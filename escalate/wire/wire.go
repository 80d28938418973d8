// Package wire is what a sandbox and its host say to one another about a
// command for the host: one request and one response on a TLS 1.3 connection
// in which each shows a certificate. It holds what both ends share and the
// sandbox's end; the host's end is package escalate. It is linked into the
// small program that every sandbox gets, so it imports little.
package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Places inside every sandbox that may ask.
const (
	Dir        = "/run/lazaret"
	Socket     = Dir + "/escalate.sock"
	CertsDir   = Dir + "/certs"
	ClientPath = Dir + "/escalate"
	BinDir     = Dir + "/bin" // on PATH, with the client under its own name
	ClientName = "lazaret-escalate"
)

// Files in CertsDir.
const (
	CAFile   = "ca.pem"     // what the host's certificate is checked with
	CertFile = "client.pem" // the sandbox's own certificate
	KeyFile  = "client.key" // its private key
)

// ServerName is what the host's certificate is made out to.
const ServerName = "host.lazaret"

// Limits of a request, in bytes.
const (
	MaxRequest = 2 << 20 // the whole of it, as JSON
	MaxCommand = 64 << 10
	MaxReason  = 8 << 10
	MaxStdin   = 1 << 20
	MaxID      = 100
)

// MaxResponse bounds a response, in bytes: both outputs at the most that a
// config can ask for (64 MiB each), as JSON.
const MaxResponse = 512 << 20

// Request asks the host to run a command.
type Request struct {
	RequestID     string `json:"request_id"`
	Profile       string `json:"profile"`
	Command       string `json:"command"` // in a shell's quoting; no shell will read it
	Justification string `json:"justification"`
	Stdin         []byte `json:"stdin,omitempty"` // base64; the command's whole input
}

// Response is the host's answer.
type Response struct {
	RequestID string `json:"request_id"`
	Approved  bool   `json:"approved"`
	ExitCode  *int   `json:"exit_code,omitempty"` // only where approved; 128+n after signal n
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Encoding  string `json:"encoding,omitempty"` // "base64" where an output is no text
	Status    string `json:"status"`
	Command   string `json:"command,omitempty"`   // what was run, where it was edited
	Truncated bool   `json:"truncated,omitempty"` // there was more output than is kept
	Error     string `json:"error,omitempty"`     // what went wrong, or why it was denied
}

// The six values of Response.Status.
const (
	Approved  = "approved"
	Edited    = "edited"     // approved, with another command
	Denied    = "denied"     // by a person, or because nobody may be asked
	Aborted   = "aborted"    // the person has shut the channel
	Timeout   = "timeout"    // nobody answered in time: not a no
	NoChannel = "no_channel" // the request reached nobody
)

// ParseRequest reads a request as the sandbox sent it: hostile text.
func ParseRequest(line []byte) (Request, error) {
	var r Request
	if len(line) > MaxRequest {
		return r, fmt.Errorf("the request is larger than %d bytes", MaxRequest)
	}
	if !utf8.Valid(line) {
		return r, errors.New("the request is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Request{}, errors.New("the request is not understood")
	}
	if _, err := d.Token(); err != io.EOF {
		return Request{}, errors.New("the request has something after it")
	}
	return r, r.Check()
}

// Check tells what is wrong with a request before it is sent.
func (r Request) Check() error {
	switch {
	case r.RequestID == "" || len(r.RequestID) > MaxID:
		return fmt.Errorf("request_id: is empty or longer than %d bytes", MaxID)
	case strings.TrimSpace(r.Command) == "":
		return errors.New("command: is empty")
	case len(r.Command) > MaxCommand:
		return fmt.Errorf("command: is longer than %d bytes", MaxCommand)
	case strings.ContainsRune(r.Command, 0):
		return errors.New("command: holds a NUL")
	case len(r.Justification) > MaxReason:
		return fmt.Errorf("justification: is longer than %d bytes", MaxReason)
	case len(r.Stdin) > MaxStdin:
		return fmt.Errorf("stdin: is larger than %d bytes", MaxStdin)
	}
	return nil
}

// SetOutput puts a command's output into the response.
func (r *Response) SetOutput(stdout, stderr []byte) {
	if utf8.Valid(stdout) && utf8.Valid(stderr) {
		r.Stdout, r.Stderr = string(stdout), string(stderr)
		return
	}
	r.Encoding = "base64"
	r.Stdout, r.Stderr = base64.StdEncoding.EncodeToString(stdout), base64.StdEncoding.EncodeToString(stderr)
}

// Output gives a command's output back.
func (r Response) Output() (stdout, stderr []byte, err error) {
	switch r.Encoding {
	case "":
		return []byte(r.Stdout), []byte(r.Stderr), nil
	case "base64":
		stdout, err = base64.StdEncoding.DecodeString(r.Stdout)
		if err == nil {
			stderr, err = base64.StdEncoding.DecodeString(r.Stderr)
		}
		return stdout, stderr, err
	}
	return nil, nil, fmt.Errorf("unknown encoding %q", r.Encoding)
}

// Quote writes an argument vector so that the host reads the same one back. It
// uses single quotes only: a backslash, which means something else to every
// program that quotes, keeps a command from running without a question.
func Quote(argv []string) string {
	out := make([]string, len(argv))
	for i, a := range argv {
		out[i] = a
		if a == "" || strings.ContainsFunc(a, needsQuotes) {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'"'"'`) + "'"
		}
	}
	return strings.Join(out, " ")
}

func needsQuotes(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("%+,-./:=@_", r))
}
