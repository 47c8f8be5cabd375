#!/bin/sh
# numafit bundle --redact on a node whose every name, address, path, annotation and label has the letters zq: no part of the
# archive has them, nor any uid or id. The node has seen refusals, hints of each form, annotations that nothing follows,
# devices, tokens, a resize, an API server that cannot be reached, and settings that cannot be read.
# usage: BUILD=build/debug test/unit/test_bundle_redact.sh
set -u
test=bundle-redact short=yes
. test/unit/script_rig.sh
numafit=$bin/numafit
folder=numafit-bundle

mkdir "$dir/zqdir"
cat >"$dir/zqdir/kubeconfig" <<'X1'
apiVersion: v1
kind: Config
current-context: zqcontext
clusters: [{name: zqcluster, cluster: {server: 'http://zqserver.invalid:6443'}}]
users: [{name: zquser, user: {token: zqtoken}}]
contexts: [{name: zqcontext, context: {cluster: zqcluster, user: zquser}}]
X1
cat >"$dir/zqdir/numafitd.yaml" <<'X2'
machine: kep3545-8
nodeName: zqnode
topologyManagerPolicy: restricted
reservedSystemCPUs: 0,64
metrics: {address: ''}
events: {enabled: true}
podsWatch: {enabled: true}
apiServer: {context: zqcontext}
devicePlugin: {enabled: true, preStartContainer: false}
podWishes: {allowed: 'cpus,cores,numa-nodes,spread,rdt-class,blockio-class,quiet'}
schedulerHint: {podPolicy: true}
frequencyProfiles:
- {name: zqprofile, governor: performance}
namespaces:
- {names: [zqns, zqtenant-*], wishes: {cpus: shared}}
X2
cat >"$dir/trace.yaml" <<'X3'
kubelet: {devices: [{resource: zq.example/gpu, node: 3, count: 4}]}
steps:
- create: {namespace: zq, pod: zq, container: zq, qos: burstable, cpu: 500m, memory: 1Gi}
- create: {namespace: zqa, pod: zqlarge, container: zqc, qos: guaranteed, cpu: 300, memory: 1Gi}
- create: {namespace: zqa, pod: zqdb, container: zqpostgres, qos: guaranteed, cpu: 8, memory: 1Gi, devices: [zq.example/gpu=1]}
- create: {namespace: zqa, pod: zqtok, container: zqc, qos: guaranteed, cpu: 2, memory: 1Gi, devices: [numafit.io/cpu=2]}
- create: {namespace: zqa, pod: zqtok2, container: zqc, qos: guaranteed, cpu: 2, memory: 1Gi, devices: [numafit.io/cpu=1]}
- create: {namespace: zqb, pod: zqhint, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, hint: {numa: 5}}
- create: {namespace: zqb, pod: zqh1, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['numafit.io/numa-hint={"v":1,"node":"zqother","uid":"zquid","at":1,"ttl":1,"containers":{"zqc":{"numa":"1"}}}']}
- create: {namespace: zqb, pod: zqh2, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['scheduling.koordinator.sh/resource-status={"cpuset":"zqcpus"}']}
- create: {namespace: zqb, pod: zqh3, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['katalyst.kubewharf.io/numa_bind_result=zqbind']}
- create: {namespace: zqb, pod: zqh4, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['volcano.sh/topology-decision={"numa":{"zqnuma":{"cpu":"4"}}}']}
- create: {namespace: zqb, pod: zqh5, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['topology.crane.io/topology-result=[{"name":"zqzone","type":"Node"}]']}
- create: {namespace: zqb, pod: zqh6, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['godel.bytedance.com/micro-topology=zqgroup:cpu=1']}
- create: {namespace: zqb, pod: zqpolicy, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['numafit.io/topology-policy=zqpol']}
- create: {namespace: zqc, pod: zqw1, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['numafit.io/cores=zqvalue']}
- create: {namespace: zqc, pod: zqw2, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['numafit.io/zqkey=zqvalue']}
- create: {namespace: zqc, pod: zqw3, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['numafit.io/rdt-class=zqclass', 'numafit.io/blockio-class=zqslow']}
- create: {namespace: zqc, pod: zqw4, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['numafit.io/quiet=frequency=zqprofile']}
- create: {namespace: zqc, pod: zqw5, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['numafit.io/quiet=frequency=zqnone']}
- create: {namespace: zqc, pod: zqw6, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['numafit.io/isolated=require']}
- create: {namespace: zqc, pod: zqw7, container: zqc, qos: guaranteed, cpu: 1, memory: 1Gi, annotations: ['irq-load-balancing.crio.io/zqc=zqirq']}
- create: {namespace: zqns, pod: zqshared, container: zqc, qos: guaranteed, cpu: 2, memory: 1Gi}
- create: {namespace: zqtenant-1, pod: zqpattern, container: zqc, qos: guaranteed, cpu: 2, memory: 1Gi}
- stop: {pod: zqdb}
X3

