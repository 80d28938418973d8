package main

import (
	"errors"

	"github.com/spf13/cobra"

	"lazaret/launch"
)

// agreed returns once the person has agreed to the lock, now or before.
func (d *deps) agreed(cmd *cobra.Command, l lockFile, profile string, host launch.Host) error {
	in, err := d.checkLaunch(l, profile, host)
	if err != nil {
		return err
	}
	if !in.empty() {
		if err := in.ask(cmd, d); err != nil {
			return err
		}
		if err := in.record(d); err != nil {
			return err
		}
	}
	return in.claimState(d, profile, host)
}

// agreedBefore is agreed where nobody is there to be asked, but was a moment ago.
func (d *deps) agreedBefore(l lockFile, profile string, host launch.Host) error {
	in, err := d.checkLaunch(l, profile, host)
	switch {
	case err != nil:
		return err
	case !in.empty():
		return hinted{errors.New("what the lock grants has changed since you were asked"), "launch it again"}
	}
	return in.claimState(d, profile, host)
}
