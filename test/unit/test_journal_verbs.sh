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
run "and so is a pipe" 0 sh -c "cat '$dir/run/journal' | '$numafit' replay -"
see "and counted" " decided again, 0 differ"
run "a dead daemon's decision is explained" 0 "$numafit" explain --run-directory "$dir/run" postgres
see "with its CPUs" "1-4,65-68, for it alone, on NUMA node 0"
! grep -q "best NUMA nodes" "$dir/out"
report $? "$name: and without what only its developers need"
run "all of it" 0 "$numafit" explain --run-directory "$dir/run" postgres -o wide
see "and with what there was to choose from" "chosen: NUMA node 0; next best: "
run "a pod that was made anew under its name" 0 "$numafit" explain --run-directory "$dir/run" inference
see "is explained with the one before it, which is said to be another" "an earlier pod of this name:"
run "a refusal is explained" 0 "$numafit" explain --run-directory "$dir/run" --all triton
see "with what was missing" "policy restricted allows 1 NUMA"
see "and with what would help" "help      Fits when "
run "what was refused is listed" 0 "$numafit" refusals --run-directory "$dir/run"
see "with what it asked for" "ai/inference/triton  12 CPUs, 40Gi of memory  "
see "and why" " has most free: 10 CPUs, 38Gi of memory; policy restricted allows 1 NUMA node"
see "and that it was placed later" "  placed"
see "a resize as one" "ai/trainer-0/worker  resize to 12 CPUs, 24Gi of memory  where-it-runs"
see "which left the container as it was" "  as before"
see "and how many there were, since when" "2 refusals (1 of a resize) since "
see "which is not what status counts" ", when the journal begins; numafit status counts from numafitd's start, without resizes"
run "all of it" 0 "$numafit" refusals --run-directory "$dir/run" -o wide
see "has the kubelet's word, too" "  TopologyAffinityError  "
run "what another namespace was refused" 0 "$numafit" refusals --run-directory "$dir/run" -n shop
! grep -q triton "$dir/out"
report $? "$name: is not listed where only one is asked for"
run "a program gets the records" 0 "$numafit" refusals --run-directory "$dir/run" -n ai -o json
see "as they are in the journal" '"op":"refuse","cause":"create"'
see "with the class, and why" ',"class":"not-together","why":"NUMA node '
see "and what would help, in words" ',"help":"Fits when '
see "and as data" ',"remedies":[{"kind":"pods-end","text":"when '
see "which names the pods" ',"pods":[{"namespace":"ai","name":"'
run "the explanation of a refusal for a program" 0 "$numafit" explain --run-directory "$dir/run" --all triton -o json
see "has the class, and why" ',"class":"not-together","why":"NUMA node '
see "and what it could ask for instead" '{"kind":"ask-for-less","text":"with '
see "as data" ',"ask":{"name":"triton","kind":"app","cpu_milli":'
[ "$(grep -c '"class":' "$dir/out")" -eq "$(grep -c '"op":"refuse"' "$dir/out")" ]
report $? "$name: and only a refusal has these"
run "a namespace as for kubectl" 0 "$numafit" refusals --run-directory "$dir/run" -n=ai
see "is found" "ai/inference/triton"
run "what no namespace was refused" 0 "$numafit" refusals --run-directory "$dir/run" --since 1h -n nobody
see "is reported as nothing" "nothing was refused"
run "a name's beginning stands for all pods that have it" 0 "$numafit" explain --run-directory "$dir/run" trainer
see "the first of them" "ai/trainer-0/worker: accepted"
see "and the last" "ai/trainer-7/worker: accepted"
run "only in one namespace" 1 "$numafit" explain --run-directory "$dir/run" -n shop trainer
see "where there are none" 'has nothing of "trainer" in namespace shop'
run "a misspelt name" 1 "$numafit" explain --run-directory "$dir/run" postgers
see "is answered with what may be meant" "Did you mean shop/db/postgres?"
run "the names are listed" 0 "$numafit" explain --run-directory "$dir/run" --list
see "each on a line" "ai/inference/triton"
run "a table has a line for each event" 0 "$numafit" explain --run-directory "$dir/run" --all -o table triton
see "with what came of it" "ai/inference/triton  refused "
see "also of the later one" "ai/inference/triton  accepted"
if [ "$(id -u)" -eq 0 ]; then
	chmod 755 "$dir" "$dir/run"
	run "a user who may not read the journal" 3 setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$numafit" explain --run-directory "$dir/run" triton
	see "reads how to ask in the cluster" "kubectl numafit explain POD -n NS"
	see "also without the plugin" "kubectl -n numafit-system exec POD -- numafit explain"
	see "and which setting lets a group read it" "journalGroup"
	run "one who may not open the socket" 3 setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$numafit" status --run-directory "$dir/run"
	see "reads the same of status" "kubectl numafit status NODE"
