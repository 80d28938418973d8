package main

import (
	"fmt"
	"io"
	"unicode/utf16"
)

// ascii writes JSON in ASCII. Encoders escape what JSON demands: letters that
// turn the direction of others, C1 controls and what cannot be seen they leave,
// and names in it are a sandbox's. Each Write is whole values.
type ascii struct{ io.Writer }

func (a ascii) Write(b []byte) (int, error) {
	if _, err := a.Writer.Write(asciiJSON(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

func asciiJSON(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		switch {
		case r < 0x7f:
			out = append(out, byte(r))
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		}
	}
	return out
}
