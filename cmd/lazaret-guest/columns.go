package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

func cut(c *call) int {
	const synopsis = "-f LIST [-d CHARACTER] | -c LIST [FILE...]"
	opts, names, err := parse(c.args, "f:d:c:b:s")
	if err != nil || !opts.has('f') && !opts.has('c') && !opts.has('b') {
		return c.usage(synopsis)
	}
	wanted, err := ranges(opts.value('f', opts.value('c', opts.value('b', ""))))
	if err != nil {
		return c.usage(synopsis)
	}
	sep := opts.value('d', "\t")
	return c.input(names, func(_ string, in io.Reader) error {
		return lines(in, func(line []byte) bool {
			s := strings.TrimSuffix(string(line), "\n")
			parts, glue := strings.Split(s, sep), sep
			if !opts.has('f') {
				parts, glue = strings.Split(s, ""), ""
			} else if len(parts) == 1 {
				if !opts.has('s') {
					fmt.Fprintln(c.out, s)
				}
				return true
			}
			var kept []string
			for i, p := range parts {
				if wanted(i + 1) {
					kept = append(kept, p)
				}
			}
			fmt.Fprintln(c.out, strings.Join(kept, glue))
			return true
		})
	})
}

// ranges parses "1,3-5,7-".
func ranges(list string) (func(int) bool, error) {
	type span struct{ from, to int }
	var spans []span
	for _, part := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		s := span{1, 1 << 30}
		var err error
		if from != "" {
			if s.from, err = strconv.Atoi(from); err != nil {
				return nil, err
			}
		}
		if !isRange {
			s.to = s.from
		} else if to != "" {
			if s.to, err = strconv.Atoi(to); err != nil {
				return nil, err
			}
		}
		spans = append(spans, s)
	}
	return func(n int) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return s.from <= n && n <= s.to })
	}, nil
}

func tr(c *call) int {
	opts, args, err := parse(c.args, "dsc")
	if err != nil || len(args) == 0 || len(args) < 2 && !opts.has('d') && !opts.has('s') {
		return c.usage("[-cds] SET [SET]")
	}
	from := set(args[0])
	to := from
	if len(args) > 1 && !opts.has('d') {
		to = set(args[1])
	}
	if len(to) == 0 {
		return c.usage("[-cds] SET [SET]")
	}
	in, w := bufio.NewReader(c.in), bufio.NewWriter(c.out)
	defer w.Flush()
	last := rune(-1)
	for {
		r, _, err := in.ReadRune()
		if err == io.EOF {
			return 0
		} else if err != nil {
			return c.fail(err)
		}
		i := slices.Index(from, r)
		hit := (i >= 0) != opts.has('c')
		if hit && opts.has('d') {
			continue
		}
		out := r
		if hit && len(args) > 1 {
			if opts.has('c') {
				i = len(to)
			}
			out = to[min(i, len(to)-1)]
		}
		if opts.has('s') && hit && out == last {
			continue
		}
		last = out
		w.WriteRune(out)
	}
}

// set expands tr's sets: ranges, \n and \t, [:upper:] and its like.
func set(s string) []rune {
	for class, chars := range map[string]string{"upper": "A-Z", "lower": "a-z", "digit": "0-9", "alpha": "A-Za-z", "alnum": "A-Za-z0-9", "space": " \t\n\v\f\r"} {
		s = strings.ReplaceAll(s, "[:"+class+":]", chars)
	}
	s = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\0`, "\x00", `\\`, `\`).Replace(s)
	in := []rune(s)
	var out []rune
	for i := 0; i < len(in); i++ {
		if i+2 < len(in) && in[i+1] == '-' && in[i] <= in[i+2] {
			for r := in[i]; r <= in[i+2]; r++ {
				out = append(out, r)
			}
			i += 2
			continue
		}
		out = append(out, in[i])
	}
	return out
}
