package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"lazaret/lock"
	"lazaret/lock/config"
)

// tellStale is the answer of --check.
func tellStale(out io.Writer, shown string, list []string) error {
	if len(list) == 0 {
		fmt.Fprintf(out, "%s: up to date\n", config.Show(shown))
		return nil
	}
	for _, d := range list {
		fmt.Fprintln(out, d)
	}
	return &exitStatus{exitStale, hinted{
		fmt.Errorf("%s is out of date in %s", config.Show(shown), count(len(list), "place")),
		`run "lazaret lock"`,
	}}
}

// tellLayers says in one line what a person might not expect about the layers.
func tellLayers(d *deps, talk io.Writer, in lock.Inputs, shown string) {
	user := d.userConfig()
	switch {
	case in.Workspace == nil:
		fmt.Fprintf(talk, "lazaret: note: there is no %s here: the lock is your own, %s\n", lock.WorkspacePath, config.Show(shown))
	case in.User == nil && user != "" && exists(user):
		fmt.Fprintf(talk, "lazaret: note: %s stays out of %s, which must mean the same to everybody; --user lets it in\n",
			config.Show(d.tilde(user)), config.Show(shown))
	}
}

func tellWarnings(talk io.Writer, warnings []lock.Warning) {
	for _, w := range warnings {
		fmt.Fprintf(talk, "lazaret: warning: %s\n", w)
	}
}

// tellExceptions says which allowed ranges lie inside denied ones.
func tellExceptions(talk io.Writer, file *lock.File) {
	for _, name := range slices.Sorted(maps.Keys(file.Profiles)) {
		for _, s := range file.Profiles[name].Network.Exceptions() {
			fmt.Fprintf(talk, "lazaret: note: profiles.%s.network: %s\n", name, s)
		}
	}
}

// tellPins lists the images whose pin is new or has moved.
func tellPins(out io.Writer, old, file *lock.File) {
	for _, name := range slices.Sorted(maps.Keys(file.Profiles)) {
		now := file.Profiles[name].Image
		var was lock.Image
		if old != nil {
			was = old.Profiles[name].Image
		}
		before, after := pinOf(was, file.Inputs.Platforms), pinOf(now, file.Inputs.Platforms)
		switch {
		case before == after && was.Ref == now.Ref:
		case was.Ref != now.Ref:
			fmt.Fprintf(out, "  %s: %s is %s\n", name, now.Ref, after)
		default:
			fmt.Fprintf(out, "  %s: %s was %s, is %s\n", name, now.Ref, before, after)
		}
	}
}

// pinOf is the digest that stands for an image in a message: the index's, else
// the manifest's of the first platform.
func pinOf(i lock.Image, platforms []string) string {
	if i.Index != "" {
		return i.Index
	}
	return i.Platforms[lock.PlatformKey(platforms[0])].Manifest
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
