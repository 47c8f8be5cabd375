#!/bin/sh
# A real daemon's journal: replayed, explained, kept over restarts, and set aside when another
# numafit wrote it. numafit-sim is the container runtime.
# usage: BUILD=build/debug test/unit/test_journal_verbs.sh
set -u
test=journal-verbs short=yes
. test/unit/script_rig.sh
numafit=$bin/numafit
trap 'stop; rm -rf "$dir"' EXIT

# run NAME WANTED-STATUS COMMAND...
run() {
	name=$1 wanted=$2
	shift 2
	"$@" >"$dir/out" 2>&1
	[ $? -eq "$wanted" ]
	report $? "$name"
}
see() { # WHAT TEXT
	grep -qF -e "$2" "$dir/out"
	report $? "$name: $1"
}

start() { # SETTING...
	: >"$dir/log"
	"$bin/numafitd" --set machine=kep3545-8 --set nri.socketPath="$dir/nri.sock" \
		--set runDirectory="$dir/run" --set metrics.address= --set topologyManagerPolicy=restricted \
		--set reservedSystemCPUs=0,64 "$@" >"$dir/log" 2>&1 &
	daemon=$!
}
# Its log says when it has read the journal; a daemon that cannot start ends.
started() { tail -n +1 -f --pid="$daemon" "$dir/log" | grep -q -m1 'event=started'; }
stop() {
	if [ -n "$daemon" ]; then
		kill "$daemon" 2>/dev/null
		wait "$daemon" 2>/dev/null
	fi
	daemon=
}

start
run "the demo's containers are placed" 0 "$bin/numafit-sim" --socket "$dir/nri.sock" \
	--machine kep3545-8 --reserved 0,64 --trace test/traces/demo.yaml
stop
run "all that the daemon has decided is decided the same from its journal" 0 \
	"$numafit" replay "$dir/run/journal"
see "and counted" " decided again, 0 differ"
run "standard input is as good as a file" 0 sh -c "'$numafit' replay - <'$dir/run/journal'"
see "and counted" " decided again, 0 differ"
run "a dead daemon's decision is explained" 0 "$numafit" explain --run-directory "$dir/run" postgres
see "with its CPUs" "1-4,65-68, for it alone, on NUMA node 0"
see "and with what there was to choose from" "chosen: NUMA node 0; next best: "
run "a refusal is explained" 0 "$numafit" explain --run-directory "$dir/run" --all triton
see "with what was missing" "cpu: enough only on 2 nodes together, where 1 could have it"

start
started
run "whatif asks a journal in use" 0 "$numafit" whatif --run-directory "$dir/run" --cpus 2
see "and sees what is held" "0     0 of 16 (was 2)"
for set in reservedSystemCPUs=1 deviceMemory=include; do
	run "whatif refuses $set, which the ledger was built without" 2 "$numafit" whatif --run-directory "$dir/run" --cpus 2 --set "$set"
	see "and why" "cannot be changed while containers are held"
done
stop
test -s "$dir/run/journal.1"
report $? "the journal before a restart is kept"
run "and still says why" 0 "$numafit" explain --run-directory "$dir/run" postgres
see "when it was decided" "chosen: NUMA node 0; next best: "
run "the new journal can be replayed, too" 0 "$numafit" replay "$dir/run/journal"

echo 'a0c0aef1 {"journal":1,"version":"0.0.9","boot_id":"b"}' >"$dir/run/journal"
start
started
stop
cp "$dir/log" "$dir/out"
name="a journal of another format"
see "is set aside by its reason" "journal.other-version"
see "and said to be of another format" "it has format 1, numafit 0.1.0 reads format 3 only"
grep -q '"journal":1' "$dir/run/journal.other-version"
report $? "it is not lost"
run "what is not known any more" 1 "$numafit" explain --run-directory "$dir/run" nobody
see "is reported with the journal that was set aside" "$dir/run/journal.other-version aside"
finish
