package config

import (
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// lineOf finds the line of a value by its key in the form of Error.Key.
func lineOf(n *node, want string) int {
	lines := map[string]int{}
	var walk func(n *node, key string)
	walk = func(n *node, key string) {
		lines[key] = n.pos.Line
		switch v := n.value.(type) {
		case map[string]*node:
			for k, e := range v {
				walk(e, child(key, k))
			}
		case []*node:
			for i, e := range v {
				walk(e, element(key, i))
			}
		}
	}
	walk(n, "")
	return lines[want]
}

func TestLines(t *testing.T) {
	const doc = `# comment with = and [brackets] and """
a.b.'c d'."e\u0041\"." = 1 # 2: dotted, quoted

s = """
line "quoted" \""" not the end
[not.a.table]
x = 1""""" # closed by five
l = '''
\''' # 8: a backslash escapes nothing here
after = 'x # not a comment' # 10
arr = [ # 11
  "one", # [ comment
  'two]', [ 3,
    4, # 14
  ],
  { in = "x",
    line = [ 1,
      2 ] }, # 18

]
inline = { x = 1, y.z = { w = '}' } } # 21
date = 1979-05-27 07:32:00 # 22
[t.u] # 23
k = -1_000.5e+3
[[t.list]] # 25
k = 1
[t.list.sub] # 27
k = 1
[[t.list]] # 29
  k = 2
[t.list.sub] # 31
  k = 2
[t] # 33
[a.b.later] # 34
`
	p := &problems{}
	n := parse(Layer{Name: "x", Data: []byte(strings.ReplaceAll(doc, "[a.b.later] # 34\n", ""))}, p)
	if n == nil {
		t.Fatal(p.err())
	}
	for key, line := range map[string]int{
		"a": 2, "a.b": 2, `a.b."c d"`: 2, `a.b."c d"."eA\"."`: 2,
		"s": 4, "l": 8, "after": 10, "arr": 11, "arr[0]": 12, "arr[1]": 13, "arr[2]": 13, "arr[2][0]": 13, "arr[2][1]": 14,
		"arr[3]": 16, "arr[3].in": 16, "arr[3].line": 17, "arr[3].line[0]": 17, "arr[3].line[1]": 18,
		"inline": 21, "inline.x": 21, "inline.y.z.w": 21, "date": 22,
		"t.u": 23, "t.u.k": 24, "t.list": 25, "t.list[0]": 25, "t.list[0].k": 26, "t.list[0].sub": 27, "t.list[0].sub.k": 28,
		"t.list[1]": 29, "t.list[1].k": 30, "t.list[1].sub": 31, "t.list[1].sub.k": 32, "t": 33,
	} {
		if got := lineOf(n, key); got != line {
			t.Errorf("%s is on line %d, got %d", key, line, got)
		}
	}
}

func TestLinesWithCRLFAndBOM(t *testing.T) {
	doc := "\xef\xbb\xbf# x\r\n[a]\r\nb = 'x' # c\r\nd = [\r\n1]\r\n"
	n := parse(Layer{Name: "x", Data: []byte(doc)}, &problems{})
	if n == nil {
		t.Fatal("not parsed")
	}
	for key, line := range map[string]int{"a": 2, "a.b": 3, "a.d": 4, "a.d[0]": 5} {
		if got := lineOf(n, key); got != line {
			t.Errorf("%s is on line %d, got %d", key, line, got)
		}
	}
}

// The TOML library recurses into nested arrays; this much of it takes its
// stack, and the process with it.
func TestDeepNesting(t *testing.T) {
	for _, open := range []string{"[", "{a=", "[{a=", "{a.a.a="} {
		p := &problems{}
		if n := parse(Layer{Name: "x", Data: []byte("a = " + strings.Repeat(open, 200_000))}, p); n != nil {
			t.Fatal("parsed")
		}
		if got, want := p.err().Error(), "x:1: keys, arrays or tables nest too deeply"; got != want {
			t.Errorf("%s: got %s, want %s", open, got, want)
		}
	}
}

// So do the parts of a dotted key, though slowly: half a million of them took
// minutes.
func TestLongKeys(t *testing.T) {
	for _, text := range []string{strings.Repeat("a.", 500_000) + "a = 1", "[" + strings.Repeat("a.", 500_000) + "a]"} {
		_, err := load("\n" + text)
		if got, want := all(err), "lazaret.toml:2: keys, arrays or tables nest too deeply\n"; got != want {
			t.Errorf("got %swant %s", got, want)
		}
	}
}

// sameShape tells whether the locator saw the keys and elements that the
// library decoded, no more and no fewer.
func sameShape(v any, p *place) bool {
	switch v := v.(type) {
	case map[string]any:
		if len(v) != len(p.table) {
			return false
		}
		for k, e := range v {
			if p.table[k] == nil || !sameShape(e, p.table[k]) {
				return false
			}
		}
	case []map[string]any:
		if len(v) != len(p.array) {
			return false
		}
		for i, e := range v {
			if !sameShape(e, p.array[i]) {
				return false
			}
		}
	case []any:
		if len(v) != len(p.array) {
			return false
		}
		for i, e := range v {
			if !sameShape(e, p.array[i]) {
				return false
			}
		}
	default:
		return p.table == nil && p.array == nil
	}
	return true
}

// Whatever the library takes, the locator takes too, and sees the same keys.
func FuzzLocate(f *testing.F) {
	f.Add("a.b = [1, {c = 'x'}, \"\"\"\n\"\"\"]\n[[d]]\n[d.e]\n")
	f.Add("\"\\u0061\\x62\\e\" = '''a''''' # c\r\n'' = 1979-05-27T07:32:00Z\n")
	f.Add("a = {\n b = [\n 1, # c\n ], }\n[ a . \"b\" ]\n")
	f.Add("[a]\n[a.b]\n[[a.c]]\nd.e.f = 1\nd.e.g = -inf\n")
	f.Add(base)
	f.Fuzz(func(t *testing.T, text string) {
		root, failed := locate([]byte(text))
		if failed != nil && failed.msg == tooDeep {
			return
		}
		var v map[string]any
		if err := toml.Unmarshal([]byte(text), &v); err != nil {
			return
		}
		if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
			return // the library skips these; parse refuses them before
		}
		if failed != nil {
			t.Fatalf("the locator gave up on line %d: %s", failed.line, failed.msg)
		}
		if !sameShape(v, root) {
			t.Fatalf("the locator saw other keys: %v", v)
		}
	})
}
