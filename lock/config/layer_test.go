package config

import (
	"bytes"
	"testing"
)

func canon(t *testing.T, text string) []byte {
	t.Helper()
	b, err := Layer{Name: "x", Data: []byte(text)}.Canonical()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return b
}

func TestCanonicalIgnoresTheWriting(t *testing.T) {
	want := canon(t, "[storage]\ndata_root = '/a'\noverlay = 'auto'\n[escalation]\nenabled = true\nmax_output = 1000\n[profiles.p1]\nports = ['1', '2']\nenv = { A = 'b', C = 'd' }\ncpus = 1.5\n[[profiles.p1.volumes]]\nhost = '/x'\ncontainer = '/y'\n")
	for _, same := range []string{
		"# hi\nstorage = { overlay = \"\"\"\nauto\"\"\", data_root = \"/\\u0061\" }\nescalation.max_output = 1_000\nescalation.enabled = true\n" +
			"profiles.p1.cpus = 15e-1\nprofiles.p1.volumes = [ { container = '/y', host = '/x' } ] # x\nprofiles.p1.ports = [ '1',\n\n '2', ]\n[profiles.p1.env]\nC = 'd'\nA = 'b'",
		"\xef\xbb\xbf[profiles.p1]\r\nvolumes = [{host='/x',container='/y'}]\r\nenv.C = 'd'\r\nenv.A = '''b'''\r\nports=['1','2']\r\ncpus=1.50\r\n[escalation]\r\nmax_output = 0x3e8\r\nenabled=true\r\n[storage]\r\noverlay='auto'\r\ndata_root='/a'",
	} {
		if got := canon(t, same); !bytes.Equal(got, want) {
			t.Errorf("%s\ngives %q\nwant  %q", same, got, want)
		}
	}
	if got := canon(t, ""); string(got) != "de" {
		t.Errorf("an empty layer gives %q", got)
	}
}

// The bytes are hashed into lockfiles, so they may never change.
func TestCanonicalForm(t *testing.T) {
	got := canon(t, "[escalation]\nenabled = false\nmax_output = -5\nauto_approve = ['é', '']\n[profiles.p1]\ncpus = 2.0")
	if want := "d10:escalationd12:auto_approvel2:é0:e7:enabledf10:max_outputi-5ee8:profilesd2:p1d4:cpusn2eeee"; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCanonicalSeesTheContent(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		"", "[storage]", "[storage]\noverlay = ''", "[storage]\noverlay = 'auto'", "[storage]\noverlay = 'autp'", "[storage]\ndata_root = 'auto'",
		"[profiles.p1]\nports = []", "[profiles.p1]\nports = ['1']", "[profiles.p1]\nports = ['1', '2']", "[profiles.p1]\nports = ['2', '1']", "[profiles.p1]\nports = ['12']", "[profiles.p1]\nsetup = ['1', '2']",
		"[profiles.p1]\ncpus = 1", "[profiles.p1]\ncpus = 1.0", "[profiles.p1]\ncpus = '1'", "[profiles.p2]\ncpus = 1",
		"[escalation]\nenabled = true", "[escalation]\nenabled = false", "[profiles.p1]\ncommand = 'a'", "[profiles.p1]\ncommand = ['a']",
		"[profiles.p1.env]\nA = '1:B'", "[profiles.p1.env]\nA = '1'\nB = ''",
	} {
		c := string(canon(t, text))
		if was, ok := seen[c]; ok {
			t.Errorf("%q and %q have the same form %s", was, text, c)
		}
		seen[c] = text
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a = ":                          "x:1: not valid TOML: the file ends where a value should be",
		"\n[storage]\nx = 1":            "x:3: storage.x: unknown key",
		"[profiles.p1]\npids = 1.5":     "x:2: profiles.p1.pids: is a float, must be an integer",
		"[storage]\noverlay = 10:30:00": "x:2: storage.overlay: is a date, must be a string",
	} {
		_, err := Layer{Name: "x", Data: []byte(text)}.Canonical()
		if err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("%q gives %v, want %s", text, err, want)
		}
	}
}

func TestKinds(t *testing.T) {
	for k, want := range map[Kind]string{User: "user", Workspace: "workspace", Override: "override", 7: "layer 7"} {
		if k.String() != want {
			t.Errorf("got %s, want %s", k, want)
		}
	}
}
