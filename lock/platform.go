package lock

import (
	"slices"
	"strings"
)

// Platforms are what a lock can be made for, sorted.
func Platforms() []string { return []string{"linux/amd64", "linux/arm64"} }

// PlatformKey is how a platform is written as a key: linux-amd64.
func PlatformKey(platform string) string { return strings.ReplaceAll(platform, "/", "-") }

func knownPlatform(p string) bool { return slices.Contains(Platforms(), p) }
