package config

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	sizeForm = regexp.MustCompile(`^([1-9][0-9]*)([bkmg]?)$`)
	cpuForm  = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?$`)
)

// parseSize reads a number of bytes with podman's units: b, k, m or g.
func parseSize(s string) (int64, error) {
	m := sizeForm.FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return 0, errorf(`write a size such as "512m" or "4g"`, "%s is not a size", quote(s))
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := map[string]int64{"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[m[2]]
	if err != nil || n > math.MaxInt64/unit {
		return 0, errorf(`write a size such as "512m" or "4g"`, "%s is too large", quote(s))
	}
	return n * unit, nil
}

// parseMemory gives the canonical text of a memory limit.
func parseMemory(s string) (string, error) {
	_, err := parseSize(s)
	return strings.ToLower(s), err
}

// parseCPUs gives the canonical text of a number of processors.
func parseCPUs(s string) (string, error) {
	if n, err := strconv.ParseFloat(s, 64); err != nil || n <= 0 || n > 8192 || !cpuForm.MatchString(s) {
		return "", errorf(`write a decimal above 0, such as "1.5"`, "%s is not a number of processors", quote(s))
	}
	if strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return s, nil
}

// maxTimeout is long enough for anybody to answer.
const maxTimeout = 24 * time.Hour

func parseTimeout(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Second || d > maxTimeout {
		return 0, errorf(`write a duration such as "5m", from 1s to 24h`, "%s is not a time to wait", quote(s))
	}
	return d, nil
}

// maxOutput bounds what one request can make lazaret keep in memory.
const maxOutput = 64 << 20

func checkOutput(n int64) error {
	if n < 1 || n > maxOutput {
		return errorf(`write a size from "1b" to "64m"`, "%d bytes are not a size to keep", n)
	}
	return nil
}
