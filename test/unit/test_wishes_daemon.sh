#!/bin/sh
# What a real numafitd makes of what pods' authors wish for: cpusets that the runtime is answered and
# is updated to, what the log, explain, replay, status and a restart know of it, and refusals.
# usage: BUILD=build/debug test/unit/test_wishes_daemon.sh
set -u
test=wishes-daemon short=yes
. test/unit/script_rig.sh

start() { # SETTING...: the daemon, in the background
	set -- machine=kep3545-8 topologyManagerPolicy=restricted reservedSystemCPUs=0,64 sharedPoolStep=0 \
		"nri.socketPath=$dir/nri.sock" "runDirectory=$dir/run" metrics.address= "$@"
	for setting; do set -- "$@" --set "$setting"; shift; done
	"$bin/numafitd" "$@" >"$dir/log" 2>&1 &
	daemon=$!
}
play() { # SETTING...: the trace, through a daemon with these settings, which then ends
	start "$@"
	"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 --json \
		--trace "$dir/trace.yaml" >"$dir/out" 2>&1
	report $? "the trace is played to its end with $*"
	"$bin/numafit" status -o wide --socket "$dir/run/numafitd.sock" >"$dir/status" 2>&1
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null
	daemon=
}
created() { grep '"event":"create"' "$dir/out" | grep "\"pod\":\"$1\"" | grep -F -e "$2"; } # POD TEXT
logged() { grep -F -e "$1" "$dir/log" | grep -F -e "$2"; }
explain() { "$bin/numafit" explain --run-directory "$dir/run" "$@" >"$dir/said" 2>&1; }

cat >"$dir/trace.yaml" <<'END'
steps:
- create: {pod: plain, qos: guaranteed, cpu: 2, memory: 1Gi}
- create: {pod: shared, qos: guaranteed, cpu: 2, memory: 1Gi, annotations: ['numafit.io/cpus=shared']}
- create: {pod: both, qos: guaranteed, cpu: 3500m, memory: 1Gi, annotations: ['numafit.io/cpus=own+shared']}
- create: {pod: thread, qos: guaranteed, cpu: 4, memory: 1Gi, annotations: ['cores.numafit.io/main=one-thread']}
- create: {pod: there, qos: guaranteed, cpu: 2, memory: 1Gi, annotations: ['numafit.io/numa-nodes=5']}
- create: {pod: node, qos: burstable, cpu: 500m, annotations: ['numafit.io/spread=one-node']}
- create: {pod: wrong, qos: guaranteed, cpu: 2, memory: 1Gi, annotations: ['numafit.io/cores=half']}
- create: {pod: typo, qos: guaranteed, cpu: 2, memory: 1Gi, annotations: ['numafit.io/core=whole']}
- create: {pod: unsaid, qos: guaranteed, cpu: 2, memory: 1Gi, annotations: ['irq-load-balancing.crio.io=housekeeping']}
- create: {pod: policy, qos: guaranteed, cpu: 2, memory: 1Gi, annotations: ['numafit.io/memory-policy=bind', 'numafit.io/rdt-class=gold']}
END
play podWishes.allowed=cpus,cores,numa-nodes,spread,memory-policy,rdt-class
see "a plain pod has CPUs of its own" created plain '"cpus":"1,65"'
see "one that wishes for shared ones has the pool" logged 'pod=shared' 'exclusive=no'
see "and its wish is in the log" logged 'pod=shared' 'wishes="cpus=shared"'
see "own and shared CPUs: three are its own" logged 'pod=both' 'exclusive=yes cpus=2-3,66'
see "and its cpuset has the pool's, too" created both '"cpus":"0,2-64,66-127"'
see "one thread of each core is in the cpuset" created thread '"cpus":"4-5"'
see "and it holds all of them" logged 'pod=thread' 'cpus=4-5,68-69'
see "numa-nodes is judged as a hint" logged 'pod=there' 'nodes=5 preferred=yes'
see "with a hint's verdict" logged 'pod=there' 'hint=accepted'
see "one NUMA node's part of the pool" created node '"cpus":"8-15,72-79"'
see "what is no value is refused" created wrong 'annotation numafit.io/cores: \"half\" is none of whole, one-thread'
see "a misspelt key is refused, with the right one" created typo 'annotation numafit.io/core is none that numafit knows; did you mean numafit.io/cores?'
see "what is not allowed is said in the log" logged 'event=wish-ignored' 'pod=unsaid container=main annotation=irq-load-balancing.crio.io'
see "what the runtime only passes on is in the log" logged 'pod=policy' 'wishes="memory-policy=bind rdt-class=gold"'
explain --all policy
see "and in explain" grep -qx '  wished    memory-policy=bind rdt-class=gold' "$dir/said"
explain both
see "explain has the wish" grep -qx '  wished    cpus=own+shared' "$dir/said"
see "and what it gave" grep -q 'for it alone, beside the shared pool' "$dir/said"
explain wrong
see "explain says what is wrong with a wish" grep -q 'class     wish: a wish' "$dir/said"
"$bin/numafit" replay "$dir/run/journal" >"$dir/said"
see "replay decides the same" grep -qE '^[0-9]+ records, 10 decided again, 0 differ$' "$dir/said"

