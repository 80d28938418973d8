package launch

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"lazaret/internal/step"
	"lazaret/lock/config"
	"lazaret/overlay"
)

// toldValue begins the Values that are there to be told to the person.
const toldValue = "told."

// tell passes on what a step has to say, and takes it out of the Values.
func (r *run) tell(s step.Step, out step.Values) {
	for _, k := range slices.Sorted(maps.Keys(out)) {
		if strings.HasPrefix(k, toldValue) {
			r.runner.Emit(step.Event{Step: s.Name, Kind: step.Told, Attr: map[string]string{"text": out[k]}})
			delete(out, k)
		}
	}
}

// namesMost is how many files a message names.
const namesMost = 5

// drift says what another image means for a persistent directory.
func drift(l overlay.Layer, now overlay.Record, before *overlay.Record) (out []string) {
	if before == nil && now.Instead != "" {
		out = append(out, fmt.Sprintf("%s: kept with fuse-overlayfs, which is 2 to 3 times slower, since the kernel's overlayfs does not work here: %s", config.Show(l.Path), config.Show(now.Instead)))
	}
	if before == nil || before.Image.Config == now.Image.Config {
		return nil
	}
	text := fmt.Sprintf("%s: the image is %s now and was %s when this was last used: what is new in it shows wherever you changed nothing",
		config.Show(l.Path), shortID(now.Image.Config), shortID(before.Image.Config))
	out = append(out, text)
	if now.Unsure > 0 {
		out = append(out, fmt.Sprintf("%s: the old image is gone, so nobody can say which of %d files of yours hide newer ones of the image", config.Show(l.Path), now.Unsure))
	}
	if n := len(now.Hides) + now.HidesMore; n > 0 {
		out = append(out, fmt.Sprintf("%s: %s of yours hide newer ones of the image: %s", config.Show(l.Path), files(n), hides(l.Path, now.Hides)))
		out = append(out, consequences(l.Path, now.Hides)...)
	}
	return out
}

func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

func shortID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(12, len(id))]
}

// hides names some files, those that matter most first.
func hides(dir string, list []string) string {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b string) int { return weight(path.Join(dir, b)) - weight(path.Join(dir, a)) })
	var names []string
	for _, p := range list[:min(namesMost, len(list))] {
		names = append(names, config.Show(path.Join(dir, p)))
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more (\"lazaret state diff\" lists them)", more))
	}
	return strings.Join(names, ", ")
}

// databases are where package managers keep what is installed.
var databases = []string{"/var/lib/dpkg/status", "/var/lib/dpkg/info/", "/usr/lib/sysimage/rpm/", "/var/lib/rpm/", "/lib/apk/db/", "/var/lib/pacman/local/"}

func weight(p string) int {
	switch {
	case isDatabase(p):
		return 2
	case isLibrary(p):
		return 1
	}
	return 0
}

func isDatabase(p string) bool {
	return slices.ContainsFunc(databases, func(d string) bool { return p == d || strings.HasSuffix(d, "/") && strings.HasPrefix(p, d) })
}

func isLibrary(p string) bool {
	base := path.Base(p)
	return strings.HasSuffix(base, ".so") || strings.Contains(base, ".so.")
}

// consequences says what hidden files of some kinds lead to.
func consequences(dir string, list []string) (out []string) {
	in := func(f func(string) bool) bool {
		return slices.ContainsFunc(list, func(p string) bool { return f(path.Join(dir, p)) })
	}
	if in(isDatabase) {
		out = append(out, config.Show(dir)+": the package database is yours: it lists the old image's versions, so an upgrade may install what is there already; resetting the directory takes the image's")
	}
	if in(isLibrary) {
		out = append(out, config.Show(dir)+": libraries of yours are in use in place of the image's newer ones: its corrections to them do not arrive until you upgrade inside or reset the directory")
	}
	return out
}
