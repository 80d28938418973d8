package sidecar

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Record types that dnsmessage has no name for.
const (
	typeHTTPS = dnsmessage.Type(65)
	typeSVCB  = dnsmessage.Type(64)
	typeIXFR  = dnsmessage.Type(251)
)

const (
	chainLimit  = 16   // names from the one asked for to the one that has addresses
	addrLimit   = 32   // addresses taken from one answer
	udpDefault  = 512  // bytes a client takes that does not say
	udpMost     = 1232 // bytes that pass any network in one piece
	messageMost = 65535
)

// query is what is taken of a client's message: nothing but the question is
// passed on.
type query struct {
	id       uint16
	question dnsmessage.Question
	name     string // lower case, without the final dot
	edns     bool
	size     int  // bytes the client takes over UDP
	rd       bool // as asked
}

// parseQuery reads a question. ok is false where not even an answer can be
// made; an answer of rcode otherwise, where that is not success.
func parseQuery(msg []byte) (q query, rcode dnsmessage.RCode, ok bool) {
	var p dnsmessage.Parser
	h, err := p.Start(msg)
	if err != nil || h.Response {
		return q, 0, false
	}
	q.id, q.rd, q.size = h.ID, h.RecursionDesired, udpDefault
	if h.OpCode != 0 {
		return q, dnsmessage.RCodeNotImplemented, true
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 {
		return q, dnsmessage.RCodeFormatError, true
	}
	q.question = questions[0]
	q.name = lower(q.question.Name.String())
	if q.question.Class != dnsmessage.ClassINET {
		return q, dnsmessage.RCodeRefused, true
	}
	if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return q, dnsmessage.RCodeFormatError, true
	}
	for {
		rh, err := p.AdditionalHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return q, dnsmessage.RCodeSuccess, true
		}
		if err != nil {
			return q, dnsmessage.RCodeFormatError, true
		}
		if rh.Type == dnsmessage.TypeOPT {
			q.edns = true
			q.size = min(max(int(rh.Class), udpDefault), udpMost)
		}
		if p.SkipAdditional() != nil {
			return q, dnsmessage.RCodeFormatError, true
		}
	}
}

// reply is an answer to be written.
type reply struct {
	rcode     dnsmessage.RCode
	resources []dnsmessage.Resource
	truncated bool
	late      bool // there is no time for it now: without a say over UDP
}

// plain is the question as the world is asked it: in lower case, for the case
// of each letter could carry out a bit. The client hears its own question.
func (q query) plain() (dnsmessage.Question, error) {
	out := q.question
	var err error
	out.Name, err = dnsmessage.NewName(q.name + ".")
	return out, err
}

// pack writes an answer of at most limit bytes: without room, it says that
// there is more to be had over TCP.
func (q query) pack(r reply, limit int) ([]byte, error) {
	m := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: q.id, Response: true, RecursionDesired: q.rd, RecursionAvailable: true, RCode: r.rcode, Truncated: r.truncated,
		},
		Answers: r.resources,
	}
	if q.question.Name.Length > 0 {
		m.Questions = []dnsmessage.Question{q.question}
	}
	if q.edns {
		m.Additionals = []dnsmessage.Resource{optResource()}
	}
	b, err := m.Pack()
	if err != nil {
		return nil, err
	}
	if len(b) > limit && !r.truncated {
		return q.pack(reply{rcode: r.rcode, truncated: true}, limit)
	}
	return b, nil
}

func optResource() dnsmessage.Resource {
	var h dnsmessage.ResourceHeader
	// Never fails for these values.
	h.SetEDNS0(udpMost, dnsmessage.RCodeSuccess, false)
	return dnsmessage.Resource{Header: h, Body: &dnsmessage.OPTResource{}}
}

// ask is the message for the uplink's name server.
func ask(id uint16, q dnsmessage.Question) ([]byte, error) {
	m := dnsmessage.Message{
		Header:      dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions:   []dnsmessage.Question{q},
		Additionals: []dnsmessage.Resource{optResource()},
	}
	return m.Pack()
}

// found is what a name server said that is of use.
type found struct {
	rcode     dnsmessage.RCode
	truncated bool
	resources []dnsmessage.Resource
}

var errAnswer = errors.New("not an answer to the question")

// parseAnswer reads a name server's answer to q.
func parseAnswer(msg []byte, id uint16, q dnsmessage.Question) (a found, err error) {
	var p dnsmessage.Parser
	h, err := p.Start(msg)
	if err != nil {
		return a, err
	}
	if h.ID != id || !h.Response {
		return a, errAnswer
	}
	questions, err := p.AllQuestions()
	if err != nil {
		return a, err
	}
	if len(questions) != 1 || questions[0].Type != q.Type || questions[0].Class != q.Class ||
		!strings.EqualFold(questions[0].Name.String(), q.Name.String()) {
		return a, errAnswer
	}
	a.rcode, a.truncated = h.RCode, h.Truncated
	if h.Truncated {
		return a, nil
	}
	// One by one: a type the package does not know is passed over.
	for len(a.resources) < 256 {
		rh, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return a, nil
		}
		if err != nil {
			return a, err
		}
		if rh.Class != dnsmessage.ClassINET {
			if err := p.SkipAnswer(); err != nil {
				return a, err
			}
			continue
		}
		r, err := p.Answer()
		if err != nil {
			return a, err
		}
		a.resources = append(a.resources, r)
	}
	return a, nil
}

// chain gives the records that lead from the name asked for to its addresses:
// aliases in order, then addresses; for a question for an alias, that alone. Whatever else a name server adds is not an
// answer to the question and could name anything.
func (a found) chain(q dnsmessage.Question) (records []dnsmessage.Resource, addrs []netip.Addr) {
	name := lower(q.Name.String())
	seen := []string{name}
	for range chainLimit {
		next := ""
		for _, r := range a.resources {
			if lower(r.Header.Name.String()) != name {
				continue
			}
			if c, ok := r.Body.(*dnsmessage.CNAMEResource); ok && next == "" && q.Type != dnsmessage.TypeCNAME {
				next = lower(c.CNAME.String())
				records = append(records, r)
			}
		}
		if next == "" {
			break
		}
		if slices.Contains(seen, next) {
			return nil, nil
		}
		seen, name = append(seen, next), next
	}
	for _, r := range a.resources {
		if lower(r.Header.Name.String()) != name || r.Header.Type != q.Type || len(addrs) == addrLimit {
			continue
		}
		if ip, ok := addressOf(r); ok {
			records, addrs = append(records, r), append(addrs, ip)
		} else if q.Type == dnsmessage.TypeCNAME && len(records) == 0 {
			records = append(records, r) // the alias itself was asked for
		}
	}
	return records, addrs
}

func addressOf(r dnsmessage.Resource) (netip.Addr, bool) {
	switch b := r.Body.(type) {
	case *dnsmessage.AResource:
		return netip.AddrFrom4(b.A), true
	case *dnsmessage.AAAAResource:
		return netip.AddrFrom16(b.AAAA), true
	}
	return netip.Addr{}, false
}

// minTTL is the shortest life among records.
func minTTL(records []dnsmessage.Resource) uint32 {
	ttl := uint32(1<<31 - 1)
	for _, r := range records {
		ttl = min(ttl, r.Header.TTL)
	}
	return ttl
}
