# shellcheck shell=bash source-path=SCRIPTDIR source=../lib.sh
# What the scripts share that make pictures: a terminal of the account's, with
# keys typed and pictures taken. Sourced from the root of the clone after lib.sh.

work=$(stage)
trap 'tm kill-server 2>/dev/null || true; unstage "$work"' EXIT
into_stage "$work" bin/lazaret

# tm ARGS...: tmux, as the account, with an environment that shows nobody's names.
tm() {
	as_account env XDG_STATE_HOME="$work/state" PATH="$work/bin:/usr/local/bin:/usr/bin:/bin" SHELL=/bin/sh COLORTERM=truecolor TERM=xterm-256color \
		tmux -f /dev/null -S "$work/tmux" "$@"
}

# terminal COLUMNS ROWS DIR COMMAND: begins a session in DIR.
terminal() {
	columns=$1
	tm new-session -d -x "$1" -y "$2" -c "$3" "$4"
	tm set-option -g default-terminal tmux-256color >/dev/null
	tm set-option -g status off >/dev/null
	tm set-option -sa terminal-features ',*:RGB' >/dev/null
}

# resize COLUMNS ROWS
resize() {
	columns=$1
	tm resize-window -x "$1" -y "$2"
	sleep 0.5
}

# types TEXT: and Enter.
types() { tm send-keys -l "$1" && tm send-keys Enter; }

# sees TEXT: waits until the screen shows it.
sees() {
	local n
	for ((n = 0; n < 400; n++)); do
		[[ $(tm capture-pane -p) != *"$1"* ]] || return 0
		sleep 0.1
	done
	tm capture-pane -p >&2
	die "the screen does not show: $1" "look at it above"
}

# take NAME TITLE: draws what the terminal shows.
take() {
	sleep 1 # the keys light up
	# Not this machine's names.
	tm capture-pane -e -p | sed -e "s,~/\.cache/lazaret-ci/${work##*/},~,g; s,$work,/home/anna,g; s,$(account_home),/home/anna,g" \
		-e "s,=$(account)\b,=anna,g; s,$(runtime_dir),/run/user/1000,g" |
		bin/screens "$columns" "$2" >"docs/screens/$1.svg"
	echo "docs/screens/$1.svg"
}
