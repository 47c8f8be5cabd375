#!/bin/sh
# podsAPI.enabled auto, its default: a daemon beside a kubelet without a Pods API, and then one that
# has it.
# usage: BUILD=build/debug test/unit/test_pods_auto.sh
set -u
test=pods-auto short=yes
. test/unit/script_rig.sh

"$bin/numafitd" --set machine=kep3545-8 --set reservedSystemCPUs=0,64 --set nri.socketPath="$dir/nri.sock" \
	--set runDirectory="$dir/run" --set metrics.address= --set kubeletRootDirectory="$dir/kubelet" \
	--set devicePlugin.enabled=false >"$dir/log" 2>&1 &
daemon=$!
await() { # WORD: a line of the log
	for _ in $(seq 600); do
		grep -q "$1" "$dir/log" && return
		sleep 0.05
	done
	return 1
}
status() {
	"$bin/numafit" status --socket "$dir/run/numafitd.sock" 2>&1
}
see "a line says that pods are known by their sandboxes" await "event=pod-facts source=sandbox"
see "it is no warning" test "$(grep -c "level=warn.*pods-api" "$dir/log")" = 0
status >"$dir/status"
see "so does the status" grep -q "Pods API absent" "$dir/status"
see "and where they are known from" grep -q "pods are known from their sandboxes' totals alone" "$dir/status"
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 \
	--kubelet "$dir/kubelet" --trace test/traces/devices.yaml --json >"$dir/out" 2>&1
see "a kubelet with a Pods API is found" await "event=pod-facts source=kubelet"
stop_daemon
see "its absence was said once" test "$(grep -c "source=sandbox" "$dir/log")" -le 2
finish
