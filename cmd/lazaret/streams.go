package main

import (
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

// files are the streams the sandbox gets. They are files in every real run.
func files(cmd *cobra.Command) (in, out, err *os.File) {
	in, _ = cmd.InOrStdin().(*os.File)
	out, _ = cmd.OutOrStdout().(*os.File)
	err, _ = cmd.ErrOrStderr().(*os.File)
	return in, out, err
}

// terminalPath is the controlling terminal, whatever it is called.
const terminalPath = "/dev/tty"

// hasTerminal tells whether there is one: a stream can be a terminal that is
// somebody else's.
func hasTerminal() bool {
	f, err := os.OpenFile(terminalPath, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
