package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// input opens the named files one after the other, or standard input.
func (c *call) input(names []string, do func(name string, in io.Reader) error) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	return c.each(names, func(name string) error {
		f, err := c.open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		return do(name, f)
	})
}

// lines calls do with each line, its newline included where there is one.
func lines(in io.Reader, do func(line []byte) bool) error {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 && !do(line) {
			return nil
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// counted parses head's and tail's options: -n N, -N, -c N.
func counted(args []string, known string) (opts options, n int64, rest []string, err error) {
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && args[0][1] >= '0' && args[0][1] <= '9' {
		args = append([]string{"-n", args[0][1:]}, args[1:]...)
	}
	if opts, rest, err = parse(args, known); err != nil {
		return
	}
	n, err = strconv.ParseInt(strings.TrimPrefix(opts.value('c', opts.value('n', "10")), "+"), 10, 64)
	return
}

func (c *call) title(names []string, i *int, name string) {
	if len(names) > 1 {
		if *i > 0 {
			fmt.Fprintln(c.out)
		}
		*i++
		fmt.Fprintf(c.out, "==> %s <==\n", name)
	}
}

func head(c *call) int {
	opts, n, names, err := counted(c.args, "n:c:")
	if err != nil || n < 0 {
		return c.usage("[-n LINES | -c BYTES] [FILE...]")
	}
	count := 0
	return c.input(names, func(name string, in io.Reader) error {
		c.title(names, &count, name)
		if opts.has('c') {
			_, err := io.CopyN(c.out, in, n)
			if err == io.EOF {
				err = nil
			}
			return err
		}
		left := n
		if left == 0 {
			return nil
		}
		return lines(in, func(line []byte) bool {
			c.out.Write(line)
			left--
			return left > 0
		})
	})
}

func tail(c *call) int {
	opts, n, names, err := counted(c.args, "n:c:")
	if err != nil || n < 0 {
		return c.usage("[-n [+]LINES | -c BYTES] [FILE...]")
	}
	from := strings.HasPrefix(opts.value('c', opts.value('n', "")), "+")
	count := 0
	return c.input(names, func(name string, in io.Reader) error {
		c.title(names, &count, name)
		all, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		if opts.has('c') {
			if from {
				all = all[min(max(n-1, 0), int64(len(all))):]
			} else {
				all = all[max(int64(len(all))-n, 0):]
			}
			_, err = c.out.Write(all)
			return err
		}
		split := bytes.SplitAfter(all, []byte("\n"))
		if len(split[len(split)-1]) == 0 {
			split = split[:len(split)-1]
		}
		skip := max(int64(len(split))-n, 0)
		if from {
			skip = min(max(n-1, 0), int64(len(split)))
		}
		_, err = c.out.Write(bytes.Join(split[skip:], nil))
		return err
	})
}

func wc(c *call) int {
	opts, names, err := parse(c.args, "lwcm")
	if err != nil {
		return c.usage("[-lwcm] [FILE...]")
	}
	if len(opts) == 0 {
		opts = options{'l': {""}, 'w': {""}, 'c': {""}}
	}
	show := func(counts [4]int, name string) {
		var fields []string
		for i, flag := range []byte("lwmc") {
			if opts.has(flag) {
				fields = append(fields, strconv.Itoa(counts[i]))
			}
		}
		if name != "-" {
			fields = append(fields, name)
		}
		fmt.Fprintln(c.out, strings.Join(fields, " "))
	}
	var total [4]int
	status := c.input(names, func(name string, in io.Reader) error {
		b, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		counts := [4]int{bytes.Count(b, []byte("\n")), len(bytes.Fields(b)), utf8.RuneCount(b), len(b)}
		for i := range counts {
			total[i] += counts[i]
		}
		show(counts, name)
		return nil
	})
	if len(names) > 1 {
		show(total, "total")
	}
	return status
}

func sortCmd(c *call) int {
	opts, names, err := parse(c.args, "nru")
	if err != nil {
		return c.usage("[-nru] [FILE...]")
	}
	var all []string
	status := c.input(names, func(_ string, in io.Reader) error {
		return lines(in, func(line []byte) bool {
			all = append(all, strings.TrimSuffix(string(line), "\n"))
			return true
		})
	})
	slices.SortStableFunc(all, func(a, b string) int {
		if opts.has('n') {
			if d := number(a) - number(b); d != 0 {
				return int(d / max(d, -d))
			}
		}
		return strings.Compare(a, b)
	})
	if opts.has('u') {
		all = slices.Compact(all)
	}
	if opts.has('r') {
		slices.Reverse(all)
	}
	w := bufio.NewWriter(c.out)
	defer w.Flush()
	for _, line := range all {
		fmt.Fprintln(w, line)
	}
	return status
}

// number is the number a line starts with.
func number(s string) float64 {
	s = strings.TrimSpace(s)
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.' || end == 0 && s[end] == '-') {
		end++
	}
	f, _ := strconv.ParseFloat(s[:end], 64)
	return f
}

func uniq(c *call) int {
	opts, names, err := parse(c.args, "cdu")
	if err != nil || len(names) > 1 {
		return c.usage("[-cdu] [FILE]")
	}
	last, count := "", 0
	flush := func() {
		if count == 0 || opts.has('d') && count == 1 || opts.has('u') && count > 1 {
			return
		}
		if opts.has('c') {
			fmt.Fprintf(c.out, "%7d ", count)
		}
		fmt.Fprintln(c.out, last)
	}
	status := c.input(names, func(_ string, in io.Reader) error {
		return lines(in, func(line []byte) bool {
			s := strings.TrimSuffix(string(line), "\n")
			if count > 0 && s != last {
				flush()
				count = 0
			}
			last = s
			count++
			return true
		})
	})
	flush()
	return status
}

func tee(c *call) int {
	opts, names, err := parse(c.args, "ai")
	if err != nil {
		return c.usage("[-a] [FILE...]")
	}
	flag := os.O_TRUNC
	if opts.has('a') {
		flag = os.O_APPEND
	}
	out := []io.Writer{c.out}
	status := c.each(names, func(name string) error {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|flag, 0o666)
		if err == nil {
			out = append(out, f)
		}
		return err
	})
	if _, err := io.Copy(io.MultiWriter(out...), c.in); err != nil {
		return c.fail(err)
	}
	return status
}

func seq(c *call) int {
	nums := []int64{1, 1, 1} // first, step, last
	for i, a := range c.args {
		n, err := strconv.ParseInt(a, 10, 64)
		if err != nil || len(c.args) > 3 {
			return c.usage("[FIRST [STEP]] LAST")
		}
		switch {
		case i == len(c.args)-1:
			nums[2] = n
		default:
			nums[i] = n
		}
	}
	if len(c.args) == 0 || nums[1] == 0 {
		return c.usage("[FIRST [STEP]] LAST")
	}
	w := bufio.NewWriter(c.out)
	defer w.Flush()
	for n := nums[0]; nums[1] > 0 && n <= nums[2] || nums[1] < 0 && n >= nums[2]; n += nums[1] {
		fmt.Fprintln(w, n)
	}
	return 0
}

func yes(c *call) int {
	text := strings.Join(c.args, " ")
	if text == "" {
		text = "y"
	}
	block := bytes.Repeat([]byte(text+"\n"), 512)
	for {
		if _, err := c.out.Write(block); err != nil {
			return c.fail(err)
		}
	}
}
