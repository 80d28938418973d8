package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"lazaret/image"
	"lazaret/lock"
)

// version is that of the topmost entry of CHANGELOG.md; a test holds them
// together.
const version = "0.1.0"

func newVersionCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version [flags]",
		Short: "Print the version, and the digests of the programs that run in sandboxes",
		Long: `Version prints lazaret's version, the Go it was built with, and the SHA-256
digests of the helper programs that it carries, and of the sidecar's image. A
lock names those digests and no version: two lazarets that print the same ones
take each other's locks.`,
		Example: `  lazaret version
  lazaret version --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return tellVersion(cmd.OutOrStdout(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// sidecarImage is what the sidecar's image is listed as. Its id stands for the
// program and for how it is started, and is what a person agrees to.
const sidecarImage = "sidecar-image"

// helperDigests are the digests of the helpers by platform and name.
func helperDigests() (map[string]map[string]string, error) {
	own, err := ownHelpers()
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	for _, p := range image.Platforms() {
		out[p] = map[string]string{}
		for _, name := range []string{image.EscalateName, image.GuestName, image.SidecarName} {
			b, err := image.Binary(name, p)
			if err != nil {
				return nil, err
			}
			out[p][name] = fmt.Sprintf("sha256:%x", sha256.Sum256(b))
		}
		out[p][sidecarImage] = own.Sidecar[lock.PlatformKey(p)].Config
	}
	return out, nil
}

func tellVersion(out io.Writer, asJSON bool) error {
	helpers, err := helperDigests()
	if err != nil {
		return err
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if asJSON {
		e := json.NewEncoder(ascii{out})
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Version  string                       `json:"version"`
			Go       string                       `json:"go"`
			Platform string                       `json:"platform"`
			Helpers  map[string]map[string]string `json:"helpers"`
		}{version, runtime.Version(), platform, helpers})
	}
	fmt.Fprintf(out, "lazaret %s (%s, %s)\n", version, runtime.Version(), platform)
	for _, p := range image.Platforms() {
		for _, name := range []string{image.EscalateName, image.GuestName, image.SidecarName, sidecarImage} {
			fmt.Fprintf(out, "%s %s %s\n", helpers[p][name], p, name)
		}
	}
	return nil
}
