#!/bin/sh
# The daemon beside a runtime that forgets, each time it starts again, what was changed of containers.
# numafit-sim knows what is in force, and ends at once when a CPU belongs to two.
# usage: BUILD=build/debug test/unit/test_sim_forgets.sh
set -u
test=sim-forgets short=yes
. test/unit/script_rig.sh

"$bin/numafitd" --set machine=kep3545-8 --set reservedSystemCPUs=0,64 --set nri.socketPath="$dir/nri.sock" \
	--set runDirectory="$dir/run" --set metrics.address= >"$dir/log" 2>&1 &
daemon=$!
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 --forget \
	--trace test/traces/forgets.yaml >"$dir/out" 2>&1
played=$?
"$bin/numafit" status --socket "$dir/run/numafitd.sock" >"$dir/status" 2>&1
see "the trace is played to its end" [ $played -eq 0 ]
see "no CPU belongs to two" says out "no CPU given twice"
see "nothing is taken for a resize that was none" sh -c "! grep -q cause=resized '$dir/log'"
see "no container is adopted again" says status " 0 adopted"
see "the log says that cgroups cannot be read" says log event=in-force-unknown
see "a journal of it can be decided once more" "$bin/numafit" replay "$dir/run/journal"
stop_daemon
finish
