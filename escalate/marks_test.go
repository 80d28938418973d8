package escalate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	shellquote "github.com/kballard/go-shellquote"
	"golang.org/x/sys/unix"

	"lazaret/escalate/wire"
	"lazaret/lock/config"
)

// TestMarks: a person sees what of a command the sandbox can change, and what
// does not show.
func TestMarks(t *testing.T) {
	d := newDeciding(t)
	script := filepath.Join(d.ws, "x.sh")
	os.WriteFile(script, nil, 0o644)
	os.Symlink("/etc/shadow", filepath.Join(d.ws, "report.txt"))
	os.Symlink(script, filepath.Join(d.dir, "leads-in"))
	os.MkdirAll(filepath.Join(d.dir, "home/sub"), 0o755)
	os.MkdirAll(filepath.Join(d.ws, "a/b/c"), 0o755)
	for _, name := range []string{"home/id_key", "ws/id_key", "ws/a/x"} {
		os.WriteFile(filepath.Join(d.dir, name), []byte(name), 0o644)
	}
	for from, to := range map[string]string{
		"ws/docs": filepath.Join(d.dir, "home/sub"), "ws/@key": filepath.Join(d.dir, "home/id_key"), "ws/<key": filepath.Join(d.dir, "home/id_key"),
		"ws/deep": "a/b", "ws/new-key": filepath.Join(d.dir, "home/none"), "ws/loop": "loop", "away": "home/sub",
	} {
		if err := os.Symlink(to, filepath.Join(d.dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	// What a text says and the kernel does are not the same.
	if b, err := os.ReadFile(d.ws + "/docs/../id_key"); string(b) != "home/id_key" {
		t.Fatalf("the attack does not work: %q, %v", b, err)
	}
	m := Marker{Lookup: d.Lookup, Dir: d.ws, Banned: config.Banned}
	for _, tt := range []struct {
		argv []string
		want string // "arg:kind …"
	}{
		{[]string{"aws", "sts", "get-caller-identity"}, ""},
		{[]string{"aws", "x.sh"}, "1:writable"},
		{[]string{"aws", "./x.sh", script, "not/there", "a/not/there"}, "1:writable 2:writable 4:writable"},
		{[]string{"aws", "--file=x.sh", "-fx.sh", "file://" + script, "@x.sh", "k=v,src=x.sh:ro"}, "1:writable 2:writable 3:writable 4:writable 5:writable"},
		{[]string{"aws", "report.txt"}, "1:link"},
		{[]string{"aws", "@key", "<key", "--x=@key", "@other"}, "1:link 2:link 3:link"}, // a link can have such a name
		{[]string{"aws", filepath.Join(d.dir, "leads-in")}, "1:writable"},
		{[]string{"aws", filepath.Join(d.dir, "volume", "new")}, "1:writable"},
		{[]string{"aws", "/workspace/x.sh", "/run/lazaret/certs"}, "1:inside 2:inside"},
		{[]string{"aws", "/etc/passwd", "../outside"}, ""},
		// As the kernel goes, not as the text reads.
		{[]string{"aws", "docs/../id_key", "docs/../../bin/aws", "--key=docs/../id_key"}, "1:link 2:link 3:writable 3:link"},
		{[]string{"aws", "deep/../../x", "deep/c/../../x.sh"}, "1:link 2:link"},
		{[]string{"aws", "bin/../../home/id_key", "nothing/../../home/id_key", "."}, "1:writable 2:writable 3:writable"},
		// Nor as the text reads where the kernel finds nothing: some programs go by that.
		{[]string{"aws", "absent/../report.txt", "x.sh/../report.txt", "-oabsent/../report.txt", "absent/../a/x", "absent/../docs/../id_key"}, "1:link 2:link 3:link 4:writable 5:writable"},
		{[]string{"aws", filepath.Join(d.dir, "leads-in") + "/..", filepath.Join(d.dir, "away") + "/../ws/x.sh"}, "1:writable 2:writable"},
		{[]string{"aws", "new-key", "loop", "/proc/self/cwd/x.sh", "/proc/thread-self/cwd/new"}, "1:link 2:writable 3:writable 4:writable"},
		{[]string{"aws", "-odocs/../id_key", "@docs/../id_key", "/etc:docs/../id_key:ro", "f=<docs/../id_key;type=x"}, "1:writable 1:link 2:link 3:link 4:writable 4:link"},
		{[]string{"aws", strings.Repeat("a,", 100) + "report.txt"}, "1:writable"},
		{[]string{"aws", "a\u202eb", "a\u200b", "x\x1b[2K", "a\nb", "caf\u00e9", "\u00a0\u00a0"}, "1:hidden 2:hidden 3:hidden 4:hidden 6:hidden"},
		{[]string{"aws", "p\u0430ypal", "\u0434\u0430", "a\u2215b", "\uff41"}, "1:alike 3:alike 4:alike"},
		{[]string{"bash", "x.sh"}, "1:writable 0:runs"},
		{[]string{"ctx"}, "0:runs"},
		{[]string{"env", "X=1", "git", "push"}, "2:writable 0:runs"}, // there is a file git
		{[]string{"git", "push"}, "0:runs"},
	} {
		var got []string
		for _, k := range m.Marks(tt.argv) {
			got = append(got, string(rune('0'+k.Arg))+":"+string(k.Kind))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%q: %q, want %q", tt.argv, got, tt.want)
		}
	}
	many := m.Marks(append([]string{"ls"}, slices.Repeat([]string{"x.sh"}, 30000)...))
	if n := len(many); n != argsLook || many[n-1].Arg != argsLook || !strings.Contains(many[n-1].Text, "all that follow") {
		t.Errorf("%d marks, the last %+v", n, many[n-1])
	}
	// Nor does looking take longer than that, whatever the links are.
	at := d.ws
	for i := range 30 {
		os.Symlink(strings.Repeat("./bin/../", 400), filepath.Join(d.ws, fmt.Sprint("l", i)))
		at += fmt.Sprint("/l", i)
	}
	start := time.Now()
	slow := m.Marks(append([]string{"ls"}, slices.Repeat([]string{at}, argsLook-1)...))
	if n := len(slow); n != argsLook-1 || !strings.Contains(slow[n-1].Text, "too much to look at") || time.Since(start) > 20*time.Second {
		t.Errorf("%d marks after %v, the last %+v", n, time.Since(start), slow[n-1])
	}
	everywhere := Marker{Lookup: Lookup{Reach: []Place{{"/", "everything"}}}, Dir: d.ws}
	if got := everywhere.Marks([]string{"ls", "/absent", "/absent/x", "absent"}); len(got) != 2 {
		t.Errorf("where the sandbox can make anything: %+v", got)
	}
	// What leads nowhere is not looked up, and so does not count.
	var none []string
	for range 10 {
		none = append(none, strings.Repeat("./", 1500)+"x.sh", strings.Repeat("/", 4000))
	}
	if got := m.Marks(append([]string{"ls"}, none...)); len(got) != 10 || !strings.HasPrefix(got[9].Text, "lies in the workspace") {
		t.Errorf("%+v", got)
	}
	all := m.all(wire.Request{Command: "ls \u202e", Justification: "please\nx\u200b", Stdin: []byte("a\x1b[2K\n")}, []string{"ls"})
	var got []int
	for _, k := range all {
		got = append(got, k.Arg)
	}
	if !slices.Equal(got, []int{MarkReason, MarkRaw, MarkStdin}) {
		t.Errorf("%+v", all)
	}
}

// TestEverydayMarks: what people are asked about every day has the marks that say
// what the sandbox could change of it, and no others: a mark that means nothing
// teaches them to read none.
func TestEverydayMarks(t *testing.T) {
	d := newDeciding(t)
	for _, p := range []string{"src", "k8s", "sub", "docs", "scripts", "node_modules/@scope/pkg", "deploy"} {
		os.MkdirAll(filepath.Join(d.ws, p), 0o755)
	}
	for _, p := range []string{"src/a.go", "src/main.go", "k8s/x.yaml", "Makefile", "go.mod", "package.json", "b.tar", "main.tf", "id.pub", "scripts/run.sh", "docs/readme.md"} {
		os.WriteFile(filepath.Join(d.ws, p), nil, 0o644)
	}
	for to, from := range map[string]string{"latest": "src/a.go", "hosts": "/etc/hosts"} {
		os.Symlink(from, filepath.Join(d.ws, to))
	}
	os.MkdirAll(filepath.Join(d.dir, "other"), 0o755)
	m := Marker{Lookup: d.Lookup, Dir: d.ws, Banned: config.Banned}
	// WS stands for the workspace's path, UP for that above it.
	for command, want := range map[string]string{
		// A pattern of packages, names of remotes, branches, repositories, images:
		// words that hold a slash.
		"go test ./...":                                         "0:runs",
		"go test lazaret/escalate/...":                          "0:runs",
		"go install golang.org/x/tools/gopls@latest":            "0:runs",
		"git push origin feature/x":                             "0:runs",
		"git push -u origin HEAD:refs/heads/feature/x":          "0:runs",
		"git fetch origin main":                                 "0:runs",
		"git diff origin/main...HEAD":                           "0:runs",
		"git log --oneline v1.0.0..HEAD":                        "0:runs",
		"git rebase origin/main":                                "0:runs",
		"git checkout -b fix/issue-12":                          "0:runs",
		"git clone git@github.com:user/repo.git":                "0:runs",
		"git clone https://github.com/user/repo":                "0:runs",
		"git commit -m 'fix: a/b and c/d'":                      "0:runs",
		"git tag release/1.0":                                   "0:runs",
		"gh pr create --base main --head user:feature/x":        "0:runs",
		"gh repo clone user/repo":                               "0:runs",
		"gh api repos/user/repo/pulls":                          "0:runs",
		"npm install @scope/other":                              "0:runs",
		"npm view @scope/other@1.2.3":                           "0:runs",
		"npx prettier/standalone":                               "0:runs",
		"pip install git+https://github.com/user/repo@main":     "0:runs",
		"cargo build --features a/b":                            "0:runs",
		"docker pull ghcr.io/a/b:tag":                           "0:runs",
		"docker run --rm docker.io/library/alpine:3 ls /etc":    "0:runs",
		"docker build -t user/app:1.0 sub":                      "0:runs 4:writable",
		"podman push localhost/app registry.example/team/app:1": "0:runs",
		"curl https://example.com/x":                            "0:runs",
		"curl -H 'Accept: application/json' https://h/x":        "0:runs",
		"kubectl get pods -n team/a":                            "0:runs",
		"kubectl logs deployment/web":                           "0:runs",
		"kubectl exec pod/web -- ls /etc":                       "0:runs",
		"aws s3 ls s3://bucket/key/":                            "",
		"aws ssm get-parameter --name app/db/password":          "",
		"terraform plan -var region=eu/west":                    "0:runs",
		"sed -n s/a/b/ /etc/hosts":                              "0:runs",
		"jq .items[]/2 /etc/hosts":                              "",
		"date +%Y/%m/%d":                                        "",
		"ssh host:22 ls /srv/x":                                 "0:runs",
		"python -m pkg.mod --level a/b":                         "0:runs",
		"find /etc -name '*.go'":                                "0:runs",
		"ls /etc/hosts":                                         "",
		"cat UP/other/x":                                        "",
		"cat ../other/x":                                        "",
		"rsync host:backup/today/ /srv":                         "0:runs",
		"tar -C /srv -xf /srv/b.tar":                            "0:runs",
		"chmod 755 /srv/x":                                      "0:runs",

		// What is there, or comes to lie there, the sandbox can change.
		"make -C sub":                         "0:runs 2:writable",
		"make":                                "0:runs",
		"go build -o /tmp/x ./src":            "0:runs 4:writable",
		"cp src/main.go /tmp":                 "0:runs 1:writable",
		"cp /etc/hosts src/new.txt":           "0:runs 2:writable",
		"cat hosts":                           "1:link",
		"cat latest":                          "1:writable",
		"cat ../ws/hosts":                     "1:link",
		"cat ../ws/new":                       "1:writable",
		"cat WS/new/there":                    "1:writable",
		"tar -C sub -xf b.tar":                "0:runs 2:writable 4:writable",
		"tar -xf /srv/b.tar -C .":             "0:runs 4:writable",
		"scp host:dir/b src":                  "0:runs 2:writable",
		"scp src/a.go host:dir/b":             "0:runs 1:writable",
		"rsync -a src/ host:backup/src/":      "0:runs 2:writable",
		"kubectl apply -f k8s/x.yaml":         "0:runs 3:writable",
		"kubectl apply --filename=k8s/x.yaml": "0:runs 2:writable",
		"git diff HEAD~1 -- src/a.go":         "0:runs 4:writable",
		"git apply docs/readme.md":            "0:runs 2:writable",
		"aws s3 cp s3://b/k .":                "4:writable",
		"aws s3 cp src/a.go s3://b/k":         "3:writable",
		"aws lambda invoke --payload fileb://go.mod dist/x": "4:writable",
		"curl -d @package.json https://h/x":                 "0:runs 2:writable",
		"curl -o scripts/run.sh https://h/x":                "0:runs 2:writable",
		"docker run -v .:/src -v WS:/w alpine":              "0:runs 3:writable 5:writable",
		"docker run -v /workspace:/src alpine":              "0:runs 3:inside",
		"terraform -chdir=deploy apply":                     "0:runs 1:writable",
		"ln -s src/a.go /srv/x":                             "0:runs 2:writable",
		"find . -name '*.go'":                               "0:runs 1:writable",
		"chmod +x scripts/run.sh":                           "0:runs 2:writable",
		"node node_modules/@scope/pkg":                      "0:runs 1:writable",
		"npm install ./node_modules/@scope/pkg":             "0:runs 2:writable",
		"python scripts/run.sh":                             "0:runs 1:writable",
		"ssh-copy-id -i id.pub host":                        "0:runs 2:writable",
		"git checkout docs/x":                               "0:runs 2:writable", // a branch, but docs is there
	} {
		argv, err := shellquote.Split(strings.NewReplacer("WS", d.ws, "UP", d.dir).Replace(command))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, k := range m.Marks(argv) {
			got = append(got, fmt.Sprintf("%d:%s", k.Arg, k.Kind))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// TestMarksInsideWords: a path is marked whatever a program takes off before it.
func TestMarksInsideWords(t *testing.T) {
	d := newDeciding(t)
	os.Mkdir(filepath.Join(d.ws, "my dir"), 0o755)
	for _, name := range []string{"link", "my dir/link", "@key"} {
		if err := os.Symlink("/etc/passwd", filepath.Join(d.ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	d.Home = d.dir
	m := Marker{Lookup: d.Lookup, Dir: d.ws, Banned: config.Banned}
	for word, want := range map[string]MarkKind{
		"-xfWS/link": MarkLink, "-sTWS/link": MarkLink, "-sd@WS/link": MarkLink, "+WS/link": MarkLink, "@@WS/link": MarkLink,
		"data@WS/link": MarkLink, `{"f":"WS/link"}`: MarkLink, `{"a":{"f":"WS/my dir/link","b":1}}`: MarkWritable, "file://localhostWS/link": MarkLink,
		"file://localhost/WS/link": MarkLink, "'WS/link'": MarkLink, "-xf/proc/self/cwd/link": MarkLink, "k@WS/../ws/link": MarkLink,
		"~/ws/link": MarkLink, "file://~/ws/link": MarkLink, "--key=~/ws/link": MarkLink, "-i~/ws/link": MarkLink, "~HOME/ws/link": MarkLink, "${HOME}/ws/link": MarkLink,
		"-sTlink": MarkLink, "-sd@link": MarkLink, "-sd@@key": MarkLink, "@@link": MarkLink, "<@link": MarkLink, "@file://link": MarkLink, "@@key": MarkLink,
		"-" + strings.Repeat("s", 1000) + "Tlink": MarkLink, "-sFlink:ro": MarkLink, "-sT../ws/link": MarkLink, "data@./link": MarkLink, "data@../ws/link": MarkLink,
		"data@WS/absent": MarkWritable, "data@WS": MarkWritable,
		"https://host/WS": MarkWritable, strings.Repeat("x/", 25000): MarkWritable, "https://example.com/etc/x": "", "user@host:~/x": "", "HEAD~1": "", "~/other": "",
		"-la": "", "-xzf": "", "a/tmp/b": "", "docs/./x": "", "v1..v2": "",
	} {
		word = strings.NewReplacer("WS", d.ws, "~HOME", "~"+filepath.Base(d.dir)).Replace(word)
		var got MarkKind
		for _, k := range m.Marks([]string{"aws", word}) {
			if got != MarkLink {
				got = k.Kind
			}
		}
		if got != want {
			t.Errorf("%.100s: %q, want %q", word, got, want)
		}
		// Nor is it approved unasked, where it can be told without a directory.
		d.AutoApproveExact = [][]string{{"aws", word}}
		if c := Decide(d.Policy, d.Lookup, wire.Quote([]string{"aws", word}), false); c.Auto && strings.Contains(word, d.ws+"/link") {
			t.Errorf("%.100s runs without a question", word)
		}
	}
}

// TestMarksHome: what a ~ means is what it means to the command.
func TestMarksHome(t *testing.T) {
	h := newHost(t, func(h *host, c *Config) { c.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + h.dir} })
	os.Symlink("/etc/passwd", filepath.Join(h.ws, "link"))
	got := h.begin(t, "cat ~/ws/link")
	a := h.waits(t)
	if len(a.Marks) != 1 || a.Marks[0].Kind != MarkLink {
		t.Errorf("%+v", a.Marks)
	}
	h.Queue().Answer(t.Context(), a.Seq, Verdict{By: "test"})
	<-got
}

// TestMarksAreText: a mark comes back from another lazaret as it was, whatever
// the sandbox has called what it leads to; and two names stay two.
func TestMarksAreText(t *testing.T) {
	d := newDeciding(t)
	m := Marker{Lookup: d.Lookup, Dir: d.ws, Banned: config.Banned}
	told := map[string]bool{}
	for _, to := range []string{"x\xff", "x\xfe", `x\xff`, "x\ufffd", "\x1b[2J\n\"\u2028<&>"} {
		os.Remove(filepath.Join(d.ws, "odd"))
		os.Symlink(d.dir+"/"+to, filepath.Join(d.ws, "odd"))
		marks := m.Marks([]string{"ls", "odd"})
		b, err := json.Marshal(marks)
		var back []Mark
		if err != nil || json.Unmarshal(b, &back) != nil || !slices.Equal(marks, back) || len(marks) != 1 || marks[0].Kind != MarkLink {
			t.Errorf("%q: %+v came back as %+v, %v", to, marks, back, err)
		}
		told[marks[0].Text] = true
	}
	if len(told) != 5 {
		t.Errorf("%v", told)
	}
}

// TestMarksAreBounded: a request of some hundred bytes has no marks of megabytes,
// however long what its words lead to; two long ends stay two, and nothing of it
// runs without a question.
func TestMarksAreBounded(t *testing.T) {
	d := newDeciding(t)
	junk := strings.Repeat("/"+strings.Repeat("\xff", 250), 15)
	for i := range 38 {
		if err := os.Symlink(fmt.Sprint("l", i+1, junk), filepath.Join(d.ws, fmt.Sprint("l", i))); err != nil {
			t.Fatal(err)
		}
	}
	end := func(name string) {
		os.Remove(filepath.Join(d.ws, "l38"))
		os.Symlink("/nonexistent"+junk+name, filepath.Join(d.ws, "l38"))
	}
	end("/x")
	m := Marker{Lookup: d.Lookup, Dir: d.ws, Banned: config.Banned}
	size := func(marks []Mark) (n int) {
		for _, k := range marks {
			n += len(k.Text)
		}
		return n
	}
	marks := m.Marks(append([]string{"ls"}, slices.Repeat([]string{"l0"}, 12)...))
	if n := size(marks); n > 64<<10 || len(marks) != 12 || marks[11].Kind != MarkLink || !strings.Contains(marks[11].Text, "/nonexistent/") {
		t.Errorf("%d marks of %d bytes", len(marks), n)
	}
	if end("/y"); slices.Equal(marks, m.Marks(append([]string{"ls"}, slices.Repeat([]string{"l0"}, 12)...))) {
		t.Error("two ends are told alike")
	}
	// Nor do many: where there are too many, that is the last that is said.
	for _, word := range []string{"l0", "\x01"} {
		marks = m.Marks(append([]string{"ls"}, slices.Repeat([]string{word}, 3000)...))
		if n := size(marks); n > 65<<10 {
			t.Errorf("%d marks of %d bytes", len(marks), n)
		}
		if word == "l0" && !strings.Contains(marks[len(marks)-1].Text, "like all that follow") {
			t.Errorf("the last is %+v", marks[len(marks)-1])
		}
	}
	// A path of more names than that is not followed at all.
	for i := range 30 {
		os.Symlink(fmt.Sprint("m", i+1, strings.Repeat("/x", 1500)), filepath.Join(d.ws, fmt.Sprint("m", i)))
	}
	if marks = m.Marks([]string{"ls", "m0"}); len(marks) != 1 || marks[0].Kind != MarkWritable || !strings.Contains(marks[0].Text, "too much to look at") {
		t.Errorf("%.300v", marks)
	}
	d.AutoApproveExact = append(d.AutoApproveExact, []string{"ls", d.ws + "/m0"}, []string{"ls", d.ws + "/l0"})
	for _, raw := range []string{"ls " + d.ws + "/m0", "ls " + d.ws + "/l0"} {
		if c := Decide(d.Policy, d.Lookup, raw, false); c.Auto || len(c.Why) > 2000 {
			t.Errorf("%s: %v, %.300s", raw, c.Auto, c.Why)
		}
	}
}

// TestPlaceBeforeMarks: of all that come at once, no more are looked at than may
// wait, and the others are told so while that goes on.
func TestPlaceBeforeMarks(t *testing.T) {
	var looking atomic.Int32
	on := make(chan struct{})
	h := newHost(t, func(_ *host, c *Config) {
		c.Limits.Waiting = 1
		c.Policy.Banned = func([]string) (string, bool) {
			looking.Add(1)
			<-on
			return "", false
		}
	})
	var got []<-chan wire.Response
	for range 5 {
		got = append(got, h.begin(t, "cat x"))
	}
	await(t, func() bool { return len(h.entries()) == 4 || looking.Load() > 1 })
	if n := looking.Load(); n != 1 || strings.Contains(h.kinds(), "asked") {
		t.Errorf("%d are looked at: %s", n, h.kinds())
	}
	close(on)
	a := h.waits(t)
	if err := h.Queue().Answer(t.Context(), a.Seq, Verdict{By: "test"}); err != nil {
		t.Error(err)
	}
	for _, c := range got {
		if r := <-c; r.Status != wire.Denied {
			t.Errorf("%+v", r)
		}
	}
	if h.queue.coming != 0 {
		t.Errorf("%d places are held for nobody", h.queue.coming)
	}
}

// FuzzMarks: no argument makes marking fail, or names an argument that is none;
// and a path leads where the kernel says.
func FuzzMarks(f *testing.F) {
	d := newDeciding(f)
	m := Marker{Lookup: d.Lookup, Dir: d.ws, Banned: config.Banned}
	os.MkdirAll(filepath.Join(d.ws, "a/b/c"), 0o755)
	for from, to := range map[string]string{"ws/l": "a/b/c", "ws/o": d.bin, "ws/a/u": "../..", "ws/a/r": "//" + d.dir + "/./volume", "ws/loop": "loop", "ws/a/b/i": "../../l/../i2", "ws/a/i2": "u"} {
		if err := os.Symlink(to, filepath.Join(d.dir, from)); err != nil {
			f.Fatal(err)
		}
	}
	for _, s := range []string{"l/../../a", "o/../ws/l", "a/u/volume", "a/r/mine", "loop/..", "l/../i/../bin", "a/b/i/ws/./l//..", "x", "a=b:c,d", "@", "file://", "\x00", "/..//", strings.Repeat("=:,", 50)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, k := range m.Marks([]string{"ls", s}) {
			if k.Arg < 0 || k.Arg > 1 || k.Text == "" {
				t.Fatalf("%q: %+v", s, k)
			}
		}
		fd, err := unix.Open(d.ws+"/"+s, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil || s == "" || s[0] == '/' || strings.ContainsRune(s, 0) || len(s) > 1000 {
			unix.Close(fd)
			return
		}
		defer unix.Close(fd)
		real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		left := filesLook
		if got := m.lead(s, &left); err == nil && got.end != real && !strings.HasPrefix(real, "/proc/") {
			t.Fatalf("%q leads to %s, and not to %s", s, real, got.end)
		}
	})
}
