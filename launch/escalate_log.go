package launch

import (
	"encoding/json"
	"strconv"
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
	argv, err := json.Marshal(short(e.Argv))
	if err != nil {
		return err
	}
	a := map[string]string{
		"what": e.Kind, "request": clip(e.Request.RequestID, 100), "argv": string(argv), "program": e.Program,
		"reason": clip(e.Request.Justification, saidReason),
	}
	if e.Argv == nil {
		a["argv"], a["command"] = "", clip(e.Request.Command, saidCommand)
	}
	if e.Kind != "asked" {
		a["status"], a["by"], a["error"], a["dir"] = e.Status, e.By, e.Reason, e.Dir
	}
	if e.Kind == "ended" && e.Status != wire.Aborted {
		a["exit"], a["duration"] = strconv.Itoa(e.ExitCode), e.Duration.Round(time.Microsecond).String()
	}
	return s.live.tell(step.Event{Kind: step.Asked, Attr: a})
}

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// short cuts a vector after so many bytes, and says so.
func short(argv []string) (out []string) {
	left := saidCommand
	for i, a := range argv {
		if len(a) > left {
			return append(out, clip(a, left), "… "+strconv.Itoa(len(argv)-i-1)+" more")
		}
		left -= len(a) + 1
		out = append(out, a)
	}
	return out
}
