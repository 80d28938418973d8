package image

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// ReferenceError says that a reference cannot be used as it is written.
type ReferenceError struct {
	Ref     string
	Reason  string
	Suggest string // what to write or do instead, or ""
}

func (e *ReferenceError) Error() string { return fmt.Sprintf("image %q: %s", e.Ref, e.Reason) }
func (e *ReferenceError) Hint() string  { return e.Suggest }

// PlatformError says that an image lacks a platform.
type PlatformError struct {
	Ref  string
	Want string
	Have []string // what there is instead
}

func (e *PlatformError) Error() string {
	have := "nothing that runs"
	if len(e.Have) > 0 {
		have = strings.Join(e.Have, ", ")
	}
	return fmt.Sprintf("image %q: no %s, it has %s", e.Ref, e.Want, have)
}

func (e *PlatformError) Hint() string {
	if len(e.Have) == 0 {
		return "choose another image"
	}
	return fmt.Sprintf("choose another image, or lock only what it has: lazaret lock --platform %s", e.Have[0])
}

// GoneError says that a registry no longer has a pinned digest. There is no
// fallback to the tag: that would be another image.
type GoneError struct {
	Ref, Registry, Digest string
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("image %q: %s is gone from the registry %s", e.Ref, e.Digest, e.Registry)
}

func (e *GoneError) Hint() string {
	return "pin a digest the registry still has, or name a tag and run \"lazaret lock --update\""
}

// MissingChildError says that an index names a manifest the registry lacks.
type MissingChildError struct {
	Ref, Registry, Index, Platform, Digest string
}

func (e *MissingChildError) Error() string {
	return fmt.Sprintf("image %q: its index %s names %s for %s, which %s does not have",
		e.Ref, e.Index, e.Digest, e.Platform, e.Registry)
}

func (e *MissingChildError) Hint() string {
	return "push the image again with all its platforms, or lock without this one (lazaret lock --platform …)"
}

// DigestError is an integrity failure: bytes are not what their name says.
type DigestError struct {
	Ref, From string // From: the registry or layout that handed the bytes out
	What      string // "manifest", "config", …
	Want, Got string
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("image %q: THE %s DOES NOT MATCH ITS DIGEST: %s should be %s but is %s",
		e.Ref, strings.ToUpper(e.What), e.From, e.Want, e.Got)
}

func (e *DigestError) Hint() string {
	return "somebody or something changed it; do not use this image from there"
}

// AnnotationError says that an image carries annotations that a container
// runtime would take for its own settings.
type AnnotationError struct {
	Ref, Platform string
	Keys          []string
}

func (e *AnnotationError) Error() string {
	return fmt.Sprintf("image %q: its %s manifest carries annotations a container runtime obeys: %s",
		e.Ref, e.Platform, printable(strings.Join(e.Keys, ", "), 300))
}

func (e *AnnotationError) Hint() string {
	return "they could switch the sandbox off; build or choose an image without them"
}

// ManifestError says that a manifest, index or config is not one lazaret reads.
type ManifestError struct {
	Ref    string
	Reason string
	Do     string // the hint, where there is a better one
}

func (e *ManifestError) Error() string { return fmt.Sprintf("image %q: %s", e.Ref, e.Reason) }
func (e *ManifestError) Hint() string {
	return cmp.Or(e.Do, "choose or build a container image in OCI format")
}

// LayoutError says that an oci:DIR cannot be read or does not say which image.
type LayoutError struct {
	Ref    string
	Reason string
	Err    error
	Do     string // the hint
}

func (e *LayoutError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("image %q: %s: %v", e.Ref, e.Reason, e.Err)
	}
	return fmt.Sprintf("image %q: %s", e.Ref, e.Reason)
}

func (e *LayoutError) Unwrap() error { return e.Err }
func (e *LayoutError) Hint() string  { return e.Do }

// HelperError says that this build has no usable helper binary.
type HelperError struct {
	Name, Platform string
	Reason         string
}

func (e *HelperError) Error() string {
	return fmt.Sprintf("helper %s for %s: %s", e.Name, e.Platform, e.Reason)
}

func (e *HelperError) Hint() string { return "run \"make build\"" }

// RegistryError is a registry that refused, or could not be asked.
type RegistryError struct {
	Ref, Registry string
	Status        int           // HTTP status, 0 when there was none
	Login         string        // where the credentials used came from, "" for none
	Problems      []string      // why credentials that may exist could not be read
	RetryAfter    time.Duration // what the registry asked for when lazaret gave up
	Err           error
}

func (e *RegistryError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "image %q: asking %s ", e.Ref, e.Registry)
	if e.Login != "" {
		fmt.Fprintf(&b, "with the credentials in %s", e.Login)
	} else {
		b.WriteString("without credentials")
	}
	fmt.Fprintf(&b, ": %s", printable(e.Err.Error(), 400))
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, " (it asks to wait %s)", e.RetryAfter.Round(time.Second))
	}
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "; %s", printable(p, 300))
	}
	return b.String()
}

func (e *RegistryError) Unwrap() error { return e.Err }

func (e *RegistryError) Hint() string {
	var host *HostError
	if errors.As(e.Err, &host) && host.Do != "" {
		return host.Do
	}
	login := "podman login " + e.Registry
	switch {
	case len(e.Problems) > 0 && (e.Status == 401 || e.Status == 403 || e.Status == 429):
		return "repair the credentials, or run \"" + login + "\""
	case e.Status == 401, e.Status == 403:
		if e.Login != "" {
			return "the stored credentials may be stale: run \"" + login + "\""
		}
		return "check the name; if the image is private, run \"" + login + "\""
	case e.Status == 429:
		if e.Login == "" {
			return "wait, or raise the limit with \"" + login + "\""
		}
		return "wait and try again"
	case e.Status == 404:
		return "check the name and the tag"
	case e.Status >= 500:
		return "try again later"
	}
	return "check the name and the network"
}

// visible tells whether a character shows as itself: some letters and marks that
// count as printable have no shape.
func visible(c rune) bool {
	return unicode.IsPrint(c) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, c) && !unicode.Is(unicode.Variation_Selector, c)
}

// printable makes text from outside fit for a terminal: without control,
// bidirectional and other invisible characters, and not endless.
func printable(s string, limit int) string {
	var b strings.Builder
	for _, c := range s {
		if b.Len() > limit {
			b.WriteString("…")
			break
		}
		if c == '\n' || c == '\t' {
			c = ' '
		}
		if visible(c) {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, "\\u%04x", c)
		}
	}
	return b.String()
}
