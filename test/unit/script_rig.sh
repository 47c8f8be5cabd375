# What tests that are scripts share: a folder of their own, TAP, and a daemon in the background that
# ends with the test. Set test=NAME first, and short=yes where sockets lie in the folder (their paths
# have 107 bytes at most).
# usage: test=NAME; . test/unit/script_rig.sh      from the repository's root; finish at the end
bin=${BUILD:-build/debug}
base=${TMPDIR:-/tmp}
[ -z "${short:-}" ] || base=/tmp
dir=$(mktemp -d "$base/numafit-$test.XXXXXX") || exit 1
number=0 bad=0 name='' daemon=''
trap '[ -z "$daemon" ] || kill "$daemon"; rm -rf "$dir"' EXIT

report() { # STATUS WHAT: one case
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
		return
	fi
	echo "not ok $number - $2"
	for printed in said out err log; do
		[ ! -e "$dir/$printed" ] || sed 's/^/# /' "$dir/$printed"
	done
	bad=1
}

# run NAME WANTED-STATUS COMMAND...: what it prints is in $dir/out and $dir/err, for see
run() {
	name=$1 wanted=$2
	shift 2
	"$@" >"$dir/out" 2>"$dir/err"
	[ $? -eq "$wanted" ]
	report $? "$name"
}

see() { # WHAT COMMAND...: it succeeds
	what=$1
	shift
	"$@" >/dev/null 2>&1
	report $? "${name:+$name: }$what"
}

is() { [ "$(cat "$dir/$1")" = "$2" ]; }  # FILE TEXT: that is all
says() { grep -qF -e "$2" "$dir/$1"; }   # FILE TEXT: a line has it

# line FILE WORD...: one line of the file has all of them
line() {
	file=$dir/$1
	shift
	awk 'BEGIN { for (i = 1; i < ARGC; i++) { w[i] = ARGV[i]; ARGV[i] = "" }; n = ARGC - 1 }
		{ hit = 1; for (i = 1; i <= n; i++) hit = hit && index($0, w[i]); found = found || hit }
		END { exit !found }' "$@" <"$file"
}

stop_daemon() {
	kill "$daemon"
	wait "$daemon"
	daemon=
}

finish() {
	echo "1..$number"
	exit $bad
}
