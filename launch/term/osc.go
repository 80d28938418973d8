package term

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// osc judges the operating system command that was read. Each kind that is
// let through is written anew from its parts. Dropped are among others 52
// (clipboard), 7 (directory), 9, 99 and 777 (notifications), 50 (font), 1337
// (files, and much else).
func (f *Filter) osc() {
	kind, text, _ := bytes.Cut(f.seq, []byte{';'})
	switch s := string(text); string(kind) {
	case "0", "2":
		if !f.Mute {
			f.title(s)
		}
	case "4":
		f.palette(s)
	case "104":
		f.resetPalette(s)
	case "10", "11", "12":
		f.colour(string(kind), s)
	case "110", "111", "112":
		if s == "" {
			f.modes.colours.unset("1" + string(kind[2:]))
			f.oscOut(string(kind), "")
		}
	case "8":
		f.link(s)
	case "133":
		if mark.MatchString(s) {
			f.oscOut("133", s)
		}
	case "52":
		f.clipboard(s)
	}
}

func (f *Filter) oscOut(kind, text string) {
	f.out = append(f.out, "\x1b]"...)
	f.out = append(f.out, kind...)
	if text != "" {
		f.out = append(append(f.out, ';'), text...)
	}
	f.out = append(f.out, "\x1b\\"...)
}

// mark is where a shell's prompt, input and output begin and end.
var mark = regexp.MustCompile(`^[ABCD](;[0-9]{1,3})?$`)

// titleMax is the longest title, in characters.
const titleMax = 120

func (f *Filter) title(s string) {
	if !f.modes.titled {
		f.modes.titled = true
		f.out = append(f.out, "\x1b[22;0t"...) // the terminal keeps the person's own
	}
	f.modes.title = f.Title + printable(s, titleMax)
	f.oscOut("0", f.modes.title)
}

// printable leaves out what cannot be seen or reorders the rest, and cuts.
func printable(s string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) {
			continue
		}
		if n++; n > most {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// colourSpec is a colour, or the question for one.
var colourSpec = regexp.MustCompile(`^(\?|rgb:[0-9a-fA-F]{1,4}/[0-9a-fA-F]{1,4}/[0-9a-fA-F]{1,4}|#([0-9a-fA-F]{3}|[0-9a-fA-F]{6}|[0-9a-fA-F]{9}|[0-9a-fA-F]{12})|[A-Za-z][A-Za-z0-9 ]{0,30})$`)

// colour sets or asks for the colours of text, background and cursor, which
// come one after the other.
func (f *Filter) colour(kind, s string) {
	n, _ := strconv.Atoi(kind)
	for spec := range strings.SplitSeq(s, ";") {
		if n > 12 || !colourSpec.MatchString(spec) {
			return
		}
		kind = strconv.Itoa(n)
		if spec == "?" {
			if !f.ask() {
				return
			}
		} else {
			f.modes.colours.set(kind, kind+";"+spec)
		}
		f.oscOut(kind, spec)
		n++
	}
}

func (f *Filter) palette(s string) {
	parts := strings.Split(s, ";")
	for i := 0; i+1 < len(parts); i += 2 {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 || n > 255 || !colourSpec.MatchString(parts[i+1]) {
			return
		}
		at := strconv.Itoa(n)
		if parts[i+1] == "?" {
			if !f.ask() {
				return
			}
		} else {
			f.modes.colours.set("4;"+at, "4;"+at+";"+parts[i+1])
		}
		f.oscOut("4", at+";"+parts[i+1])
	}
}

func (f *Filter) resetPalette(s string) {
	if s == "" {
		f.modes.colours.unsetPalette()
		f.oscOut("104", "")
		return
	}
	for p := range strings.SplitSeq(s, ";") {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > 255 {
			return
		}
		f.modes.colours.unset("4;" + strconv.Itoa(n))
		f.oscOut("104", strconv.Itoa(n))
	}
}

// linkTarget is what a link may lead to: pages. Other schemes start programs
// of the host, some of which take orders in what follows.
var linkTarget = regexp.MustCompile(`^https?://[!-~]+$`)

// linkMax is the longest address a browser takes.
const linkMax = 2083

var linkID = regexp.MustCompile(`^id=[A-Za-z0-9._-]{1,64}$`)

func (f *Filter) link(s string) {
	params, target, _ := strings.Cut(s, ";")
	if len(target) > linkMax || !linkTarget.MatchString(target) {
		target = "" // the end of a link, or one that is shown as text
	}
	if !linkID.MatchString(params) || target == "" {
		params = ""
	}
	f.modes.link = ""
	if target != "" {
		f.modes.link = params + ";" + target
	}
	f.oscOut("8", params+";"+target)
}

// clipboard writes the clipboard where the person allows that.
func (f *Filter) clipboard(s string) {
	which, text, ok := strings.Cut(s, ";")
	if !f.Clipboard || !ok || strings.Trim(which, "cps01234567") != "" || text == "?" {
		return
	}
	if _, err := base64.StdEncoding.DecodeString(text); err != nil {
		return // some terminals take that for an order to empty it
	}
	f.oscOut("52", which+";"+text)
}