start() {
	: >"$dir/daemon"
	"$bin/numafitd" --config "$dir/zqdir/numafitd.yaml" --set nri.socketPath="$dir/nri.sock" --set runDirectory="$dir/run" \
		--set kubeletRootDirectory="$dir/kubelet" --set apiServer.kubeconfig="$dir/zqdir/kubeconfig" \
		--set claims.cdiDirectory="$dir/zqcdi" >"$dir/daemon" 2>&1 &
	daemon=$!
	tail -n +1 -f --pid="$daemon" "$dir/daemon" | grep -q -m1 'event=started'
}
words() { # FILE...: what identifies something in them
	grep -ohE '"(pod_uid|container_id|sandbox_id|uid|boot_id)":"[^"]*"' "$@" | sed 's/.*:"//; s/"$//' | grep -E '.{6}' | sort -u
}

start
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 --kubelet "$dir/kubelet" --node-name zqsched \
	--trace "$dir/trace.yaml" --wait 10 >"$dir/sim" 2>&1
report $? "the trace is played"
for event in apiserver-unreachable hint-rejected wish-ignored; do
	timeout 60 tail -n +1 -f --pid="$daemon" "$dir/daemon" | grep -q -m1 "event=$event"
	report $? "the log has $event"
done
stop_daemon
start # two journals
printf 'zqsetting: zqvalue\n' >>"$dir/zqdir/numafitd.yaml"
timeout 60 tail -n +1 -f --pid="$daemon" "$dir/daemon" | grep -q -m1 'event=config-refused'
report $? "the settings cannot be read any more"

run "a bundle with names" 0 "$numafit" bundle --run-directory "$dir/run" -o "$dir/all.tar"
tar -C "$dir" -xf "$dir/all.tar" && mv "$dir/$folder" "$dir/all"
see "it has the words" [ "$(grep -rl zq "$dir/all" | wc -l)" -ge 5 ]
run "a bundle without names" 0 "$numafit" bundle --redact --run-directory "$dir/run" -o "$dir/none.tar"
see "no part is left out" eval "! grep -q 'left out' '$dir/err'"
tar -C "$dir" -xf "$dir/none.tar"
grep -rohiE '.{0,40}zq.{0,40}' "$dir/$folder" >"$dir/out"
report "$([ -s "$dir/out" ] && echo 1 || echo 0)" "no part has any of the words"
[ -s "$dir/out" ] && sed 's/^/# /' "$dir/out" | head -20
words "$dir/all/journal" "$dir/all/journal.1" >"$dir/ids"
see "there are ids" [ "$(wc -l <"$dir/ids")" -ge 20 ]
{
	cat "$dir/ids"
	cut -c 1-12 "$dir/ids"
	tr - _ <"$dir/ids"
} | sort -u >"$dir/patterns"
grep -rohF -f "$dir/patterns" "$dir/$folder" | sort -u >"$dir/out"
report "$([ -s "$dir/out" ] && echo 1 || echo 0)" "nor any id, or how one begins"
[ -s "$dir/out" ] && sed 's/^/# /' "$dir/out" | head -20
for part in journal journal.1; do
	"$numafit" replay "$dir/all/$part" >"$dir/was" 2>&1
	run "$part is decided the same" 0 "$numafit" replay "$dir/$folder/$part"
	see "all of it" cmp "$dir/out" "$dir/was"
done
large=$(grep '"op":"refuse"' "$dir/$folder/journal.1" | grep -m1 '"cpu_milli":300000' | grep -o '"pod_name":"[^"]*"' | head -1 | cut -d '"' -f 4)
run "explain finds out why" 0 "$numafit" explain --run-directory "$dir/$folder" --all "$large"
see "and says it" grep -qi 'this node has 12[0-9] CPUs' "$dir/out"
finish
