#!/bin/sh
# What a real numafitd makes of hints besides their verdicts (test_sim_advice.sh): whose annotation
# counts, what the node is called, what the log, explain, replay and a restart know of it, and that
# settings which cannot be meant are reported before anything runs.
# usage: BUILD=build/debug test/unit/test_advice_daemon.sh
set -u
test=advice-daemon short=yes
. test/unit/script_rig.sh
sim=

settings() { # SETTING...: the daemon's options, into the file options
	for setting in machine=kep3545-8 topologyManagerPolicy=restricted reservedSystemCPUs=0,64 \
		"nri.socketPath=$dir/nri.sock" "runDirectory=$dir/run" metrics.address= "$@"; do
		printf '%s\n' --set "$setting"
	done >"$dir/options"
}
numafitd() { # OPTION...: with these settings
	IFS='
'
	# shellcheck disable=SC2046
	set -- $(cat "$dir/options") "$@"
	unset IFS
	exec "$bin/numafitd" "$@"
}

# play NODE-NAME SETTING...: the trace through a daemon that has these settings
play() {
	name=$1
	shift
	settings "$@"
	numafitd >"$dir/log" 2>&1 &
	daemon=$!
	"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 \
		--node-name "$name" ${sim:+"$sim"} --json --trace "$dir/trace.yaml" >"$dir/out" 2>&1
	report $? "the trace is played to its end as $name with $*"
	"$bin/numafit" status --socket "$dir/run/numafitd.sock" >"$dir/status" 2>&1
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null
	daemon=
}

# became POD NODES VERDICT
became() {
	grep '"event":"create"' "$dir/out" | grep "\"pod\":\"$1\"" | grep "\"nodes\":\"$2\"" |
		grep "\"hintVerdict\":\"$3\""
}
logged() { grep -F -e "$1" "$dir/log" | grep -F -e "$2"; }

# Settings

check() { # SETTING WORDS
	settings "$1"
	(numafitd --check-config) >"$dir/out" 2>&1
	[ $? -eq 2 ] && grep -F -e "$2" "$dir/out"
}
starts() { # SETTING WORDS
	settings "$1"
	(numafitd) >"$dir/out" 2>&1
	[ $? -eq 2 ] && grep -F -e "$2" "$dir/out"
}
: >"$dir/log"
wrong='schedulerHint.order: "koordinater" is none of numafit, koordinator, katalyst, volcano, crane, godel'
see "a format that there is not is found by --check-config" \
	check schedulerHint.order=numafit,koordinater "$wrong"
see "and by the daemon" starts schedulerHint.order=numafit,koordinater "$wrong"
see "so is one that comes twice" check schedulerHint.order=godel,godel \
	'schedulerHint.order: "godel" is there twice'
see "none at all is what mode off is for" check schedulerHint.order= schedulerHint.order
see "a mode that there is not" check schedulerHint.mode=insist schedulerHint.mode
settings schedulerHint.order=godel
(numafitd --check-config) >"$dir/out" 2>&1
report $? "one format alone will do"

# Whose hint counts

cat >"$dir/trace.yaml" <<'END'
steps:
- create: {pod: ours, qos: guaranteed, cpu: 1, memory: 1Gi, hint: {numa: 5},
    annotations: [katalyst.kubewharf.io/numa_bind_result=3]}
- create: {pod: theirs, qos: guaranteed, cpu: 1, memory: 1Gi,
    annotations: ['godel.bytedance.com/micro-topology=6:cpu=1', katalyst.kubewharf.io/numa_bind_result=3]}
- create: {pod: garbled, qos: guaranteed, cpu: 1, memory: 1Gi,
    annotations: ['volcano.sh/topology-decision={"numa":7}']}
END
NODE_NAME=elsewhere play n1 nodeName=n1
see "our own comes first" became ours 5 accepted
see "then others' in their order" became theirs 3 accepted
see "what is wrong with one is logged" logged event=hint-rejected \
	'annotation=volcano.sh/topology-decision verdict=rejected:format error="numa: should be an object'
see "with its pod" logged event=hint-rejected pod=garbled
see "the decision's line has the verdict" logged "event=decision cause=create namespace=default pod=ours" \
	"hint=accepted"
see "they are counted" grep -qx "schedulers' hints: 2 accepted, 0 repaired, 1 rejected" "$dir/status"
"$bin/numafit" explain --run-directory "$dir/run" garbled >"$dir/out"
see "explain has it" grep -qx '  hint      rejected:format, mode prefer: given 0: it cannot be read' \
	"$dir/out"
"$bin/numafit" replay "$dir/run/journal" >"$dir/out"
see "replay decides the same" grep -qE '^[0-9]+ records, 3 decided again, 0 differ$' "$dir/out"

settings nodeName=n1
numafitd >"$dir/log" 2>&1 &
daemon=$!
printf 'steps:\n- create: {pod: later, qos: besteffort}\n' >"$dir/trace.yaml"
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 \
	--trace "$dir/trace.yaml" >"$dir/out" 2>&1
stop_daemon
"$bin/numafit" explain --run-directory "$dir/run" --all ours >"$dir/out"
see "a daemon that comes back knows the verdict" \
	grep -qx '  hint      accepted, mode prefer: asked for NUMA nodes 5, given 5' "$dir/out"
