package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"

	"github.com/spf13/cobra"

	"lazaret/launch"
	"lazaret/lock/config"
	"lazaret/overlay"
)

func newStateDiffCmd(d *deps, o *trustOptions) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff PROFILE [DIR...]",
		Short: "Compare what is kept with the image",
		Long: `Diff lists what is added (+), changed (~) and deleted (-) in the persistent
directories of a profile, compared with the image that they were last used on.
"hides" marks a file that stands before one which the image has changed since
the file was made: the image's correction to it does not arrive. Where something
cannot be compared, the rest is listed, and diff fails.`,
		Example:           "  lazaret state diff claude\n  lazaret state diff claude /usr/local",
		Args:              words(1, -1),
		ValidArgsFunction: d.completeProfile,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := d.stateIn(*o)
			if err != nil {
				return err
			}
			k, names, err := s.one(args[0], args[1:])
			if err != nil {
				return err
			}
			answer, err := s.do(cmd, s.task("diff", k, names), nil, nil)
			var terr error
			if asJSON {
				_, terr = ascii{cmd.OutOrStdout()}.Write(answer)
			} else {
				terr = tellState(cmd.OutOrStdout(), k, answer)
			}
			if err != nil {
				return err
			}
			return terr
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one line a change")
	return cmd
}

// tellState writes the answer of a comparison for people.
func tellState(w io.Writer, k launch.Kept, answer []byte) error {
	b := &bytes.Buffer{}
	err := lines(answer, func(l launch.StateLine) {
		r := k.Layers[l.Layer]
		if l.Change == nil {
			fmt.Fprintf(b, "%s (%s, %s)\n", config.Show(r.Path), r.Driver, against(r, l.Image))
			if r.Unsure > 0 {
				fmt.Fprintf(b, "  %s may hide newer ones of the image: the one before was gone when it came\n", count(r.Unsure, "file"))
			}
			return
		}
		fmt.Fprintf(b, "%s %s%s\n", sign[l.Change.Kind], config.Show(path.Join(r.Path, l.Change.Path)), remarks(*l.Change))
	})
	if err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

var sign = map[string]string{overlay.Added: "+", overlay.Changed: "~", overlay.Deleted: "-", overlay.Unknown: "?"}

func against(r overlay.Record, image string) string {
	if image == "" {
		return fmt.Sprintf("its image %.12s is gone: what is new (?) cannot be told from what is changed", trimDigest(r.Image.Config))
	}
	return fmt.Sprintf("against image %.12s", trimDigest(image))
}

func remarks(c overlay.Change) string {
	out := ""
	switch {
	case c.Dir && c.Kind != overlay.Deleted:
		out = "/"
	case c.Size > 0:
		out = "  " + sizeText(c.Size)
	}
	if c.Meta {
		out += "  owner, mode or time only"
	}
	if c.Hides {
		out += "  hides a newer file of the image"
	}
	return out
}

// lines reads JSON values, one after the other.
func lines[T any](data []byte, f func(T)) error {
	d := json.NewDecoder(bytes.NewReader(data))
	for {
		var v T
		switch err := d.Decode(&v); err {
		case nil:
			f(v)
		case io.EOF:
			return nil
		default:
			return fmt.Errorf("reading the answer: %w", err)
		}
	}
}
