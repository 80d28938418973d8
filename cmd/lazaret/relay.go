package main

import (
	"fmt"
	"io"
	"net"

	"github.com/spf13/cobra"

	"lazaret/launch"
)

// newRelayCmd is not for people: a published port runs it inside the sandbox,
// for a program that listens on the sandbox's loopback address only.
func newRelayCmd() *cobra.Command {
	return &cobra.Command{
		Use:    launch.RelayCommand,
		Short:  "Connect a published port inside the sandbox (run by launch)",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("%s is run by lazaret launch, not by hand", launch.RelayCommand)
			}
			c, err := net.Dial("tcp", net.JoinHostPort("localhost", args[0]))
			if err != nil {
				c, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", args[0])) // no hosts file
			}
			if err != nil {
				return fmt.Errorf("connecting to port %s: %w", args[0], err)
			}
			defer c.Close()
			go func() {
				io.Copy(c, cmd.InOrStdin())
				c.(*net.TCPConn).CloseWrite()
			}()
			_, err = io.Copy(cmd.OutOrStdout(), c)
			return err
		},
	}
}
