#!/bin/sh
# numafit top on a terminal, which tmux is: what it shows in 80 and 200 columns and in few lines, what
# keys do, and that the terminal is as before however it ends. And where there is none.
# usage: BUILD=build/debug test/unit/test_top.sh
set -u
test=top short=yes
. test/unit/script_rig.sh
command -v tmux >/dev/null || { echo "ok 1 # SKIP there is no tmux"; echo 1..1; exit 0; }
socket=$dir/run/numafitd.sock
screen() { tmux -S "$dir/tmux" -f /dev/null "$@" 2>/dev/null; }
trap 'screen kill-server; [ -z "$daemon" ] || kill "$daemon"; rm -rf "$dir"' EXIT

start() {
	"$bin/numafitd" --set machine=kep3545-8 --set topologyManagerPolicy=restricted \
		--set topologyManagerPolicyOptions.prefer-closest-numa-nodes=true \
		--set reservedSystemCPUs=0,64 --set nri.socketPath="$dir/nri.sock" \
		--set runDirectory="$dir/run" --set metrics.address= >"$dir/daemon" 2>&1 &
	daemon=$!
}
shows() { screen capture-pane -p -t top >"$dir/said" && grep -qF -e "$1" "$dir/said"; } # TEXT
lacks() { ! shows "$1"; }
is_set() { [ "$(screen display -p -t top "#{$1}")" = "$2" ]; } # FORMAT VALUE
# await WHAT COMMAND...: it succeeds soon
await() {
	what=$1 tries=200
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || break
		sleep 0.1
	done
	[ $tries -gt 0 ]
	report $? "${name:+$name: }$what"
}
# top COLUMNS LINES [VARIABLE=VALUE]: in a shell that says afterwards how it ended, and whether the
# terminal's settings are as before
top() {
	cat >"$dir/shell" <<-X
		trap : INT
		echo before
		before=\$(stty -g)
		sh -c 'echo \$\$ >"$dir/pid"; exec env ${3:-LC_ALL=C} "$bin/numafit" top --socket "$socket"'
		echo "ended \$?"
		[ "\$(stty -g)" = "\$before" ] && echo "as before"
		exec sleep 1000
	X
	screen kill-session -t top
	rm -f "$dir/pid"
	screen new-session -d -s top -x "$1" -y "$2" "sh '$dir/shell'"
}
keys() { screen send-keys -t top "$@"; }
size() { screen resize-window -t top -x "$1" -y "$2"; }
ended() { # CODE: and left nothing behind
	await "ends with $1" shows "ended $1"
	await "the terminal has its settings back" shows "as before"
	await "what was there before is there again" shows before
	see "on its own screen" is_set alternate_on 0
	see "with a cursor" is_set cursor_flag 1
}

screen new-session -d -s others "sleep 1000" # with the last session the server would end
start
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 \
	--trace test/traces/demo.yaml >"$dir/played" 2>&1
report $? "the trace is played to its end"

name="80 columns"
top 80 24
await "the containers are listed" shows "16 containers by name"
see "with their NUMA nodes" shows "a  ai/analytics           spark      48-59,112-123  yes     6-7"
see "which have a line each" shows "node  7 aaaa"
see "that no runtime is there stands above" shows "the runtime is not connected: containers start unpinned"
see "the keys stand below" shows "q quit   s sort"
name="keys"
keys s
await "s sorts otherwise" shows "16 containers by CPUs"
keys / w e b
await "/ filters while it is typed" shows 'with "web": 3'
see "and shows what is typed" shows "/web_   Enter keeps it"
keys Enter
await "Enter keeps the filter" lacks "Enter keeps it"
see "as it is" shows 'with "web": 3'
name="200 columns"
size 200 60
await "all columns are there" shows "QOS        PREFERRED  WISHES"
see "and the NUMA nodes as blocks" shows "+- node 0 ---"
name="keys"
keys Escape
await "Esc clears the filter" lacks 'with "web"'
name="ten lines"
size 80 10
await "the table is cut" shows "more"
see "and there are no blocks" lacks "+- node 0 ---"
keys j
await "j scrolls" shows "; 1 above; "
keys k
await "k scrolls back" lacks "above"
keys Down Down
await "so do arrows" shows "; 2 above; "
keys G
await "G shows the last one" lacks "more"

name="a daemon that goes away"
size 80 24
await "there is one first" shows "numafitd "
stop_daemon
await "is said" shows "cannot connect to $socket"
see "and what was there is shown further" shows "16 containers"
start
await "is found again" lacks "cannot connect"

name="q"
keys q
ended 0
name="Ctrl-C"
top 80 24
await "it runs" shows "containers by name"
keys C-c
ended 130
for signal in TERM HUP QUIT; do
	name="SIG$signal"
	top 80 24
	await "it runs" shows "containers by name"
	kill -$signal "$(cat "$dir/pid")"
	case $signal in TERM) ended 143 ;; HUP) ended 129 ;; QUIT) ended 131 ;; esac
done
name="stopped and continued"
top 80 24
await "it runs" shows "containers by name"
kill -TSTP "$(cat "$dir/pid")"
await "it leaves the screen" is_set alternate_on 0
kill -CONT "$(cat "$dir/pid")"
await "and takes it again" shows "containers by name"
coloured() { screen capture-pane -e -p -t top | grep -q "$(printf '\033')"; }
see "it has colours" coloured
name="NO_COLOR"
top 80 24 NO_COLOR=1
await "it runs" shows "containers by name"
see "it has none" eval '! coloured'
screen kill-session -t top

name=
run "without a terminal" 0 "$bin/numafit" top --socket "$socket"
see "one frame is printed" says out "containers by name"
see "all of it" sh -c "! grep -q more '$dir/out'"
see "in 80 columns" sh -c "! grep -q '.\{81\}' '$dir/out'"
see "without a control character" sh -c "! grep -q '[[:cntrl:]]' '$dir/out'"
run "as wide as COLUMNS says" 0 env COLUMNS=200 "$bin/numafit" top --socket "$socket"
see "it has all columns" says out "PREFERRED  WISHES"
run "with a terminal that can do nothing it is the same" 0 env TERM=dumb script -qec \
	"$bin/numafit top --socket $socket" /dev/null
see "frame" says out "containers by name"
run "one namespace" 0 "$bin/numafit" top --socket "$socket" -n nosuch
see "is asked for by name" says out "namespace nosuch: 0"
stop_daemon
run "without a daemon" 3 "$bin/numafit" top --socket "$socket"
see "it says what to check" says err "Check that numafitd runs on this node"
run "an interval that is none" 2 "$bin/numafit" top --interval 0s
finish