# The daemon comes back: what runs keeps all of it.
printf 'steps:\n- create: {pod: later, qos: guaranteed, cpu: 2, memory: 1Gi}\n' >"$dir/trace.yaml"
start podWishes.allowed=none
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 --trace "$dir/trace.yaml" >"$dir/out" 2>&1
stop_daemon
explain --all both
see "a daemon that comes back knows the wish, though it is not allowed any more" \
	grep -qx '  wished    cpus=own+shared' "$dir/said"
rm -r "$dir/run"

# What is not allowed counts as not there.
cat >"$dir/trace.yaml" <<'END'
steps:
- create: {pod: thread, qos: guaranteed, cpu: 4, memory: 1Gi, annotations: ['numafit.io/cores=one-thread']}
- create: {pod: odd, qos: guaranteed, cpu: 2, memory: 1Gi, annotations: ['numafit.io/spread=everywhere']}
END
play podWishes.unknown=ignore
see "a wish that is not allowed is passed over" created thread '"cpus":"1-2,65-66"'
see "and named in the log" logged event=wish-ignored 'annotation=numafit.io/cores'
see "with unknown: ignore so is a value that is none" created odd '"cpus":"3,67"'
see "which is in the log" logged event=wish-ignored 'error='
rm -r "$dir/run"

# What the operator says of all that do not say otherwise.
cat >"$dir/trace.yaml" <<'END'
steps:
- create: {pod: web, qos: burstable, cpu: 500m}
- create: {pod: wide, qos: burstable, cpu: 500m, annotations: ['numafit.io/spread=any']}
- create: {pod: best, qos: besteffort}
- create: {pod: big, qos: guaranteed, cpu: 20, memory: 80Gi}
- create: {pod: small, qos: guaranteed, cpu: 2, memory: 1Gi}
END
play burstable=one-node memoryPolicyAcrossNodes=interleave topologyManagerPolicy=best-effort
see "a Burstable pod's container has one NUMA node's part of the pool" created web '"cpus":"0-7,64-71"'
see "which the log has" logged 'pod=web' 'wishes="spread=one-node"'
see "unless it wishes for all of it" created wide '"cpus":"0-127"'
see "others have all of it" created best '"cpus":"0-127"'
see "memory of several NUMA nodes would be interleaved, if this runtime could" logged 'pod=big' 'memory_policy=not-applied'
see "that of one is not" logged 'pod=small' 'memory_policy=none'
"$bin/numafit" replay "$dir/run/journal" >"$dir/said"
see "replay decides the same with these settings" grep -qE '^[0-9]+ records, 5 decided again, 0 differ$' "$dir/said"
rm -r "$dir/run"

# Isolated CPUs.
sed "1,/^machine/s/^\(machine .*\)/\1\nisolated 8-15,72-79/" test/machines/kep3545-8.machine >"$dir/isolated.machine"
cat >"$dir/trace.yaml" <<'END'
steps:
- create: {pod: log, qos: burstable, cpu: 100m}
- create: {pod: quiet, qos: guaranteed, cpu: 4, memory: 1Gi, annotations: ['numafit.io/isolated=require']}
- create: {pod: more, qos: guaranteed, cpu: 14, memory: 1Gi, annotations: ['numafit.io/isolated=require']}
END
play podWishes.allowed=isolated "machine=$dir/isolated.machine"
see "the log has the isolated CPUs" logged event=started 'isolated=8-15,72-79'
see "which are not in the shared pool" logged 'pod=log' 'cpus=0-7,16-71,80-127'
see "a container that requires them has some of them" logged 'pod=quiet' 'exclusive=yes cpus=8-9,72-73'
see "and is refused where they are too few" logged 'pod=more' 'asks for 14 CPUs, of 16 isolated CPUs 12 are left'
see "status has them" grep -q 'isolated: 8-15,72-79' "$dir/status"
"$bin/numafit" replay "$dir/run/journal" >"$dir/said"
see "replay knows them" grep -qE '^[0-9]+ records, 3 decided again, 0 differ$' "$dir/said"
rm -r "$dir/run"

