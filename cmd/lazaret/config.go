package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"lazaret/lock/config"
)

func newConfigCmd(d *deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show what the config files say together, and what they may say",
		Long: `Config shows the configuration itself, not the lock that is launched: by itself
it does what "lazaret config show" does. It changes nothing.`,
		Example: `  lazaret config`,
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return showConfig(cmd, d, layerOptions{}, false) },
	}
	cmd.AddCommand(newConfigShowCmd(d), newConfigSchemaCmd())
	return cmd
}

func newConfigShowCmd(d *deps) *cobra.Command {
	var (
		o      layerOptions
		origin bool
	)
	cmd := &cobra.Command{
		Use:   "show [flags]",
		Short: "Show what all config files say together",
		Long: `Show merges the config files as lock does and prints the result, defaults too,
as TOML. --origin adds where each value was written: the layer (user, workspace
or override), file and line, or that it is the default. It changes nothing and
asks no registry.`,
		Example: `  lazaret config show
  lazaret config show --origin
  lazaret config show --origin --user`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return showConfig(cmd, d, o, origin) },
	}
	f := cmd.Flags()
	f.BoolVar(&origin, "origin", false, "say where each value was written")
	f.BoolVar(&o.user, "user", false, "let your own config take part although the workspace has one")
	f.StringVar(&o.config, "config", "", "a further config `file`, above all others")
	return cmd
}

func showConfig(cmd *cobra.Command, d *deps, o layerOptions, origin bool) error {
	layers, inputs, err := loadLayers(d, o)
	if err != nil {
		return err
	}
	_, shown, err := lockPath(d, o, "")
	if err != nil {
		return err
	}
	tellLayers(d, cmd.ErrOrStderr(), inputs, shown)
	c, err := config.Load(layers)
	if err != nil {
		return err
	}
	_, err = io.WriteString(cmd.OutOrStdout(), configText(c.Values(), origin))
	return err
}

func newConfigSchemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of lazaret.toml, for editors",
		Long: `Schema prints what lazaret.toml may say as a JSON Schema. Editors that know TOML,
such as those with Taplo or Even Better TOML, complete and check by it: write the
line "#:schema ./lazaret.schema.json" at the head of lazaret.toml.`,
		Example: `  lazaret config schema`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.JSONSchema())
			return err
		},
	}
}

// configText writes values as TOML.
func configText(values []config.Value, origin bool) string {
	var b strings.Builder
	table := ""
	for _, v := range values {
		if v.Table != table {
			if table != "" {
				b.WriteByte('\n')
			}
			table = v.Table
			fmt.Fprintf(&b, "[%s]\n", table)
		}
		line := func(text string, from config.Position, told bool) {
			if origin && told {
				text = fmt.Sprintf("%-40s # %s", text, originText(from))
			}
			b.WriteString(text + "\n")
		}
		if text, short := oneLine(v); short {
			line(v.Name+" = "+text, v.From, true)
			continue
		}
		line(v.Name+" = [", v.From, true)
		for _, item := range v.Items {
			line("  "+item.Text+",", item.From, item.From.File != "")
		}
		b.WriteString("]\n")
	}
	return b.String()
}

// oneLine writes a value on one line, where it fits and its elements are from
// one place.
func oneLine(v config.Value) (text string, short bool) {
	if v.Items == nil {
		return v.Text, true
	}
	words := make([]string, len(v.Items))
	for i, item := range v.Items {
		if item.From.File != "" {
			return "", false
		}
		words[i] = item.Text
	}
	text = "[" + strings.Join(words, ", ") + "]"
	return text, len(words) < 2 || len(text) <= 60
}

// originText says where a value was written.
func originText(p config.Position) string {
	switch {
	case p.File == "":
		return "default"
	case p.Line == 0:
		return fmt.Sprintf("%s, %s", p.Layer, config.Show(p.File))
	}
	return fmt.Sprintf("%s, %s:%d", p.Layer, config.Show(p.File), p.Line)
}
