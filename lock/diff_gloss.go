package lock

import "reflect"

// glosses say what lazaret's own words stand for, to whoever meets them for the
// first time. {} is the profile's name.
var glosses = []struct {
	path  []string
	means map[string]string
}{
	{[]string{"profiles", "*", "state"}, map[string]string{
		"profile":   "one for all projects",
		"workspace": "each project has its own",
	}},
	{[]string{"profiles", "*", "git", "mode"}, map[string]string{
		"quarantine": "a store of its own, and what it commits is checked before it comes to your repository",
		"writeback":  "your repository's own objects and branches",
		"none":       "no repository",
	}},
	{[]string{"profiles", "*", "git", "branch"}, map[string]string{
		"auto": "lazaret/agent-{}, made from your HEAD",
		"":     "the one that is checked out",
	}},
	{[]string{"profiles", "*", "network", "dns"}, map[string]string{
		"listed": "only those of hosts that are named here",
		"open":   "every name",
	}},
}

// gloss explains what an atom says now, or is empty.
func (a atom) gloss() string {
	if !a.new.IsValid() || a.new.Kind() != reflect.String {
		return ""
	}
	for _, g := range glosses {
		if a.at(g.path...) {
			return g.means[a.new.String()]
		}
	}
	return ""
}
