package config

import "strings"

// maxDepth is how deep arrays and inline tables may nest. The schema needs
// three; the TOML parser recurses, and a file of a million brackets would
// exhaust its stack, which nothing can recover from.
const maxDepth = 32

const tooDeep = "keys, arrays or tables nest too deeply"

// place is where one value of a TOML document was written. The TOML library
// tells no positions of what it has decoded, so they are found a second time,
// by a scanner that knows only how keys, strings, comments and brackets look.
type place struct {
	line  int
	table map[string]*place // keys of a table
	array []*place          // elements of an array
}

// locator scans a TOML document. It takes some documents that are not valid;
// the library decides about those.
type locator struct {
	src   string
	pos   int
	line  int
	depth int
	// headers are the lines of the headers that it met.
	headers []int
}

// syntax is where a locator gave up.
type syntax struct {
	line int
	msg  string
}

// locate finds the places of all keys in a document.
func locate(data []byte) (root *place, failed *syntax) {
	root = &place{line: 1, table: map[string]*place{}}
	if _, failed := scan(data, root); failed != nil {
		return nil, failed
	}
	return root, nil
}

// Headers gives the lines, counted from one, on which the headers of a document's
// tables stand, and not what lies in a string or an array and only looks like
// one. known is the last line of which that can be told.
func Headers(data []byte) (lines []int, known int) {
	l, failed := scan(data, &place{line: 1, table: map[string]*place{}})
	if failed != nil {
		return l.headers, failed.line - 1
	}
	return l.headers, l.line
}

// scan scans a document into root.
func scan(data []byte, root *place) (l *locator, failed *syntax) {
	l = &locator{src: strings.TrimPrefix(string(data), "\xef\xbb\xbf"), line: 1}
	defer func() {
		if r := recover(); r != nil {
			s, ok := r.(syntax)
			if !ok {
				panic(r)
			}
			failed = &s
		}
	}()
	l.document(root)
	return l, nil
}

func (l *locator) fail(msg string) { panic(syntax{l.line, msg}) }

func (l *locator) document(root *place) {
	table := root
	for {
		l.blank()
		switch {
		case l.pos == len(l.src):
			return
		case l.accept("[["):
			line := l.line
			key := l.key()
			l.expect("]]")
			l.headers = append(l.headers, line)
			table = &place{line: line, table: map[string]*place{}}
			parent := l.descend(root, key[:len(key)-1], line)
			last := key[len(key)-1]
			list := parent.table[last]
			if list == nil {
				list = &place{line: line}
				parent.table[last] = list
			}
			list.array = append(list.array, table)
		case l.accept("["):
			line := l.line
			key := l.key()
			l.expect("]")
			l.headers = append(l.headers, line)
			table = l.descend(root, key, line)
			table.line = line // it may have been implied by an earlier header
		default:
			l.pair(table)
		}
	}
}

// descend gives the table that key names below t, making what is missing.
// An array of tables stands for its last element.
func (l *locator) descend(t *place, key []string, line int) *place {
	for _, k := range key {
		next := t.table[k]
		switch {
		case next == nil:
			next = &place{line: line, table: map[string]*place{}}
			t.table[k] = next
		case next.table == nil && len(next.array) > 0:
			next = next.array[len(next.array)-1]
		}
		if next.table == nil {
			l.fail("a key is used both as a value and as a table")
		}
		t = next
	}
	return t
}

// pair scans key = value into t.
func (l *locator) pair(t *place) {
	line := l.line
	key := l.key()
	l.expect("=")
	t = l.descend(t, key[:len(key)-1], line)
	last := key[len(key)-1]
	if t.table[last] != nil {
		l.fail("a key is defined twice")
	}
	v := l.value()
	v.line = line
	t.table[last] = v
}

// key scans a dotted key.
func (l *locator) key() []string {
	var key []string
	for {
		// The library's time grows with the square of a key's parts.
		if len(key) == maxDepth {
			l.fail(tooDeep)
		}
		l.space()
		switch {
		case l.accept(`"`):
			raw := l.until(`"`, true)
			s, ok := unescape(raw)
			if !ok {
				l.fail("a key holds an invalid escape")
			}
			key = append(key, s)
		case l.accept("'"):
			key = append(key, l.until("'", false))
		default:
			start := l.pos
			for l.pos < len(l.src) && bare(l.src[l.pos]) {
				l.pos++
			}
			if start == l.pos {
				l.fail("expected a key")
			}
			key = append(key, l.src[start:l.pos])
		}
		l.space()
		if !l.accept(".") {
			return key
		}
	}
}

func (l *locator) value() *place {
	l.space()
	v := &place{line: l.line}
	switch {
	case l.accept(`"""`):
		l.multiline(`"`, true)
	case l.accept(`'''`):
		l.multiline(`'`, false)
	case l.accept(`"`):
		l.until(`"`, true)
	case l.accept(`'`):
		l.until(`'`, false)
	case l.accept("["):
		l.enter()
		v.array = []*place{}
		for l.blank(); !l.accept("]"); l.blank() {
			v.array = append(v.array, l.value())
			l.blank()
			if !l.accept(",") && !l.peek("]") {
				l.fail("expected , or ] in an array")
			}
		}
		l.depth--
	case l.accept("{"):
		l.enter()
		v.table = map[string]*place{}
		for l.blank(); !l.accept("}"); l.blank() {
			l.pair(v)
			l.blank()
			if !l.accept(",") && !l.peek("}") {
				l.fail("expected , or } in an inline table")
			}
		}
		l.depth--
	default: // a number, a boolean, a date
		start := l.pos
		for l.pos < len(l.src) && !strings.ContainsRune(",]}#\r\n", rune(l.src[l.pos])) {
			l.pos++
		}
		if start == l.pos {
			l.fail("expected a value")
		}
	}
	return v
}

func (l *locator) enter() {
	if l.depth++; l.depth > maxDepth {
		l.fail(tooDeep)
	}
}
