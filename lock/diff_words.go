package lock

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// arrow stands between what was and what is.
const arrow = " → "

// sentence tells one atom in the words of its field.
func (d *diff) sentence(a atom) string {
	value := a.value()
	if a.at("profiles", "*", "command") {
		value = strings.ReplaceAll(value, nothing, "(the image's own command)")
	}
	said := a.say(value)
	if g := a.gloss(); g != "" {
		said += " (" + strings.ReplaceAll(g, "{}", word(a.path[1])) + ")"
	}
	return said
}

// nothing stands for an empty list. No word of a list shows like it.
const nothing = "(none)"

// say puts a value into the field's sentence.
func (a atom) say(value string) string {
	return strings.NewReplacer("{}", value, "{key}", word(a.key())).Replace(a.field.says)
}

// key is the last key of the path that is not the field's own.
func (a atom) key() string {
	if last := a.path[len(a.path)-1]; last != a.field.key || len(a.path) < 2 {
		return last
	}
	return a.path[len(a.path)-2]
}

// value is what the atom says: one value, or both with an arrow.
func (a atom) value() string {
	switch {
	case a.order:
		return strings.Join(a.new.Interface().([]string), ", ") + " (in this order now)"
	case !a.old.IsValid():
		return plain(a.new)
	case !a.new.IsValid():
		return plain(a.old)
	}
	return plain(a.old) + arrow + plain(a.new)
}

// plain gives a value for a sentence, unambiguously: whatever could be taken
// for something else stands in quotes.
func plain(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return word(v.String())
	case reflect.Bool:
		if v.Bool() {
			return "yes"
		}
		return "no"
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Slice:
		if v.Len() == 0 {
			return nothing
		}
		words := make([]string, v.Len())
		for i := range v.Len() {
			words[i] = plain(v.Index(i))
		}
		return strings.Join(words, " ")
	}
	return show(v)
}

var (
	digestText = regexp.MustCompile(`^(sha256:)?([0-9a-f]{12})[0-9a-f]{52}$`)
	plainWord  = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./~{}*?\[\]-]+$`)
	pinnedRef  = regexp.MustCompile(`^(.*@sha256:[0-9a-f]{12})[0-9a-f]{52}$`)
)

// word gives a string as it can stand in a sentence: quoted and escaped unless
// it is plain, digests by their first twelve digits.
func word(s string) string {
	if m := digestText.FindStringSubmatch(s); m != nil {
		return m[2] + "…"
	}
	if !plainWord.MatchString(s) {
		return quote(s)
	}
	if m := pinnedRef.FindStringSubmatch(s); m != nil {
		return m[1] + "…"
	}
	return s
}

// says tells a mount; every field is in it.
func (m Mount) says(target string) string {
	at := " at " + word(target)
	access, label, relabelled := strings.Cut(m.Mode, ",")
	mode := ""
	switch access {
	case "":
	case "ro":
		mode = ", read-only"
	case "rw":
		mode = ", read-write"
	default:
		mode = ", " + word(access)
	}
	if relabelled {
		mode += ", relabelled (" + word(label) + ")"
	}
	// A mount of another kind has no source and no name; one that has is told.
	odd := ""
	if m.From != "" && m.Kind != KindBind {
		odd = ", from " + word(m.From)
	}
	if m.Name != "" && m.Kind != KindOverlay {
		odd += ", named " + word(m.Name)
	}
	size := ""
	if m.Size != "" {
		size = ", at most " + word(m.Size)
	}
	var what string
	switch m.Kind {
	case KindBind:
		what = "mounts " + word(m.From)
	case KindOverlay:
		return "keeps " + word(target) + " between sessions, as " + word(m.Name) + mode + size + odd
	case KindTmpfs:
		what = "an empty directory in memory"
	case KindGit:
		what = "a git directory of its own"
	case KindGitShadow:
		what = "the host's git directory"
	case KindEscalate:
		what = "the escalation client"
	case KindEscalateSocket:
		what = "the escalation socket"
	case KindCerts:
		what = "the escalation certificates"
	default:
		what = "a mount of kind " + word(m.Kind)
	}
	return what + at + mode + size + odd
}
