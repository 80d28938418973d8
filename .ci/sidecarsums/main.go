// Command sidecarsums writes down what a lock says of the network sidecar of
// this build, beside the helpers that lazaret embeds: so no launch has to
// assemble its image to know.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lazaret/image"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sidecarsums HELPERS-DIRECTORY")
		os.Exit(2)
	}
	for _, platform := range image.Platforms() {
		if err := write(os.Args[1], platform); err != nil {
			fmt.Fprintf(os.Stderr, "sidecarsums: error: %v\n", err)
			os.Exit(1)
		}
	}
}

func write(dir, platform string) error {
	s, err := image.DescribeSidecar(platform)
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	path := filepath.Join(dir, strings.ReplaceAll(platform, "/", "-"), image.SidecarFile)
	have, err := os.ReadFile(path)
	if err == nil && bytes.Equal(have, b) {
		return nil // its time stays, so that lazaret is not linked again
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
