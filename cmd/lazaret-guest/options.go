package main

import (
	"fmt"
	"strings"
)

// options are the flags of a call, in the manner of getopt.
type options map[byte][]string

func (o options) has(flag byte) bool { return o[flag] != nil }

// value is the last value of a flag, or the default.
func (o options) value(flag byte, otherwise string) string {
	if v := o[flag]; v != nil {
		return v[len(v)-1]
	}
	return otherwise
}

// parse splits arguments into the flags that known lists (a colon after those
// that take a value) and the rest, which starts at the first other argument.
func parse(args []string, known string) (options, []string, error) {
	opts := make(options)
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		arg := args[0][1:]
		args = args[1:]
		if arg == "-" {
			break
		}
		for arg != "" {
			flag := arg[0]
			arg = arg[1:]
			i := strings.IndexByte(known, flag)
			if i < 0 || flag == ':' {
				return nil, nil, fmt.Errorf("unknown option -%c", flag)
			}
			if i+1 == len(known) || known[i+1] != ':' {
				opts[flag] = append(opts[flag], "")
				continue
			}
			if arg == "" {
				if len(args) == 0 {
					return nil, nil, fmt.Errorf("option -%c needs a value", flag)
				}
				arg, args = args[0], args[1:]
			}
			opts[flag] = append(opts[flag], arg)
			arg = ""
		}
	}
	return opts, args, nil
}
