#!/bin/bash
# Machines whose NUMA nodes cross packages or caches, as guests of KVM and clouds have them, by the programs that
# ship: each NUMA node has the CPUs of its cpulist, and the programs say where hwloc has others.
# usage: BUILD=build/debug test/unit/test_machine_crossing.sh
set -u
test=machine-crossing
short=yes # it has a daemon's sockets
. test/unit/script_rig.sh
. test/unit/page_rig.sh
recorded=test/machines/recorded

nodes() { awk '$1 ~ /^[0-9]+$/ && NF == 6 { print $1, $5, $6 }' "$dir/out" | diff - "$dir/wanted" >"$dir/said"; }

printf '0 0-1 0-1,4-5\n1 0-1 2-3,6-7\n' >"$dir/wanted"
run "numafit topology of a guest whose packages cross NUMA nodes" 0 "$bin/numafit" topology --machine "$recorded/kvm-a"
see "has the CPUs of each cpulist" nodes
see "says what hwloc has for node 0" line out "corrected: NUMA node 0 has CPUs 0-1,4-5" "hwloc has 0-7"
see "says what hwloc has for node 1" line out "corrected: NUMA node 1 has CPUs 2-3,6-7" "hwloc has none"
see "prints nothing on standard error" is err ""

printf '0 0 0,2,4,6,8,10,12,14\n1 0 1,3,5,7,9,11,13,15\n' >"$dir/wanted"
run "numafit topology of a machine whose caches cross NUMA nodes" 0 "$bin/numafit" topology --machine "$recorded/l3-b"
see "has the CPUs of each cpulist" nodes
see "keeps both caches" says out "last-level caches 2"
see "says what hwloc has" line out "corrected: NUMA node 1 has CPUs 1,3,5,7,9,11,13,15" "hwloc has none"

run "numafit topology of a machine that nests" 0 "$bin/numafit" topology --machine kep3545-8
see "corrects nothing" test -z "$(grep corrected "$dir/out" "$dir/err")"
run "an export of the guest" 0 "$bin/numafit" topology --machine "$recorded/kvm-a" --export
see "has the corrections as comments" line out "# corrected: NUMA node 1" "2-3,6-7"
cp "$dir/out" "$dir/kvm-a.machine"
printf '0 0-1 0-1,4-5\n1 0-1 2-3,6-7\n' >"$dir/wanted"
run "and is read again" 0 "$bin/numafit" topology --machine "$dir/kvm-a.machine"
see "as the same machine" nodes
run "an average distance of the guest" 0 "$bin/numafit" topology --machine "$recorded/kvm-a" --average 0-1
see "is all that standard output has" is out 15
see "and standard error has the corrections" says err "numafit topology: corrected: NUMA node 1 has CPUs 2-3,6-7"

run "numafit topology of an XML of the guest" 0 "$bin/numafit" topology --machine "$recorded/kvm-a.xml"
see "marks the NUMA node without CPUs" line out "doubtful: NUMA node 1 has no CPUs in this XML" "CPUs 0-7 are local"
run "numafitd --check-config on that XML" 0 "$bin/numafitd" --check-config --set "machine=$recorded/kvm-a.xml"
see "warns of the NUMA node without CPUs" says out "warning: machine: NUMA node 1 has no CPUs in this XML"

for row in "10" "10 20 30" "10 twenty" "10 300" "10 -20" "10 0" "30 20" ""; do
	rm -rf "$dir/guest"
	cp -R "$recorded/kvm-a" "$dir/guest"
	echo "$row" >"$dir/guest/sys/devices/system/node/node0/distance"
	run "numafitd --check-config with the distances \"$row\"" 0 "$bin/numafitd" --check-config --set "machine=$dir/guest"
	see "warns that no distance is used" says out ": no distance is used, 10 and 20 are assumed"
done

for guest in kvm-a l3-b; do
	run "numafitd --check-config on $guest" 0 "$bin/numafitd" --check-config --set "machine=$recorded/$guest"
	see "says that the settings are right" says out "config ok: "
	see "warns of NUMA node 0" line out "warning: machine: NUMA node 0 has CPUs" "hwloc has 0-"
	see "warns of NUMA node 1" line out "warning: machine: NUMA node 1 has CPUs" "hwloc has none"
done

"$bin/numafitd" --set "machine=$PWD/$recorded/kvm-a" --set "runDirectory=$dir/run" --set "nri.socketPath=$dir/none" \
	--set logFormat=text --set metrics.address= --set ui.address=localhost:0 >"$dir/log" 2>&1 &
daemon=$!
tries=0
until grep -q 'event=started' "$dir/log" || [ $tries -ge 100 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
name="numafitd's log on the guest"
see "names the corrected NUMA node" line log "level=warn" "event=machine-corrected" "kind=cpus" "node=1" \
	"says=hwloc" "2-3,6-7"
run "numafit status of the guest" 0 "$bin/numafit" status --socket "$dir/run/numafitd.sock" -o json
tr -d ' \n' <"$dir/out" >"$dir/out.json"
see "has both sockets of NUMA node 0" grep -q '"sockets":"0-1"' "$dir/out.json"
see "has no single socket" sh -c "! grep -q '\"socket\":' '$dir/out.json'"
port=$(sed -n 's/.* event=status-page-served .*port \([0-9]*\)".*/\1/p' "$dir/log")
see "has both sockets on the status page" gets 200 GET /api/machine
see "of each NUMA node" test "$(body | grep -o '"sockets":"0-1"' | wc -l)" = 2
stop_daemon

# A pod of 6 CPUs is larger than each NUMA node of the guest, which has 4
pod='{"op":"run-pod","pod":{"metadata":{"uid":"six"},"spec":{"containers":[{"name":"app","resources":{"limits":{"cpu":6,"memory":"1Gi"}}}]}}}'
ask() { # POLICY
	printf '{"machine":"%s","settings":{"topologyManagerPolicy":"%s","reservedSystemCPUs":"0"},"steps":[%s]}\n' \
		"$recorded/kvm-a" "$1" "$pod" >"$dir/question"
	"$bin/numafit" decide "$dir/question"
}
run "a pod of 6 CPUs with single-numa-node on the guest" 0 ask single-numa-node
see "is refused" line out '"admit":false' '"reason":"TopologyAffinityError"'
run "a pod of 6 CPUs with best-effort on the guest" 0 ask best-effort
see "is admitted on both NUMA nodes" line out '"admit":true' '"nodes":"0-1"'
finish
