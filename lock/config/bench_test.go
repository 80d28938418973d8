package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// BenchmarkLoad reads the example, and a config with as many ranges as a list
// of all networks of some countries has.
func BenchmarkLoad(b *testing.B) {
	example, err := os.ReadFile("../../example.toml")
	if err != nil {
		b.Fatal(err)
	}
	var many strings.Builder
	many.WriteString("[network]\ndefault_allow = []\ndefault_deny = [\n")
	for i := range 20000 {
		fmt.Fprintf(&many, "  \"16.%d.%d.%d/28\",\n", i>>12, i>>4&255, i<<4&255)
	}
	many.WriteString("]\n" + "[storage]\ndata_root = \"~/x\"\n[escalation]\nenabled = false\nsocket_dir = \"/run/x\"\n[profiles.agent]\nimage = \"builtin:shell\"\n")
	for _, tt := range []struct {
		name string
		data []byte
	}{{"example", example}, {"ranges", []byte(many.String())}} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(tt.data)))
			for b.Loop() {
				if _, err := Load([]Layer{{Kind: Workspace, Name: "lazaret.toml", Data: tt.data}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
