package launch

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"lazaret/escalate"
	"lazaret/escalate/wire"
	"lazaret/internal/step"
)

// Lengths of what an event repeats of a request, in bytes: the whole of it would
// let a sandbox fill the log.
const (
	saidCommand = 4 << 10
	saidReason  = 1 << 10
)

// log tells what became of a request: an event of kind step.Asked. It fails
// where whoever listens says that it cannot be written down.
func (s *escalation) log(e escalate.Entry) error {
	a, err := said(e)
	if err != nil {
		return err
	}
	return s.live.tell(step.Event{Kind: step.Asked, Attr: a})
}

// said are the attributes of that event.
func said(e escalate.Entry) (map[string]string, error) {
	whole, left := short(e.Argv)
	argv, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	a := map[string]string{
		"what": e.Kind, "request": clip(e.Request.RequestID, 100), "argv": string(argv), "program": e.Program,
		"reason": clip(e.Request.Justification, saidReason),
	}
	if e.Argv == nil {
		a["argv"], a["command"] = "", clip(e.Request.Command, saidCommand)
	}
	if left > 0 {
		a["left_out"], a["argv_sha256"] = strconv.Itoa(left), fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(e.Argv, "\x00"))))
	}
	if e.InputSize > 0 {
		a["input"], a["input_sha256"] = strconv.FormatInt(e.InputSize, 10), e.InputSHA256
	}
	if e.Kind != "asked" {
		a["status"], a["by"], a["error"], a["dir"] = e.Status, e.By, e.Reason, e.Dir
	}
	if e.Kind == "ended" && e.Status != wire.Aborted {
		a["exit"], a["duration"] = strconv.Itoa(e.ExitCode), e.Duration.Round(time.Microsecond).String()
	}
	return a, nil
}

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// short cuts a vector after so many bytes. left is how many arguments at its end are
// not whole, of which the first may be there in part: a word that says so itself
// could say anything.
func short(argv []string) (out []string, left int) {
	room := saidCommand
	for i, a := range argv {
		if len(a) > room {
			if room > 0 {
				out = append(out, clip(a, room))
			}
			return out, len(argv) - i
		}
		room -= len(a) + 1
		out = append(out, a)
	}
	return out, 0
}
