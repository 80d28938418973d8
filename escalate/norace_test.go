//go:build !race

package escalate

const raced = false
