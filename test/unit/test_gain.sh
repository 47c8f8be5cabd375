#!/bin/sh
# make gain's program as it is called: a try of each load, what it prints and writes, and what it leaves behind. TAP.
# usage: BUILD=build/debug test/unit/test_gain.sh
set -u
test=gain short=yes
. test/unit/script_rig.sh
gain=$bin/gain/gain

run "a try of each load but Redis, without cgroups" 0 "$gain" --quick --no-cgroups --only triad,chase,loop \
	--json "$dir/json" --svg "$dir/svg"
see "says what it will use first" says out "of memory, for some"
for load in "triad, bandwidth, GB/s" "chase, one read, ns" "loop, p99.9, us"; do
	see "the table has $load" says out "$load"
done
see "the container is where numafit's engine says" line out numafit none
see "one run says nothing of differences" says out "nothing is said of differences"
see "throttling is not claimed" says out "Throttling was not measured"
see "the JSON has each value" says json '"figure": "p99.9"'
see "and the pages by NUMA node" says json '"pages"'
see "and no throttling" sh -c '! grep -q nr_throttled "$1"' sh "$dir/json"
see "the drawing is whole" says svg "</svg>"
rm "$dir/json" "$dir/svg"

# tools/setup all installs it, make test alone does not
if [ -x /usr/bin/redis-benchmark ]; then
	run "a try of Redis" 0 env TMPDIR="$dir" "$gain" --quick --no-cgroups --only redis
	see "has a rate" says out "redis, rate, requests/s"
	see "and leaves no server" sh -c '! cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" " " | grep -qa "[u]nixsocket:$1/"' sh "$dir"
	see "and no folder" sh -c '! ls -d "$1"/numafit-gain.*' sh "$dir"
else
	number=$((number + 1))
	echo "ok $number - # SKIP redis-tools is not there"
fi

run "a plan for another machine" 0 "$gain" --plan --machine epyc-nps2
see "has what is left of two nodes for the kubelet's order" line out "static, as a kubelet" 3-5,19-21 kept
see "has one node for numafit" line out numafit 4-6,20-22 lifted
see "has the farthest memory for the worst" line out worst 4-6,20-22 2
run "a load that is none" 2 "$gain" --only quad
see "is named" says err '"quad" is none of triad,chase,loop,redis'
run "another machine than this one is not measured" 2 "$gain" --machine epyc-nps2
run "a container that is too large" 3 "$gain" --cpus 1000
see "is refused" says err "1000 CPUs do not fit"

name="at a signal"
"$gain" --only chase --runs 9 --no-cgroups >"$dir/out" 2>"$dir/err" &
daemon=$!
until grep -q "run 1 of" "$dir/err"; do sleep 0.05; done
until load=$(cat "/proc/$daemon/task/$daemon/children") && [ -n "$load" ]; do sleep 0.05; done
kill -TERM "$daemon"
wait "$daemon"
status=$? daemon=
see "it ends with that signal's status" [ "$status" -eq 143 ]
see "without a table" sh -c '! grep -q median "$1"' sh "$dir/out"
see "with its processes" sh -c '! kill -0 $1' sh "$load"
finish
