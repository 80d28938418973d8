package guard

import (
	"cmp"
	"slices"
)

type key struct {
	kind       Kind
	root, path Name
	what       Name
}

func (f Finding) key() key { return key{f.Kind, f.Root, f.Path, f.What} }

// place is a file, as far as one kind of finding is about it.
type place struct {
	kind       Kind
	root, path Name
}

func (f Finding) place() place { return place{f.Kind, f.Root, f.Path} }

// same tells whether two findings say the same.
func (f Finding) same(g Finding) bool { return f.key() == g.key() && f.Digest == g.Digest }

// Compare gives what is in now and was not in before, worst first. A nil
// before knows nothing, so that everything is given.
func Compare(before *Snapshot, now Snapshot) []Finding {
	known, places, groups := map[key]string{}, map[place]bool{}, map[place]bool{}
	if before != nil {
		for _, f := range before.Findings {
			known[f.key()] = f.Digest
			places[f.place()] = true
			groups[place{"", f.Root, f.Group}] = true
		}
	}
	var out []Finding
	for _, f := range now.Findings {
		digest, there := known[f.key()]
		switch {
		case f.Severity == seen:
			continue
		case before == nil:
			f.State = Present
		case there && digest == f.Digest:
			continue
		case places[f.place()]:
			f.State = Changed
			f.raise()
			if f.Repair == Aside {
				// What was there before would go with it.
				f.Repair = NoRepair
			}
		default:
			f.State = Appeared
			f.raise()
			if f.Group != "" && groups[place{"", f.Root, f.Group}] {
				f.Group = "" // the directory was there before
			}
		}
		out = append(out, f)
	}
	worstFirst(out)
	return out
}

// Collapse makes one finding of the files of a tool's directory that appeared
// as a whole, for people to read.
func Collapse(fs []Finding) (out []Finding) {
	type group struct{ root, path Name }
	of := func(f Finding) group { return group{f.Root, f.Group} }
	files, at := map[group]int{}, map[group]int{}
	for _, f := range fs {
		files[of(f)]++
	}
	for _, f := range fs {
		if f.Group == "" || f.State == Changed || files[of(f)] == 1 {
			out = append(out, f)
			continue
		}
		i, ok := at[of(f)]
		if !ok {
			at[of(f)] = len(out)
			f.Path, f.Inode, f.Digest, f.Files = f.Group, 0, "", files[of(f)]
			out = append(out, f)
			continue
		}
		if f.Severity > out[i].Severity {
			out[i].Severity, out[i].Why = f.Severity, f.Why
		}
		out[i].Live = out[i].Live || f.Live
	}
	worstFirst(out)
	return out
}

// raise makes a warning of what is common in a directory, and remarkable where
// a sandbox made it.
func (f *Finding) raise() {
	if f.Severity == Note && (f.Kind == Repository || f.Kind == Lock) {
		f.Severity = Warning
	}
}

func worstFirst(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), compare(a, b))
	})
}

func compare(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.What, b.What), cmp.Compare(a.Digest, b.Digest))
}

// Without gives the snapshot less what is in drop.
func (s Snapshot) Without(drop []Finding) Snapshot {
	gone := map[key]string{}
	for _, f := range drop {
		gone[f.key()] = f.Digest
	}
	s.Findings = slices.DeleteFunc(slices.Clone(s.Findings), func(f Finding) bool {
		d, ok := gone[f.key()]
		return ok && d == f.Digest
	})
	return s
}
