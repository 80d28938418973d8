package config

import (
	"path"
	"regexp"
	"strings"
	"sync"
)

// bannedPrograms is the one table of programs that may not be approved in advance:
// each can be made, by its arguments or by files it reads, to run another
// program, run code, or write what another program will run. A whitelist entry
// for such a program is a whitelist entry for everything.
//
// Names are base names in lower case, without version (python3.12, gcc-12),
// alternative (vim.basic) or target (x86_64-linux-gnu-gcc); a name stands for
// its companions too (git-lfs, docker-compose, cargo-fmt).
var bannedPrograms = []struct{ reason, programs string }{
	{"decides itself what lazaret allows", `
		lazaret`},
	{"runs programs that its configuration, hooks, aliases and -c options name", `
		git tig hg svn bzr brz cvs fossil jj darcs repo gh glab hub lazygit pre-commit`},
	{"is a shell", `
		sh bash rbash dash ash zsh ksh ksh93 mksh pdksh lksh yash fish csh tcsh nu nushell elvish xonsh pwsh
		powershell osh ysh rc es posh sash`},
	{"holds a shell and many other programs", `
		busybox toybox`},
	{"runs the program that its arguments name", `
		env xargs parallel find fd fdfind nohup timeout nice ionice chrt taskset setsid setpriv stdbuf
		unbuffer time command exec eval builtin flock watch watchexec entr nodemon script scriptreplay
		expect start-stop-daemon daemon daemonize run-parts chronic ifne ts pee prlimit choom
		eatmydata fakeroot fakechroot faketime linux32 linux64 setarch i386 x86_64 uname26 cgexec numactl
		hyperfine perf rlwrap socat nc ncat netcat xvfb-run xterm screen tmux byobu zellij dtach abduco
		reptyr dbus-run-session dbus-launch dbus-send busctl gdbus direnv dotenv asdf mise rtx pyenv rbenv
		nodenv volta fnm nvm proto aws-vault op doppler chamber envchain sops envdir chpst softlimit
		setuidgid s6-setuidgid dumb-init tini`},
	{"loads and runs any program or library", `
		ld ld.so ldd ld-linux ld-musl lddtree sotruss sprof pldd`},
	{"runs programs as another user or in another namespace", `
		sudo sudoedit doas su runuser pkexec run0 gosu su-exec login sg newgrp chroot unshare nsenter ip
		capsh bwrap firejail newuidmap newgidmap machinectl systemd-nspawn lxc lxc-attach incus`},
	{"runs programs on other machines, and by its options on this one", `
		ssh scp sftp sshfs slogin rsh rlogin mosh autossh sshpass rsync rclone ansible ansible-playbook salt
		fab pssh teleport tsh telnet ftp lftp`},
	{"runs programs to pack and unpack, or unpacks over any file", `
		tar bsdtar gtar star cpio pax zip unzip 7z 7za 7zr rar unrar ar dpkg-deb gzip gunzip bzip2 bunzip2
		xz unxz lz4 zstd`},
	{"is a programming language's interpreter or compiler, or runs one", `
		awk gawk mawk nawk original-awk goawk sed gsed ssed perl python pypy ipython jupyter ruby irb jruby
		php node nodejs deno bun tsx ts-node lua luajit luac tclsh wish guile scheme racket sbcl clisp ecl
		clojure clj bb java javac jshell kotlin kotlinc scala groovy dart flutter julia r rscript octave
		matlab maxima gp ocaml ghci ghc runghc runhaskell stack cabal erl escript elixir iex mix rebar3
		swift swiftc mono dotnet csi fsi m4 dc gnuplot gforth nim crystal zig v tcc osascript wine
		qemu-x86_64 qemu-system-x86_64 qemu gs latex pdflatex xelatex lualatex tex latexmk pandoc`},
	{"runs what a build file in its directory says", `
		make gmake bmake remake cmake ctest cpack ninja samu meson bazel bazelisk buck buck2 pants scons waf
		ant mvn mvnw gradle gradlew sbt just task rake invoke nox tox hatch tup redo please earthly dagger
		autoconf automake autoreconf libtool configure pkg-config gcc g++ cc c++ cpp clang clang++ as gold
		lld mold rustc rustdoc rustup rustfmt clippy-driver cargo go gofmt gopls golangci-lint staticcheck
		bundle bundler gem jest vitest mocha pytest eslint prettier webpack vite rollup esbuild tsc turbo nx
		lerna gulp grunt lefthook husky`},
	{"runs the install scripts of packages it fetches", `
		npm npx pnpm pnpx yarn corepack bunx pip pipx uv uvx poetry pdm conda mamba micromamba pixi
		easy_install composer cpan cpanm luarocks apt apt-get aptitude apt-key dpkg dnf yum rpm zypper
		pacman yay paru apk emerge xbps-install opkg snap flatpak brew port nix nix-shell nix-build nix-env
		guix vcpkg conan pod carthage opam krew`},
	{"starts containers or machines that can mount the whole disk", `
		docker dockerd podman nerdctl buildah skopeo ctr crictl containerd runc crun runsc kata-runtime
		youki lima limactl colima vagrant virsh virt-install multipass minikube kind k3s k3d kubectl oc helm
		helmfile kustomize k9s skaffold tilt nomad distrobox toolbox devcontainer act`},
	{"runs plugins and provisioners that its files name", `
		terraform tofu terragrunt packer pulumi cdk cdktf sam serverless cfn vault consul puppet chef chef-
		client`},
	{"makes the service manager or scheduler run programs", `
		systemctl systemd-run systemd-inhibit systemd-cat systemd-notify service initctl rc-service sv
		crontab cron anacron at atd batch fcron incrontab launchctl supervisorctl pm2`},
	{"runs, or writes into, other programs to look at them", `
		strace gdb gdbserver lldb ltrace valgrind rr dtrace bpftrace bcc uftrace kexec insmod modprobe gcore
		dlv delve jdb pdb radare2 r2`},
	{"is an editor that runs commands and writes any file", `
		vim vi view nvim neovim ex ed red rvim gvim vimdiff vimtutor nano pico rnano micro joe jmacs mcedit
		mc helix hx kak kakoune emacs emacsclient code codium cursor subl gedit kate zed sensible-editor
		editor select-editor`},
	{"is a pager or viewer that runs commands", `
		less more most pg man info pinfo bat batcat w3m lynx links elinks lesspipe sensible-pager pager
		ranger nnn lf fzf sk`},
	{"writes, changes or removes any file that its arguments name", `
		tee dd cp mv ln install truncate shred split csplit sort uniq patch sponge rm unlink rmdir chmod
		chown chgrp setfacl setcap chattr touch mkfifo mknod curl wget wget2 aria2c httpie http https xh
		axel tftp gpg gpg2 pass yq openssl objcopy strip xxd iconv ctags`},
	{"runs commands and programs from its prompt or its files", `
		psql mysql mariadb sqlite sqlite3 mongo mongosh redis-cli duckdb clickhouse sqlplus isql cqlsh`},
	{"opens files and addresses with whatever program is registered for them", `
		xdg-open open gio sensible-browser x-www-browser www-browser firefox chromium google-chrome run-
		mailcap see mail mailx mutt sendmail`},
	{"changes mounts, users or the system's settings", `
		mount umount fusermount fusermount3 losetup mkfs fdisk parted useradd usermod userdel passwd chsh
		chfn visudo vipw sysctl update-alternatives ldconfig iptables nft`},
}

