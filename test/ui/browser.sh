# What the tests of pages share: Chromium without a window, TAP, screenshots. It speaks the DevTools
# protocol over two pipes: messages with a NUL behind each.
# usage: bin=build/debug shots=DIRECTORY; . test/ui/browser.sh; start_browser; open_tab; finish_tests at the end
# shellcheck shell=bash
# $running: processes that end with the test.
dir=$(mktemp -d /tmp/numafit-ui.XXXXXX) || exit 1
number=0 bad=0 sent=0 running='' browser=''
mkdir -p "$shots"
finish() {
	exec 8>&- 9<&-
	for pid in $running $browser; do kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; done
	rm -rf "$dir"
}
trap finish EXIT

report() { # STATUS WHAT
	number=$((number + 1))
	[ "$1" -eq 0 ] && echo "ok $number - $2" && return
	echo "not ok $number - $2"
	[ ! -s "$dir/said" ] || sed 's/^/# /' "$dir/said"
	bad=1
}
await() { # COMMAND...: until it succeeds
	for _ in $(seq 300); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	return 1
}

start_browser() {
	mkfifo "$dir/to" "$dir/from"
	chromium --headless=new --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage \
		--user-data-dir="$dir/profile" --remote-debugging-pipe --hide-scrollbars about:blank \
		3<"$dir/to" 4>"$dir/from" 2>"$dir/browser" &
	browser=$!
	exec 8>"$dir/to" 9<"$dir/from"
}
# call METHOD PARAMS: its answer into $got; events meanwhile into $dir/events
call() {
	sent=$((sent + 1))
	printf '{"id":%d%s,"method":"%s","params":%s}\0' "$sent" "${session:+,\"sessionId\":\"$session\"}" "$1" "$2" >&8
	while IFS= read -r -t 60 -d '' got <&9; do
		case $got in
		"{\"id\":$sent,"*) return ;;
		*) printf '%s\n' "$got" >>"$dir/events" ;;
		esac
	done
	echo "the browser does not answer $1" >"$dir/said"
	return 1
}
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" <<<"$got"; }
open_tab() {
	session=
	call Target.createTarget '{"url":"about:blank"}'
	call Target.attachToTarget "{\"targetId\":\"$(field targetId)\",\"flatten\":true}"
	session=$(field sessionId)
	for domain in Page Runtime Log Network; do call $domain.enable '{}'; done
	call Emulation.setFocusEmulationEnabled '{"enabled":true}'
}
size() { call Emulation.setDeviceMetricsOverride "{\"width\":$1,\"height\":$2,\"deviceScaleFactor\":1,\"mobile\":false}"; }
colours() { call Emulation.setEmulatedMedia "{\"features\":[{\"name\":\"prefers-color-scheme\",\"value\":\"$1\"}]}"; }
# value EXPRESSION: what it comes to in the page, a text, a number or a promise of one; no double quotes in it
value() {
	call Runtime.evaluate "{\"returnByValue\":true,\"awaitPromise\":true,\"expression\":\"Promise.resolve($1).then(String)\"}" || return 1
	printf '%s\n' "$got" >"$dir/said"
	sed -n 's/.*"type":"string","value":"\(.*\)"}}.*/\1/p' <<<"$got"
}
is() { [ "$(value "$1")" = "$2" ]; } # EXPRESSION TEXT
see() { # WHAT EXPRESSION TEXT
	is "$2" "$3"
	report $? "$1"
}
shoot() { # NAME [WHOLE]: what is seen; true: the whole page
	call Page.captureScreenshot "{\"format\":\"png\",\"captureBeyondViewport\":${2:-false}}"
	field data | base64 -d >"$shots/$1.png"
}
visit() { # WHAT: the page at $port, until it is drawn
	call Page.navigate "{\"url\":\"http://localhost:$port/\"}"
	await is "document.body && document.body.dataset.drawn" yes
	report $? "$1: the page is drawn"
}
faults='"method":"(Log\.entryAdded|Runtime\.(consoleAPICalled|exceptionThrown)|Page\.javascriptDialogOpening)"'
no_faults() { # since the browser's start
	grep -E "$faults" "$dir/events" | grep -v 'net::ERR_' >"$dir/said"
	[ ! -s "$dir/said" ]
}
finish_tests() {
	echo "1..$number"
	exit $bad
}
