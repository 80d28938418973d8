package terminfo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// The first two bytes of an entry, which say how wide its numbers are.
const (
	magic16 = 0o432
	magic32 = 0o1036
)

const headerSize = 12

// Check tells whether data is a compiled entry of that name, whole and with
// nothing that points out of it: see term(5).
func Check(name string, data []byte) error {
	if len(data) < headerSize {
		return errors.New("it is too short for a terminfo entry")
	}
	if len(data) > sizeMax {
		return fmt.Errorf("it is longer than the %d bytes that a terminfo entry can have", sizeMax)
	}
	var h [6]int
	for i := range h {
		h[i] = int(int16(binary.LittleEndian.Uint16(data[2*i:])))
	}
	magic, names, bools, nums, strs, table := h[0], h[1], h[2], h[3], h[4], h[5]
	wide := 2
	switch magic {
	case magic16:
	case magic32:
		wide = 4
	default:
		return errors.New("it does not begin as a terminfo entry")
	}
	if min(names, bools, nums, strs, table) < 0 {
		return errors.New("a size in it is negative")
	}
	at := headerSize + names + bools
	at += at % 2 // numbers begin at an even byte
	at += nums * wide
	offsets := at
	at += 2 * strs
	if at+table > len(data) || names == 0 {
		return errors.New("it is cut short")
	}
	text := data[headerSize : headerSize+names]
	if text[names-1] != 0 {
		return errors.New("its names have no end")
	}
	if !slices.ContainsFunc(bytes.Split(text[:names-1], []byte("|")), func(n []byte) bool { return string(n) == name }) {
		return fmt.Errorf("it describes another terminal than %s", name)
	}
	for i := range strs {
		off := int(int16(binary.LittleEndian.Uint16(data[offsets+2*i:])))
		if off >= table || off >= 0 && bytes.IndexByte(data[at+off:at+table], 0) < 0 {
			return errors.New("a text in it lies outside of it")
		}
	}
	return nil
}
