#!/bin/sh
# The daemon with every service of the kubelet, and numafit-sim as that kubelet and as the runtime:
# pods with devices, from their admission to their end.
# usage: BUILD=build/debug test/unit/test_sim_daemon.sh
set -u
test=sim-daemon short=yes
. test/unit/script_rig.sh

made() { # POD CONTAINER WORD...
	pod=$1 container=$2
	shift 2
	line out '"event":"create"' "\"pod\":\"$pod\"" "\"container\":\"$container\"" "$@"
}

"$bin/numafitd" --set machine=kep3545-8 --set topologyManagerPolicy=restricted \
	--set topologyManagerPolicyOptions.prefer-closest-numa-nodes=true \
	--set reservedSystemCPUs=0,64 --set nri.socketPath="$dir/nri.sock" \
	--set runDirectory="$dir/run" --set metrics.address= --set kubeletRootDirectory="$dir/kubelet" \
	--set devicePlugin.enabled=true --set devicePlugin.preStartContainer=true \
	--set podResources.enabled=true --set podsAPI.enabled=true >"$dir/log" 2>&1 &
daemon=$!
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 \
	--kubelet "$dir/kubelet" --trace test/traces/devices.yaml --json >"$dir/out" 2>&1
report $? "the trace is played to its end"
stop_daemon

see "CPUs lie where the kubelet gave their devices, beside the GPUs" \
	made trainer train '"exclusive":true' '"cpus":"24-25,88-89"' '"mems":"3"' \
	'"devices":"4 numafit.io/cpu of node 3, 2 nvidia.com/gpu of node 3"'
see "an init container and a sidecar share CPUs" made trainer fetch '"exclusive":false'
see "so does the sidecar" made trainer watch '"exclusive":false'
see "two pods share a node and no CPU" made infer-0 serve '"nodes":"7"' '"cpus":"56-57,120-121"'
see "of which the second has others" made infer-1 serve '"nodes":"7"' '"cpus":"58-59,122-123"'
see "without a GPU the kubelet refuses" made late main '"admitted":false' "by the kubelet"
see "an init container has CPUs of its own" made batch unpack '"cpus":"2,66"'
see "which are its successor's, with more" made batch job '"cpus":"1-2,65-66"'
see "whole CPUs need no device" made db postgres '"exclusive":true' '"nodes":"0"'
see "the kubelet starts again" line out '"event":"restart-kubelet"'
see "the daemon registers anew" [ "$(grep -c event=device-plugin-up "$dir/log")" -eq 2 ]
see "a GPU comes back with its pod" made late main '"admitted":true' '"nodes":"3"'
see "the daemon took part by what it knew of the pods" line log event=pods-api-synced
see "and of their devices" line log pod=trainer container=train nvidia.com/gpu
finish
