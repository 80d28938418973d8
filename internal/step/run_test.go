package step

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

type nothing struct{}

func (nothing) Do(context.Context, Values) (Values, error) { return nil, nil }
func (nothing) Show() []string                             { return nil }

// world is a host with named changes in it.
type world struct {
	t       *testing.T
	r       *Runner
	made    []string // in order
	undone  []string
	fail    string // the step that fails
	stuck   string // the undo that fails
	path    string
	values  map[string]Values // what each step was given
	returns map[string]Values
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, path: filepath.Join(t.TempDir(), "journal"), values: map[string]Values{}, returns: map[string]Values{}}
	w.r = &Runner{
		Run: "r", Journal: w.open(), Now: time.Now,
		Do: func(_ context.Context, s Step, in Values) (Values, error) {
			w.r.mu.Lock()
			defer w.r.mu.Unlock()
			if !slices.ContainsFunc(w.r.Journal.Pending(), func(e Entry) bool { return e.Step == s.Name }) && len(s.Undo) > 0 {
				t.Errorf("%s runs before its undo is in the journal", s.Name)
			}
			w.values[s.Name] = in
			if s.Name == w.fail {
				return nil, errors.New("no luck")
			}
			w.made = append(w.made, s.Name)
			return w.returns[s.Name], nil
		},
		Undo: func(_ context.Context, u Undo) error {
			if u.Name == w.stuck {
				return errors.New("stuck")
			}
			w.undone = append(w.undone, u.Name)
			return nil
		},
	}
	return w
}

func (w *world) open() *Journal {
	w.t.Helper()
	f, err := os.OpenFile(w.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { f.Close() })
	j, err := NewJournal(f)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

func chain(names ...string) []Step {
	var steps []Step
	for i, n := range names {
		s := Step{Name: n, Op: nothing{}, Undo: []Undo{{Kind: "k", Name: n}}}
		if i > 0 {
			s.Needs = []string{names[i-1]}
		}
		steps = append(steps, s)
	}
	return steps
}

func TestUpAndDown(t *testing.T) {
	w := newWorld(t)
	w.returns["a"] = Values{"a.pid": "7"}
	out, err := w.r.Up(t.Context(), chain("a", "b", "c"))
	if err != nil {
		t.Fatal(err)
	}
	if out["a.pid"] != "7" || w.values["c"]["a.pid"] != "7" {
		t.Errorf("values: Up gave %v, step c got %v", out, w.values["c"])
	}
	if err := w.r.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"c", "b", "a"}; !reflect.DeepEqual(w.undone, want) {
		t.Errorf("undone %v, want %v", w.undone, want)
	}
	if p := w.open().Pending(); len(p) != 0 {
		t.Errorf("left in the journal: %v", p)
	}
}

func TestFailureUndoesItselfAndAllBefore(t *testing.T) {
	for i, fail := range []string{"a", "b", "c"} {
		w := newWorld(t)
		w.fail = fail
		_, err := w.r.Up(t.Context(), chain("a", "b", "c"))
		if err == nil || err.Error() != fail+": no luck" {
			t.Errorf("fail %s: got error %v", fail, err)
		}
		if err := w.r.Down(t.Context()); err != nil {
			t.Error(err)
		}
		want := []string{"c", "b", "a"}[2-i:]
		if !reflect.DeepEqual(w.undone, want) {
			t.Errorf("fail %s: undone %v, want %v", fail, w.undone, want)
		}
	}
}

func TestDownGoesOnPastFailures(t *testing.T) {
	w := newWorld(t)
	if _, err := w.r.Up(t.Context(), chain("a", "b", "c")); err != nil {
		t.Fatal(err)
	}
	w.stuck = "b"
	if err := w.r.Down(t.Context()); err == nil || err.Error() != "undoing b: stuck" {
		t.Errorf("got error %v", err)
	}
	if want := []string{"c", "a"}; !reflect.DeepEqual(w.undone, want) {
		t.Errorf("undone %v, want %v", w.undone, want)
	}
	// Another process takes over and needs only to undo b.
	w.r.Journal, w.undone, w.stuck = w.open(), nil, ""
	if err := w.r.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"b"}; !reflect.DeepEqual(w.undone, want) {
		t.Errorf("undone later: %v, want %v", w.undone, want)
	}
}

