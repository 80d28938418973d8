// Package gitshadow is what a sandbox has of a git repository, and what comes
// back out of it. It owns every call of git on the host, the store that a
// sandbox writes its objects and refs to, and the way from there to the host's
// repository. It never lets git loose on what a sandbox can write.
package gitshadow
