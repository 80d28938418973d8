package lock

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"lazaret/lock/config"
)

// Fold shortens changes that are more than a person reads, by telling what
// there is many of in one line: how many, and by name the riskiest of them. A
// lock of a thousand harmless lines must not hide the one that matters, nor a
// thousand hosts pass unsaid. list holds the changes of Diff, or some of them;
// it is returned as it is where it tells of no more than most things. What is
// an alarm stays one, and only ranges of addresses are folded there. folded is
// whether anything is only counted.
func Fold(list []Change, most int) (out []Change, folded bool) {
	total := 0
	groups := map[foldKey][]Change{}
	items := map[foldKey][]item{}
	for _, c := range list {
		k := keyOf(c)
		these := k.kind.items(c)
		total += len(these)
		groups[k] = append(groups[k], c)
		items[k] = append(items[k], these...)
	}
	if total <= most {
		return list, false
	}
	for _, c := range list {
		k := keyOf(c)
		switch all := items[k]; {
		case k.kind == nil || len(all) <= few:
			out = append(out, c)
		case groups[k] != nil:
			one, counted := k.fold(groups[k], all)
			out = append(out, one)
			groups[k], folded = nil, folded || counted
		}
	}
	return out, folded
}

const (
	few  = 6   // of a kind are told one by one
	room = 320 // columns for the names of many: four lines of a screen
)

// foldKey is the same for changes that can be told in one line.
type foldKey struct {
	kind        *kind
	op, profile string
	risk        string
	alarm       bool
	private     netip.Prefix // where an alarm's range leads: one among thousands of another's is told
}

func keyOf(c Change) foldKey {
	k := foldKey{kindOf(c), c.Op, c.Profile, c.Risk, c.Alarm, netip.Prefix{}}
	switch {
	case !c.Alarm || k.kind == nil:
	case !k.kind.ranges:
		k.kind = nil
	default:
		if e, err := config.ParseEndpoint(k.kind.items(c)[0].name); err == nil {
			if i := slices.IndexFunc(private, e.Prefix.Overlaps); i >= 0 {
				k.private = private[i]
			}
		}
	}
	return k
}

// kind is what a profile can have any number of.
type kind struct {
	key    string // below profiles.NAME
	says   string
	drop   string             // what the sentence of each begins with
	ranges bool               // of addresses
	values bool               // the names are values of a list, else what the change says
	risk   func(s string) int // orders names, the least first; nil: as they come
}

var kinds = []kind{
	{key: "env", says: "sets %d variables"},
	{key: "network.allow", says: "reaches %d ranges", ranges: true, values: true, risk: prefixLength},
	{key: "network.hosts", says: "reaches %d hosts", values: true, risk: hostRisk},
	{key: "network.deny", says: "never reaches %d ranges", ranges: true, values: true, risk: prefixLength},
	{key: "ports", says: "publishes %d loopback ports", values: true},
	{key: "mounts", says: "has %d mounts"},
	{key: "setup", says: "sets up with %d commands", values: true},
	{key: "image.env", says: "image environment of %d variables", drop: "image environment "},
	{key: "image.volumes", says: "%d image volumes", drop: "image volumes "},
	{key: "image.annotations", says: "%d image annotations", drop: "image annotation "},
}

// kindOf is the kind of a change, or nil where there are only so many like it.
func kindOf(c Change) *kind {
	keys := strings.Split(c.Parts[0].Key, ".") // names of profiles hold no dot
	if c.Profile == "" || len(keys) < 3 || c.Op == "~" && strings.HasSuffix(c.Text, "(in this order now)") {
		return nil
	}
	key := keys[2]
	switch {
	case key == "network" && len(keys) > 3:
		key += "." + keys[3]
	case key == "image" && len(keys) > 5:
		key += "." + keys[5]
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.key == key })
	if i < 0 {
		return nil
	}
	return &kinds[i]
}

// item is one thing of a kind.
type item struct {
	name string
	risk int
}

// items are what a change tells of.
func (k *kind) items(c Change) []item {
	switch {
	case k == nil:
		return []item{{}}
	case k.key == "env":
		name, value, _ := strings.Cut(strings.TrimPrefix(c.Text, "sets "), " to ")
		// A path or an address sends a program elsewhere.
		return []item{{name, map[bool]int{false: 1}[strings.Contains(value, "/")]}}
	case !k.values:
		// A directory of the host's before one that is kept from the image.
		return []item{{strings.TrimPrefix(c.Text, k.drop), map[bool]int{false: 1}[strings.HasPrefix(c.Text, "mounts ")]}}
	}
	out := make([]item, len(c.Parts))
	for i, p := range c.Parts {
		v := p.New
		if v == nil {
			v = p.Old
		}
		out[i].name = *v
		if plain := strings.Trim(*v, `"`); plainWord.MatchString(plain) {
			out[i].name = plain
		}
		if k.risk != nil {
			out[i].risk = k.risk(out[i].name)
		}
	}
	return out
}

// prefixLength puts wide ranges first.
func prefixLength(s string) int {
	if e, err := config.ParseEndpoint(s); err == nil {
		return e.Prefix.Bits()
	}
	return 0
}

// hostRisk puts those first that stand for any number of names, then those that
// are reached by something else than HTTPS.
func hostRisk(s string) int {
	switch {
	case strings.HasPrefix(s, "*"):
		return 0
	case !strings.HasSuffix(s, ":443"):
		return 1
	}
	return 2
}

// fold tells changes of one key in one line, and whether that leaves anything
// of them unsaid.
func (k foldKey) fold(list []Change, all []item) (c Change, counted bool) {
	c = Change{Op: k.op, Profile: k.profile, Risk: k.risk, Alarm: k.alarm}
	for _, one := range list {
		c.Parts = append(c.Parts, one.Parts...)
	}
	slices.SortStableFunc(all, func(a, b item) int { return cmp.Compare(a.risk, b.risk) })
	says := fmt.Sprintf(k.kind.says, len(all))
	if k.private.IsValid() {
		says += " that lead into " + k.private.String()
	}
	between := ", "
	if !k.kind.values && k.kind.key != "env" || k.kind.key == "setup" {
		between = "; "
	}
	var names []string
	used, cut := 0, false
	for _, one := range all {
		n := utf8.RuneCountInString(one.name)
		if n > room/2 { // the first must not take the place of the others
			cut = true
			one.name, n = string([]rune(one.name)[:room/2])+"…", room/2+1
		}
		if used += n + len(between); used > room {
			break
		}
		names = append(names, one.name)
	}
	c.Text = says + ": " + strings.Join(names, between)
	more := len(all) - len(names)
	if more > 0 {
		c.Text += fmt.Sprintf(" … and %d more", more)
	}
	return c, more > 0 || cut || k.kind.key == "env" // of a variable, only the name is said
}