# What the operator says of namespaces.
cat >"$dir/trace.yaml" <<'END'
steps:
- create: {pod: system, namespace: kube-system, qos: guaranteed, cpu: 2, memory: 1Gi}
- create: {pod: default, namespace: batch-1, qos: guaranteed, cpu: 2, memory: 1Gi}
- create: {pod: says, namespace: batch-1, qos: guaranteed, cpu: 2, memory: 1Gi, annotations: ['numafit.io/cpus=own']}
- create: {pod: vm, namespace: kubevirt, qos: burstable, cpu: 2, annotations: ['numafit.io/cpus=untouched']}
- create: {pod: other, qos: burstable, cpu: 2, annotations: ['numafit.io/cpus=untouched']}
END
play "namespaces=names=kube-* reserved=true; names=batch-* cpus=shared; names=kubevirt allowed=cpus=untouched"
see "a reserved namespace's pods run on the reserved CPUs" created system '"cpus":"0,64"'
see "which the log has" logged 'pod=system' 'exclusive=no cpus=0,64'
see "a namespace's default" logged 'pod=default' 'wishes="cpus=shared"'
see "which a pod may say otherwise" logged 'pod=says' 'exclusive=yes'
see "untouched where its namespace may be" logged 'pod=vm' 'wishes="cpus=untouched"'
see "and it has the pool where no cgroup bounds it" created vm '"cpus":"0,2-64,66-127"'
see "elsewhere untouched is not looked at" logged event=wish-ignored 'pod=other'
see "status -o wide has the wishes" grep -qE 'kube-system/system/main .* cpus=reserved ' "$dir/status"
explain system
see "explain has the reserved CPUs" grep -qx '  CPUs      none of its own: it runs on the CPUs that are reserved for the system, 0,64' "$dir/said"
"$bin/numafit" replay "$dir/run/journal" >"$dir/said"
see "replay decides the same with namespaces" grep -qE '^[0-9]+ records, 5 decided again, 0 differ$' "$dir/said"
rm -r "$dir/run"
printf 'steps:\n- create: {pod: free, namespace: agents, qos: guaranteed, cpu: 2, memory: 1Gi, annotations: ["numafit.io/cpus=own"]}\n' \
	>"$dir/trace.yaml"
play "namespaces=names=agents cpus=untouched force=true"
see "what is forced counts whatever a pod says" logged 'pod=free' 'wishes="cpus=untouched-unbounded"'
see "and it has all CPUs, as no cpuset is set" created free '"cpus":"0-127"'
explain free
see "explain has what is left to itself" grep -qx '  CPUs      any: it gets no cpuset from numafitd' "$dir/said"
"$bin/numafit" replay "$dir/run/journal" >"$dir/said"
see "replay decides that, too" grep -qE '^[0-9]+ records, 1 decided again, 0 differ$' "$dir/said"
rm -r "$dir/run"
# What a container has, in a file of its own.
cat >"$dir/trace.yaml" <<'END'
steps:
- create: {pod: log, qos: burstable, cpu: 100m}
- create: {pod: own, qos: guaranteed, cpu: 2, memory: 1Gi}
END
mkdir -p "$dir/run/self/of-a-life-before"
: >"$dir/run/self/of-a-life-before/self"
start containerEnvironment=true
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 --trace "$dir/trace.yaml" >"$dir/out" 2>&1
report $? "a trace is played while files are written"
tries=0 # it follows a little later
until [ ! -e "$dir/run/self/of-a-life-before" ] || [ $tries -eq 100 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
stop_daemon
see "a container's file has what it has" grep -rqx 'NUMAFIT_CPUS=1,65' "$dir/run/self"
see "that of one that shares follows the pool" grep -rqx 'NUMAFIT_CPUS=0,2-64,66-127' "$dir/run/self"
see "the folder of one that is gone is gone" [ ! -e "$dir/run/self/of-a-life-before" ]
rm -r "$dir/run"
mkdir "$dir/run"
: >"$dir/run/self" # no folder can be made there
play containerEnvironment=true
see "a container whose file cannot be written is placed without" logged 'pod=own' 'verdict=admitted'
see "which the log says once" [ "$(grep -c event=self-file-failed "$dir/log")" -eq 1 ]
rm -r "$dir/run"
finish
