#!/bin/sh
# numafit hint: what encode writes, check accepts, and what is wrong with any other hint is reported.
# usage: BUILD=build/debug test/unit/test_hint_verb.sh
set -u
test=hint-verb
. test/unit/script_rig.sh
numafit=$bin/numafit

see() { # WHAT FILE TEXT
	grep -qF -e "$3" "$dir/$2"
	report $? "$name: $1"
}

verdict() { # WORD
	grep -qxF -e "$1" "$dir/out"
	report $? "$name: $1"
}

encode() { "$numafit" hint encode --machine kep3545-8 --node n0 --uid u1 --at 1000000 "$@"; }
check() { "$numafit" hint check --machine kep3545-8 --now 1000500 "$@"; }
# hint KEY VALUE OPTIONS...: what check says of it
hint() {
	key=$1
	printf '%s' "$2" >"$dir/value"
	shift 2
	check --key "$key" "$@" "$dir/value"
}
ours=numafit.io/numa-hint

run "a hint for NUMA nodes is written" 0 encode --numa 0-1
see "with their distance" out '{"v":1,"node":"n0","uid":"u1","at":1000000,"ttl":120,"mode":"prefer","scope":"container","containers":{"*":{"numa":"0-1","dist":1050}}}'
run "each container has its own" 0 encode --gen 7 --mode require --scope pod --numa web=2 \
	--amounts 'web=2:cpu=1500m,memory=8Gi' --placed \
	'log={"v":1,"policy":"restricted","exclusive":true,"cpus":"8-15","mems":"1","nodes":"1","preferred":true}'
see "with what it takes" out '"web":{"numa":"2","dist":1000,"res":[{"node":2,"resources":{"cpu":"1500m","memory":"8Gi"}}]}'
see "or where it was placed" out '"log":{"numa":"1","dist":1000}'
cp "$dir/out" "$dir/hint"
run "it is accepted by the node and pod that it is for" 0 check --node n0 --uid u1 --gen 7 "$dir/hint"
verdict accepted
see "and printed" out "container web: NUMA nodes 2; distance 10.00; node 2: cpu 1500m; node 2: memory 8Gi"
run "later it is stale" 0 check --node n0 --uid u1 --gen 8 "$dir/hint"
verdict accepted-stale
run "another pod's is rejected" 1 check --node n0 --uid u2 "$dir/hint"
verdict rejected:uid
see "with the reason" out 'for the pod with uid "u1", this one has "u2"'
run "another node's is rejected" 1 check --node n9 --uid u1 "$dir/hint"
verdict rejected:node
run "an old one is rejected" 1 check --node n0 --uid u1 --now 1200000 "$dir/hint"
verdict rejected:expired
run "one from the future is rejected" 1 check --node n0 --uid u1 --now 900000 "$dir/hint"
verdict rejected:clock
run "unless clocks may differ so much" 0 check --node n0 --uid u1 --now 900000 --skew 100000 "$dir/hint"
run "nothing is no hint" 1 hint $ours ''
verdict rejected:format
run "a later version is not guessed at" 1 hint $ours '{"v":2}'
verdict rejected:version
run "control characters do not reach the terminal" 1 hint $ours '{"v":1,"\u001b[31m":1}'
see "they come out as ?" out 'unknown key "?[31m"'
run "another project's hint is read" 0 hint katalyst.kubewharf.io/numa_bind_result 0,2-3
see "and printed" out 'container *: NUMA nodes 0,2-3'
run "a NUMA node that is not there is named" 1 hint godel.bytedance.com/micro-topology '0:cpu=1;9:cpu=1'
verdict rejected:numa
see "with its number" out 'there is no NUMA node 9'
run "CPUs that are not there are named" 1 hint scheduling.koordinator.sh/resource-status '{"cpuset":"1000"}'
verdict rejected:foreign-cpuset
run "a policy is no hint about NUMA nodes" 0 hint volcano.sh/numa-topology-policy restricted
verdict none
run "a hint for nobody is bad usage" 2 "$numafit" hint encode --machine kep3545-8 --node n0 --numa 0
see "and the options that are missing are named" err "--node and --uid are expected (see numafit hint encode --help)"
run "so is one for no NUMA node" 2 encode
see "and they are named, too" err "--numa, --placed or --amounts is expected"
run "a check on a terminal without a file prints help" 2 script -qec "$numafit hint check" /dev/null
see "and what is expected" out "a FILE, or the annotation on the standard input, is expected"
run "a NUMA node that the machine lacks is bad usage" 2 encode --numa 8
see "and named with its option" err "--numa: there is no NUMA node 8"
run "an unknown mode, too" 2 encode --numa 0 --mode off
run "and an annotation that nobody reads" 2 check --key example.com/hint
run "and no word" 2 "$numafit" hint
run "and another word" 2 "$numafit" hint decode
run "and a file too many" 2 check a b
run "a file that is not there is named" 3 check "$dir/none"
see "with the reason" err "$dir/none: No such file or directory"
run "hint explains itself" 0 "$numafit" hint --help
see "with its usage" out "usage: numafit hint encode"
run "help hint says the same" 0 "$numafit" help hint
see "with its usage" out "usage: numafit hint encode"
finish
