package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"lazaret/internal/step"
	"lazaret/launch"
	"lazaret/lock"
	"lazaret/lock/config"
)

const (
	// kindsMost bounds how many different denials are told apart.
	kindsMost = 2000
	// summaryMost is how many of them are told at the end.
	summaryMost = 20
)

// denials is what a sandbox tried that it may not: written to the audit log,
// told while the sandbox runs where that garbles no screen, and summed up.
type denials struct {
	record launch.Record
	never  []netip.Prefix      // ranges that no suggestion shall open
	own    func() []netip.Addr // this machine's addresses
	talk   io.Writer
	live   bool
	audit  *audit // nil where nothing is denied
	lines  allowance
	broken bool // the log cannot be written, which was said

	mu      sync.Mutex
	seen    map[auditEntry]uint64 // without time and count
	order   []auditEntry
	more    uint64
	notices []string
}

// watchDenials makes it for a run.
func watchDenials(p *launch.Plan, f *lock.File, a *audit, talk io.Writer) *denials {
	w := &denials{record: p.Record, own: p.SelfAddresses, talk: talk, live: !p.Host.Terminal, seen: map[auditEntry]uint64{}, lines: allowance{most: deniedMost, over: "was denied"}}
	for _, s := range slices.Concat(f.Profiles[p.Record.Profile].Network.AlwaysDeny, p.OwnRanges()) {
		if q, err := netip.ParsePrefix(s); err == nil {
			w.never = append(w.never, q)
		}
	}
	if p.HasNetwork() {
		w.audit = a
	}
	return w
}

// event takes in one event of the run.
func (w *denials) event(e step.Event) {
	if e.Kind != step.Denied && e.Kind != step.Notice {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Kind == step.Notice {
		text := e.Attr["notice"]
		if e.Err != "" {
			text += ": " + e.Err
		}
		w.write(auditEntry{Kind: "notice", Text: text})
		w.notices = append(w.notices, text)
		w.tell(text)
		return
	}
	a := auditEntry{Kind: e.Attr["what"], Protocol: e.Attr["protocol"], Address: e.Attr["address"], Name: e.Attr["name"]}
	a.Port, _ = strconv.Atoi(e.Attr["port"])
	n, _ := strconv.ParseUint(e.Attr["count"], 10, 64)
	written := a
	written.Count = n
	w.write(written)
	before, known := w.seen[a]
	switch {
	case !known && len(w.seen) >= kindsMost:
		w.more += n
		return
	case !known:
		w.order = append(w.order, a)
		if len(w.order) <= summaryMost {
			w.tell("denied: " + a.text())
		}
	}
	w.seen[a] = before + n
}

// tell says something now, where no screen is in use.
func (w *denials) tell(text string) {
	if w.live {
		fmt.Fprintf(w.talk, "lazaret: note: %s\n", config.Show(text))
	}
}

func (w *denials) write(a auditEntry) {
	if w.audit == nil || w.broken {
		return
	}
	ok, notice := w.lines.take(1, w.audit.now())
	if notice != "" {
		w.put(auditEntry{Kind: "notice", Text: notice})
	}
	if ok {
		w.put(a)
	}
}

func (w *denials) put(a auditEntry) {
	if err := w.audit.write(a); err != nil && !errors.Is(err, errNoAudit) && !w.broken {
		w.broken = true
		w.notices = append(w.notices, err.Error())
	}
}

// end sums up, with the line of lazaret.toml that would allow each.
func (w *denials) end(e *ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.live {
		for _, n := range w.notices {
			fmt.Fprintf(w.talk, "lazaret: note: %s\n", config.Show(n))
		}
	}
	e.list(markNone, "denied", fmt.Sprintf("denied to [profiles.%s]:", w.record.Profile), w.items())
}

// items tells what was denied, the most frequent first.
func (w *denials) items() (out []item) {
	slices.SortStableFunc(w.order, func(a, b auditEntry) int { return cmp.Compare(w.seen[b], w.seen[a]) })
	for i, a := range w.order {
		if i == summaryMost {
			out = append(out, item{text: fmt.Sprintf("and %d more", len(w.order)-i), next: "lazaret log"})
			break
		}
		text := config.Show(a.text())
		if n := w.seen[a]; n > 1 {
			text += fmt.Sprintf(", %d times", n)
		}
		out = append(out, item{text, "to allow", w.suggestion(a)})
	}
	if w.more > 0 {
		out = append(out, item{text: fmt.Sprintf("and %d others that were not told apart", w.more)})
	}
	return out
}

// text tells a denial, unescaped.
func (a auditEntry) text() string {
	where := a.Address
	if ip, err := netip.ParseAddr(a.Address); err == nil && a.Port != 0 {
		where = netip.AddrPortFrom(ip, uint16(a.Port)).String()
	}
	switch a.Kind {
	case "denied":
		s := a.Protocol + " " + where
		if a.Name != "" {
			s += " (" + a.Name + ")"
		}
		return s
	case "refused":
		return "the name " + a.Name
	case "rebound":
		return "the name " + a.Name + ", which means " + where
	}
	return a.Text
}

// suggestion is the line of lazaret.toml that would allow a denial, made only
// of what can be written there. None opens the machine itself or its cloud's
// credentials: an agent could try them just to have the line suggested.
func (w *denials) suggestion(a auditEntry) string {
	switch a.Kind {
	case "rebound":
		return "" // the name, and with it the address, is of somebody's choosing
	case "refused":
		// A name that is asked for can hold anything: one that would be read as
		// more than a name, a wildcard or a port, is nothing to allow.
		h, err := config.ParseHost(a.Name)
		if err != nil || h.Name != a.Name || strings.Contains(h.Name, "*") {
			return ""
		}
		return fmt.Sprintf("allow_hosts = [%q]", h.String())
	}
	ip, err := netip.ParseAddr(a.Address)
	if err != nil || slices.Contains(w.own(), ip) || slices.ContainsFunc(w.never, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return ""
	}
	e := config.Endpoint{Prefix: netip.PrefixFrom(ip, ip.BitLen())}
	if a.Protocol == "tcp" || a.Protocol == "udp" {
		e.Port, e.Proto = uint16(a.Port), a.Protocol
	}
	return fmt.Sprintf("allow_egress = [%q]", e.String())
}