fi

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
run "and still says why" 0 "$numafit" explain --run-directory "$dir/run" postgres -o wide
see "when it was decided" "chosen: NUMA node 0; next best: "
run "and what was refused before it" 0 "$numafit" refusals --run-directory "$dir/run"
see "from the journal before" "ai/inference/triton"
if [ "$(id -u)" -eq 0 ]; then
	as_group() { setpriv --reuid 65534 --regid "$1" --clear-groups "$numafit" explain --run-directory "$dir/run" "$2"; }
	chmod 700 "$dir/run"
	start --set journalGroup=4242
	started
	run "a member of journalGroup reads the journal" 0 as_group 4242 postgres
	! grep -q "Permission denied" "$dir/out"
	report $? "$name: and the one before it"
	run "another user does not" 3 as_group 4243 postgres
	see "and reads why" "Permission denied"
	stop
	start --set journalGroup=4242
	started
	stop
	run "the same holds for the next journal" 0 as_group 4242 postgres
	[ "$(stat -c %a.%g "$dir/run/journal" "$dir/run/journal.1" | sort -u)" = 640.4242 ]
	report $? "nobody else may read either file"
	start --set journalGroup=no-such-group
	started
	stop
	cp "$dir/log" "$dir/out"
	name="a group that there is not"
	see "is logged, with what to do" 'event=journal-not-shared group=no-such-group path=/etc/group'
	[ "$(stat -c %a "$dir/run/journal" "$dir/run/journal.1" | sort -u)" = 600 ]
	report $? "then root alone reads both files"
fi
run "the new journal can be replayed, too" 0 "$numafit" replay "$dir/run/journal"

echo 'a0c0aef1 {"journal":1,"version":"0.0.9","boot_id":"b"}' >"$dir/run/journal"
start
started
stop
cp "$dir/log" "$dir/out"
name="a journal of another format"
see "is set aside by its reason" "journal.other-version"
see "and said to be of another format" "it has format 1, $("$numafit" --version) reads format 3 only"
grep -q '"journal":1' "$dir/run/journal.other-version"
report $? "it is not lost"
run "what is not known any more" 1 "$numafit" explain --run-directory "$dir/run" nobody
see "is reported with the journal that was set aside" "$dir/run/journal.other-version aside"
start --set runDirectory="$dir/run2"
started
run "status is printed again and again" 0 sh -c "'$numafit' status -w --socket '$dir/run2/numafitd.sock' |
	grep -m2 '^numafitd '"
"$numafit" refusals -w --since 1s -n again --run-directory "$dir/run2" >"$dir/watched" 2>"$dir/out" &
watcher=$!
printf '%s\n' 'steps:' '- create: {namespace: again, pod: p, container: c, qos: guaranteed, cpu: 99, memory: 1Gi}' \
	>"$dir/again.yaml"
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --trace "$dir/again.yaml" >"$dir/out" 2>&1
name="what is refused while refusals -w runs"
tail -n +1 -f --pid="$watcher" "$dir/watched" | grep -q -m1 'again/p/c'
report $? "$name: is printed"
kill "$watcher"
wait "$watcher" 2>/dev/null
stop
finish