rm -r "$dir/run"

cat >"$dir/trace.yaml" <<'END'
steps:
- create: {pod: theirs, qos: guaranteed, cpu: 1, memory: 1Gi, hint: {numa: 5},
    annotations: ['godel.bytedance.com/micro-topology=6:cpu=1', katalyst.kubewharf.io/numa_bind_result=3]}
END
play n1 nodeName=n1 schedulerHint.order=godel,numafit
see "the order is a setting" became theirs 6 accepted
rm -r "$dir/run"

# A hint that names CPUs

cat >"$dir/trace.yaml" <<'END'
steps:
- create: {pod: exact, qos: guaranteed, cpu: 8, memory: 1Gi,
    annotations: ['scheduling.koordinator.sh/resource-status={"cpuset":"44-47,108-111"}']}
- create: {pod: theirs, qos: guaranteed, cpu: 8, memory: 1Gi,
    annotations: ['scheduling.koordinator.sh/resource-status={"cpuset":"44-47,108-111"}']}
- create: {pod: more, qos: guaranteed, cpu: 4, memory: 1Gi,
    annotations: ['scheduling.koordinator.sh/resource-status={"cpuset":"26-29,90-93"}']}
- create: {pod: scattered, qos: guaranteed, cpu: 8, memory: 1Gi,
    annotations: ['scheduling.koordinator.sh/resource-status={"cpuset":"48-55"}']}
- create: {pod: few, qos: guaranteed, cpu: 4, memory: 1Gi,
    annotations: ['scheduling.koordinator.sh/resource-status={"cpuset":"58,122"}']}
- create: {pod: reserved, qos: guaranteed, cpu: 2, memory: 1Gi,
    annotations: ['scheduling.koordinator.sh/resource-status={"cpuset":"0,64"}']}
END
play n1 nodeName=n1
given() { grep '"event":"create"' "$dir/out" | grep "\"pod\":\"$1\"" | grep -F "\"cpus\":\"$2\"" | grep "\"hintVerdict\":\"$3\""; }
see "the CPUs that a hint names are given" given exact 44-47,108-111 accepted
see "another container's are not" became theirs 0 rejected:foreign-cpuset
see "of more CPUs than are asked for some are given, no more" given more 26-27,90-91 accepted
see "threads of more cores than need be are not given" given scattered 48-51,112-115 repaired:cpus
see "nor more than the hint names by the hint" given few 56-57,120-121 repaired:cpus
see "nor are reserved ones" became reserved 0 rejected:foreign-cpuset
see "the log says which CPUs" logged "event=decision cause=create namespace=default pod=scattered" \
	"cpus=48-51,112-115"
see "with the verdict" logged "event=decision cause=create namespace=default pod=scattered" \
	"hint=repaired:cpus"
"$bin/numafit" explain --run-directory "$dir/run" --all scattered >"$dir/out"
see "explain says which CPUs" grep -q 'hint      repaired:cpus, mode prefer: asked for NUMA nodes 6, given 6: other CPUs of them than it' \
	"$dir/out"
"$bin/numafit" replay "$dir/run/journal" >"$dir/out"
see "replay gives the same CPUs" grep -qE '^[0-9]+ records, 6 decided again, 0 differ$' "$dir/out"
rm -r "$dir/run"

# What the node is called

printf 'steps:\n- create: {pod: a, qos: guaranteed, cpu: 1, memory: 1Gi, hint: {numa: 5}}\n' \
	>"$dir/trace.yaml"
NODE_NAME=n2 play n2
see "the environment says what the node is called" became a 5 accepted
rm -r "$dir/run"
NODE_NAME=n2 play n1
see "a hint for another node is rejected" became a 0 rejected:node
see "and its log line says which" logged rejected:node \
	'it was written for node \"n1\", this is \"n2\"'
rm -r "$dir/run"
NODE_NAME= play "$(hostname)"
see "else it is the host's name" became a 5 accepted
rm -r "$dir/run"

# A pod that is known when its sandbox starts is judged once, then each container comes.

cat >"$dir/trace.yaml" <<'END'
kubelet: {topologyManagerPolicy: none}
steps:
- create: {pod: db, qos: guaranteed, cpu: 1, memory: 1Gi, hint: {numa: 5, wrong: uid}}
- create: {pod: db, container: log, qos: guaranteed, cpu: 1, memory: 1Gi}
- create: {pod: no, qos: guaranteed, cpu: 1, memory: 1Gi, hint: {numa: 5, wrong: uid, mode: require}}
END
sim=--kubelet=$dir/kubelet
for try in 1 2 3 4 5 6 7 8; do # the sandbox may come before the kubelet's news of the pod
	rm -rf "$dir/run"
	play n1 nodeName=n1 kubeletRootDirectory="$dir/kubelet" podsAPI.enabled=true
	grep -q 'cause=create.*pod=db.*source=held' "$dir/log" && break
done
see "its hint is rejected in one line" sh -c '[ "$(grep -c "hint-rejected.*pod=db" "$1")" -eq 1 ]' \
	sh "$dir/log"
see "and counted for each container, and for a pod that is refused" grep -qx \
	"schedulers' hints: 0 accepted, 0 repaired, 3 rejected" "$dir/status"
finish
