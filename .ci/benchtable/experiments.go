package main

// experiments are what the rows' series come from.
var experiments = []experiment{
	{name: "start", rounds: 20, series: []string{"launch all", "launch net git", "podman run", "srt"}, prepare: prepareLaunch},
	{name: "eight", rounds: 5, series: []string{"launch eight", "podman run eight"}, prepare: prepareEight},
	{name: "teardown", rounds: 10, series: []string{"teardown", "podman rm"}, prepare: prepareTeardown},
	{name: "version", rounds: 30, series: []string{"version", "true"}, prepare: prepareVersion},
	{name: "lock", rounds: 5, series: []string{"lock fifty", "crane fifty"}, prepare: prepareLock},
	{name: "check", rounds: 20, series: []string{"lock check", "true beside check"}, prepare: prepareCheck},
	{name: "tcp", rounds: 10, series: []string{"up routed", "up plain", "down routed", "down plain"}, prepare: prepareTCP},
	{name: "connect", rounds: 10, series: []string{"connect many", "connect one"}, prepare: prepareConnect},
	{name: "policy", rounds: 5, series: []string{"policy load", "policy floor", "policy memory"}, prepare: preparePolicy},
	{name: "pty", rounds: 4, series: []string{"pty lazaret", "pty podman"}, prepare: preparePty},
	{name: "escalate", rounds: 200, series: []string{"ask", "client", "client help", "true beside ask"}, prepare: prepareEscalate},
	// Before 50,000 files are removed: an ext4 without a journal passes over each
	// inode that was freed in the last minutes when it looks for one.
	{name: "write", rounds: 10, series: []string{"write native", "files native", "write fuse", "files fuse", "write volume", "files volume"}, prepare: prepareWrite},
	{name: "git", rounds: 8, series: []string{"status lazaret", "status podman"}, prepare: prepareGit},
	{name: "memory", rounds: 1, series: []string{"memory lazaret", "memory sidecar"}, prepare: prepareMemory},
	{name: "sizes", rounds: 1, series: []string{"size sidecar", "size client"}, prepare: prepareSizes},
	{name: "build cold", clone: true, rounds: 1, series: []string{"build cold"}, prepare: prepareBuildCold},
	{name: "build warm", clone: true, rounds: 3, series: []string{"build warm"}, prepare: prepareBuildWarm},
}