func TestIndependentStepsRunTogether(t *testing.T) {
	w := newWorld(t)
	both := make(chan struct{}, 2)
	w.r.Do = func(ctx context.Context, s Step, _ Values) (Values, error) {
		both <- struct{}{}
		for len(both) < 2 {
			if ctx.Err() != nil {
				return nil, errors.New(s.Name + " ran alone")
			}
			time.Sleep(time.Millisecond)
		}
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := w.r.Up(ctx, []Step{{Name: "a", Op: nothing{}}, {Name: "b", Op: nothing{}}}); err != nil {
		t.Fatal(err)
	}
}

func TestFailureEndsWhatRunsBesideIt(t *testing.T) {
	w := newWorld(t)
	w.r.Do = func(ctx context.Context, s Step, _ Values) (Values, error) {
		if s.Name == "a" {
			return nil, errors.New("no luck")
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err := w.r.Up(t.Context(), []Step{{Name: "a", Op: nothing{}}, {Name: "b", Op: nothing{}}})
	if err == nil || err.Error() != "a: no luck" {
		t.Errorf("got error %v, want the first failure", err)
	}
}

func TestObserverCanStopAStep(t *testing.T) {
	w := newWorld(t)
	w.r.Observe = func(e Event) error {
		if e.Kind == Begin && e.Step == "b" {
			return errors.New("not today")
		}
		return nil
	}
	if _, err := w.r.Up(t.Context(), chain("a", "b")); err == nil || err.Error() != "b: not today" {
		t.Errorf("got error %v", err)
	}
	if want := []string{"a"}; !reflect.DeepEqual(w.made, want) {
		t.Errorf("made %v, want %v", w.made, want)
	}
}

func TestImpossibleStepsAreRefused(t *testing.T) {
	for _, steps := range [][]Step{
		{{Name: "a", Needs: []string{"b"}}, {Name: "b", Needs: []string{"a"}}},
		{{Name: "a", Needs: []string{"nobody"}}},
		{{Name: "a"}, {Name: "a"}},
	} {
		w := newWorld(t)
		if _, err := w.r.Up(t.Context(), steps); err == nil {
			t.Errorf("%v: no error", steps)
		}
		if len(w.made) > 0 {
			t.Errorf("%v: made %v", steps, w.made)
		}
	}
}

func TestJournalSurvivesAnyCut(t *testing.T) {
	w := newWorld(t)
	if _, err := w.r.Up(t.Context(), chain("a", "b", "c")); err != nil {
		t.Fatal(err)
	}
	if err := w.r.Journal.Pop(3); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) + 1 {
		if err := os.WriteFile(w.path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		j := w.open()
		want := strings.Count(string(whole[:n]), "\n")
		if want == 4 {
			want = 2
		}
		if got := len(j.Pending()); got != want {
			t.Fatalf("cut at %d: %d entries, want %d", n, got, want)
		}
		// It can be gone on with.
		if err := j.Push("d", Undo{Kind: "k", Name: "d"}); err != nil {
			t.Fatal(err)
		}
		if got := len(w.open().Pending()); got != want+1 {
			t.Fatalf("cut at %d, one added: %d entries, want %d", n, got, want+1)
		}
	}
}

func TestJournalRefusesWhatItDidNotWrite(t *testing.T) {
	for _, text := range []string{
		"x\n",
		`{"n":2,"step":"a","undo":{"kind":"k"}}` + "\n",
		`{"n":1,"step":"a","undo":{"kind":"k"},"more":1}` + "\n",
		strings.Repeat(" ", journalLimit+1),
	} {
		w := newWorld(t)
		if err := os.WriteFile(w.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(w.path, os.O_RDWR|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewJournal(f); err == nil {
			t.Errorf("%.40q: no error", text)
		}
		f.Close()
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"n":1,"step":"a","undo":{"kind":"k","base":"","name":"n"}}` + "\n" + `{"popped":1}` + "\n"))
	f.Add([]byte(`{"n":1}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "journal")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		j, err := NewJournal(file)
		if err != nil {
			return
		}
		before := j.Pending()
		if err := j.Push("s", Undo{Kind: "k"}); err != nil {
			t.Fatal(err)
		}
		// What goes on with the file finds what was pending, and the new one last.
		file.Seek(0, 0)
		again, err := NewJournal(file)
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		got := again.Pending()
		if len(got) != len(before)+1 || !slices.Equal(got[:len(before)], before) || got[len(before)].Undo.Kind != "k" {
			t.Fatalf("%v and one more became %v", before, got)
		}
		for _, e := range slices.Backward(got) {
			if err := again.Pop(e.N); err != nil {
				t.Fatal(err)
			}
		}
		if left := again.Pending(); len(left) > 0 {
			t.Fatalf("%v is never undone", left)
		}
	})
}
