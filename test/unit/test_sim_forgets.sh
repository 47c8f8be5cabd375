#!/bin/sh
# The daemon beside a runtime that forgets, each time it starts again, what was changed of containers.
# numafit-sim knows what is in force, and ends at once when a CPU belongs to two.
# usage: BUILD=build/debug test/unit/test_sim_forgets.sh
set -u
bin=${BUILD:-build/debug}
dir=$(mktemp -d /tmp/numafit-sim.XXXXXX) || exit 1 # a short path: a socket's has 107 bytes at most
daemon=
trap '[ -z "$daemon" ] || kill "$daemon"; rm -rf "$dir"' EXIT
number=0 bad=0

see() { # WHAT COMMAND...
	what=$1
	shift
	number=$((number + 1))
	if "$@" >/dev/null 2>&1; then
		echo "ok $number - $what"
	else
		echo "not ok $number - $what"
		sed 's/^/# /' "$dir/out" "$dir/log"
		bad=1
	fi
}

# has FILE WORD: a line has the word
has() { grep -qF -- "$2" "$dir/$1"; }

"$bin/numafitd" --set machine=kep3545-8 --set reservedSystemCPUs=0,64 --set nri.socketPath="$dir/nri.sock" \
	--set runDirectory="$dir/run" --set metrics.address= >"$dir/log" 2>&1 &
daemon=$!
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 --forget \
	--trace test/traces/forgets.yaml >"$dir/out" 2>&1
played=$?
"$bin/numafit" status --socket "$dir/run/numafitd.sock" >"$dir/status" 2>&1
see "the trace is played to its end" [ $played -eq 0 ]
see "no CPU belongs to two" has out "no CPU given twice"
see "nothing is taken for a resize that was none" sh -c "! grep -q cause=resized '$dir/log'"
see "nobody is adopted anew" has status " 0 adopted"
see "it says that cgroups cannot be read" has log event=in-force-unknown
see "a journal of it can be decided once more" "$bin/numafit" replay "$dir/run/journal"
kill "$daemon"
wait "$daemon"
daemon=
echo "1..$number"
exit $bad