var (
	version     = regexp.MustCompile(`([-._]?[0-9][0-9.]*[a-z]{0,2})+$`) // 3.12, -12, 3.13t, 1.27rc1
	alternative = regexp.MustCompile(`\.(basic|tiny|nox|gtk3?|athena|motif|gnome|openbsd|traditional|static|real|bin|distrib|exe)$`)
	target      = regexp.MustCompile(`^[a-z0-9_]+-(?:[a-z0-9_]+-)?(?:linux|none|w64|elf|freebsd|darwin)(?:-[a-z0-9_]+)?-`)
	loader      = regexp.MustCompile(`^ld(-[a-z0-9_.-]+)?\.so(\.[0-9.]+)?$`)
	assignment  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+?=`)
)

// Banned tells whether argv may not be approved in advance, and why: reason
// reads on after "it". A vector without a program is banned too.
func Banned(argv []string) (reason string, banned bool) {
	if len(argv) == 0 || argv[0] == "" {
		return "names no program", true
	}
	// What env or a leading assignment would start tells more than they do.
	if inner := behindEnv(argv); len(inner) > 0 {
		if reason := bannedProgram(inner[0]); reason != "" {
			return "starts " + path.Base(inner[0]) + ", which " + reason, true
		}
	}
	if assignment.MatchString(argv[0]) {
		return "starts with a variable's value, which only a shell understands", true
	}
	reason = bannedProgram(argv[0])
	return reason, reason != ""
}

// bannedProgram gives the reason why a program is banned, or "".
func bannedProgram(program string) string {
	if strings.Contains(program, "/") && !path.IsAbs(program) {
		return "is named by a relative path, which may lead to a file of the sandbox"
	}
	name := strings.ToLower(path.Base(program))
	if len(name) > 255 {
		return "is too long to be a program's name"
	}
	if loader.MatchString(name) {
		name = "ld.so"
	}
	reasons := bannedReasons()
	for _, n := range readings(name) {
		for i := range len(n) + 1 {
			if i == len(n) || n[i] == '-' {
				if reason := reasons[n[:i]]; reason != "" {
					return reason
				}
			}
		}
	}
	return ""
}

// bannedReasons is bannedPrograms by program.
var bannedReasons = sync.OnceValue(func() map[string]string {
	reasons := map[string]string{}
	for _, group := range bannedPrograms {
		for program := range strings.FieldsSeq(group.programs) {
			if reasons[program] == "" {
				reasons[program] = group.reason
			}
		}
	}
	return reasons
})

// readings gives the names that a program's name may stand for.
func readings(name string) []string {
	name = target.ReplaceAllString(name, "")
	stem := strings.TrimSuffix(alternative.ReplaceAllString(name, ""), "-static")
	head, _, _ := strings.Cut(stem, "-") // python3-dbg
	return []string{name, stem, version.ReplaceAllString(stem, ""), version.ReplaceAllString(head, "")}
}

// behindEnv gives the part of argv that env, however often it is written, or
// the assignments in front of a command would start; nil where there is none.
func behindEnv(argv []string) []string {
	var inner []string
	for range 16 { // who writes env more often than that is told of env
		switch {
		case len(argv) == 0:
			return nil
		case assignment.MatchString(argv[0]):
			argv = argv[1:]
		case strings.ToLower(path.Base(argv[0])) == "env":
			argv = behindOptions(argv[1:])
		default:
			return inner
		}
		inner = argv
	}
	return inner
}

// behindOptions skips the options of env.
func behindOptions(argv []string) []string {
	for len(argv) > 0 && strings.HasPrefix(argv[0], "-") {
		option := argv[0]
		argv = argv[1:]
		switch option {
		case "--":
			return argv
		case "-u", "--unset", "-C", "--chdir":
			argv = argv[min(1, len(argv)):]
		case "-S", "--split-string":
			if len(argv) > 0 {
				return append(strings.Fields(argv[0]), argv[1:]...)
			}
		}
	}
	return argv
}
