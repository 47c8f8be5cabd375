#!/bin/sh
# Schedulers' hints on their way through a real NRI connection: every verdict, when they are to be
# preferred and when they are required, and the node's own settings. The trace's comments say why.
# usage: BUILD=build/debug test/unit/test_sim_advice.sh
set -u
test=sim-advice short=yes
. test/unit/script_rig.sh

# play TRACE NUMAFIT-SIM'S-OPTION SETTING...
play() {
	trace=$1 option=$2
	shift 2
	rm -rf "$dir/run"
	"$bin/numafitd" --set machine=kep3545-8 --set topologyManagerPolicy=restricted \
		--set topologyManagerPolicyOptions.prefer-closest-numa-nodes=true \
		--set reservedSystemCPUs=0,64 --set nri.socketPath="$dir/nri.sock" \
		--set runDirectory="$dir/run" --set metrics.address= --set nodeName=n1 "$@" >"$dir/log" 2>&1 &
	daemon=$!
	"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 \
		--node-name n1 --trace "$trace" "$option" >"$dir/out" 2>&1
	report $? "$trace is played to its end with $*, and no CPU is given twice"
	"$bin/numafit" status --socket "$dir/run/numafitd.sock" >"$dir/status" 2>&1
	stop_daemon
}

# The table of verdicts, its words one blank apart.
verdicts() {
	sed -n '/^POD\/CONTAINER.*VERDICT/,/^$/p' "$dir/out" | tr -s ' ' | sed '1d;$d'
}

cat >"$dir/wanted" <<'END'
good/main prefer 5 5 accepted
good-must/main require 3 3 accepted
stale/main prefer 5 5 accepted-stale
full/main prefer 3 0 repaired
full-must/main require 3 refused rejected:not-fit
wide/main prefer 1-2 0 repaired
wide-must/main require 1-2 refused rejected:not-narrowest
far-must/main require 1,4 refused rejected:farther
torn-must/main require 1-2 refused rejected:policy
narrow/main prefer 2 6-7 rejected:not-fit
cut-off/main - - 0 rejected:format
too-new/main - - 0 rejected:version
copied/main prefer 7 0 rejected:uid
astray/main prefer 7 0 rejected:node
early/main prefer 7 0 rejected:clock
late/main prefer 7 0 rejected:expired
nowhere/main prefer 8 0 rejected:numa
thief/main prefer 3 0 rejected:foreign-cpuset
copied-must/main require 7 refused rejected:uid
astray-must/main require 7 refused rejected:node
early-must/main require 7 refused rejected:clock
late-must/main require 7 refused rejected:expired
nowhere-must/main require 8 refused rejected:numa
job-c/main prefer 5 5 accepted-stale
job-b/main prefer 4 4 accepted-stale
job-f/main prefer 1 2 repaired
job-d/main require 2 refused rejected:not-fit
job-e/main prefer 1 1 accepted-stale
job-a/main require 4 4 accepted-stale
END

play test/traces/hints.yaml --state-change --set schedulerHint.mode=prefer
verdicts >"$dir/got"
see "every hint has its verdict" diff "$dir/wanted" "$dir/got"
see "they are counted" grep -qx "schedulers' hints: 7 accepted, 3 repaired, 19 rejected" \
	"$dir/status"
see "the log has them" grep -q 'pod=full .*verdict=admitted.* hint=repaired ' "$dir/log"

play test/traces/hints.yaml --state-change --set schedulerHint.repair=false
see "where nothing is to be repaired it is a rejection" \
	sh -c 'grep -q "full/main  *prefer  *3  *0  *rejected:not-fit$" "$1" &&
	grep -q "wide/main  *prefer  *1-2  *0  *rejected:not-narrowest$" "$1" && ! grep repaired$ "$1"' \
	sh "$dir/out"

play test/traces/hints.yaml --state-change --set schedulerHint.mode=require
see "the node insists, and so does every hint" sh -c '! grep -q " repaired$" "$1" &&
	grep -q "full/main  *prefer  *3  *refused  *rejected:not-fit$" "$1" &&
	grep -q "cut-off/main  *-  *-  *refused  *rejected:format$" "$1" &&
	grep -q "thief/main  *prefer  *3  *refused  *rejected:foreign-cpuset$" "$1"' sh "$dir/out"

play test/traces/hints.yaml --json --set schedulerHint.mode=off
see "hints that are switched off have no verdict" sh -c '! grep hintVerdict "$1"' sh "$dir/out"
see "and refuse nothing" sh -c 'grep "\"pod\":\"copied-must\"" "$1" | grep -q admitted.:true' \
	sh "$dir/out"

cat >"$dir/pods.yaml" <<'END'
kubelet: {topologyManagerPolicy: none}
steps:
- create: {pod: db, container: init, kind: init, qos: guaranteed, cpu: 2, memory: 1Gi, hint: {numa: 4}}
- create: {pod: db, qos: guaranteed, cpu: 4, memory: 8Gi}
- create: {pod: db, container: log, qos: guaranteed, cpu: 2, memory: 1Gi}
- create: {pod: web, qos: guaranteed, cpu: 2, memory: 1Gi, hint: {numa: 6, mode: require}, count: 2}
- create: {pod: strict, qos: guaranteed, cpu: 20, memory: 80Gi,
    annotations: [numafit.io/topology-policy=single-numa-node]}
- restart-runtime
- stop: {pod: db, container: log}
- create: {pod: db, container: log, qos: guaranteed, cpu: 2, memory: 1Gi}
END
play "$dir/pods.yaml" "--kubelet=$dir/kubelet" --set kubeletRootDirectory="$dir/kubelet" \
	--set podsAPI.enabled=true --set schedulerHint.podPolicy=true
cat >"$dir/wanted" <<'END'
db/init prefer 4 4 accepted
db/main prefer 4 4 accepted
db/log prefer 4 4 accepted
web-0/main require 6 6 accepted
web-1/main require 6 6 accepted
END
verdicts | head -n 5 >"$dir/got"
see "a pod's hint is for all its containers, and each replica has its own" \
	diff "$dir/wanted" "$dir/got"
see "a pod has a stricter policy than its node" \
	sh -c "grep -A5 'strict/main .*refused: numafit' '$dir/out' | grep -q single-numa-node"

printf 'steps:\n- create: {pod: a, qos: besteffort}\n- create: {pod: a, container: b, qos: besteffort, hint: {numa: 1}}\n' \
	>"$dir/late.yaml"
"$bin/numafitd" --set machine=kep3545-8 --set nri.socketPath="$dir/nri.sock" \
	--set runDirectory="$dir/run2" --set metrics.address= >"$dir/log" 2>&1 &
daemon=$!
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --trace "$dir/late.yaml" \
	>"$dir/out" 2>&1
see "a pod that is there gets no other hint" grep -q "line 3.*come with its first container" \
	"$dir/out"
finish
