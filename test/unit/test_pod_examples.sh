#!/bin/sh
# The examples of deploy/docs/what-can-my-pod-ask-for.md are pods, and are given what the page says.
# usage: BUILD=build/debug test/unit/test_pod_examples.sh
set -u
test=pod-examples
. test/unit/script_rig.sh
page=deploy/docs/what-can-my-pod-ask-for.md

# A machine with isolated CPUs, which is not empty: numafit whatif reads it by its path.
sed "1,/^machine/s/^\(machine .*\)/\1\nisolated 8-15,72-79/" test/machines/kep3545-8.machine >"$dir/m.machine"
awk -v dir="$dir" '
	/^## / { heading = tolower(substr($0, 4)); gsub(/[^a-z]+/, "-", heading); nr = 0 }
	/^```yaml/ { on = 1; file = dir "/" heading ".yaml"; print "apiVersion: v1\nkind: Pod" >file; next }
	/^```/ { if (on) print file; on = 0 }
	on && /^metadata:/ { print >file; print "  name: example" >file; next }
	on { print >file }' "$page" >"$dir/files"

allowed=podWishes.allowed=cpus,cores,isolated,numa-nodes,spread,memory-policy,rdt-class,blockio-class,quiet
example() { # FILE WHAT TEXT...: that is in the answer
	file="$dir/$1.yaml" what=$2
	shift 2
	grep -q '^spec:' "$file" || printf 'spec:\n  containers:\n  - name: main\n    image: i\n    resources: {limits: {cpu: 2, memory: 1Gi}}\n' >>"$file"
	run "$what" 0 "$bin/numafit" whatif --machine "$dir/m.machine" -f "$file" --set "$allowed" \
		--set "namespaces=names=kubevirt allowed=cpus=untouched" --set "frequencyProfiles=name=fast minMHz=2400"
	see "nothing is passed over" [ ! -s "$dir/err" ]
	for text; do see "the answer has: $text" grep -qF -e "$text" "$dir/out"; done
}

see "there is an example for each wish" [ "$(wc -l <"$dir/files")" -eq 11 ]
example no-cpus-of-its-own "cpus: shared" 'cpus=shared' 'in the shared pool'
example cpus-of-its-own-and-the-others-too "cpus: own+shared" 'beside the shared pool'
example no-cpuset-at-all "cpus: untouched" 'cpus=untouched'
example whole-cores "cores: one-thread" 'of each core one in its cpuset'
example cpus-that-the-kernel-leaves-alone "isolated: require" 'isolated=require' '8-9,72-73'
example certain-numa-nodes "numa-nodes" 'NUMA node 0'
example one-numa-node-without-cpus-of-its-own "spread: one-node" 'spread=one-node' 'of these it has those on NUMA node'
example a-memory-policy "memory-policy: interleave" 'memory-policy=interleave'
example quiet-cpus "quiet: irq,frequency=fast" 'quiet=irq,frequency=fast'
example to-stay-where-it-is "movable: false" 'movable=false'
example cache-memory-bandwidth-and-disks "rdt-class, blockio-class" 'rdt-class=gold blockio-class=slow'
finish
