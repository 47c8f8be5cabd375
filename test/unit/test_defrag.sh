#!/bin/sh
# numafit defrag against a real daemon: plans in words and as JSON, what it cannot do on a machine whose cgroups
# are not there, what is no question, and its exit codes. Containers that really move are in test/e2e.
# usage: BUILD=build/debug test/unit/test_defrag.sh
set -u
test=defrag short=yes
. test/unit/script_rig.sh

# Two NUMA nodes have 12 of 16 CPUs free, beside a container with 4 CPUs each; the others are nearly full.
cat >"$dir/trace.yaml" <<'X'
steps:
- create: {pod: large, qos: guaranteed, cpu: 10, memory: 2Gi, count: 4}
- create: {pod: small-0, container: main, qos: guaranteed, cpu: 4, memory: 8Gi}
- create: {pod: small-1, container: main, qos: guaranteed, cpu: 4, memory: 8Gi}
- create: {pod: small-2, container: main, qos: guaranteed, cpu: 4, memory: 8Gi}
- create: {pod: small-3, container: main, qos: guaranteed, cpu: 4, memory: 3Gi, annotations: ['numafit.io/movable=false']}
- stop-pod: {pod: large-2}
- stop-pod: {pod: large-3}
X
pod() { # NAME CPUS [MEMORY]
	cat >"$dir/$1.yaml" <<-X
		apiVersion: v1
		kind: Pod
		metadata: {name: $1}
		spec:
		  containers:
		  - name: main
		    image: none
		    resources:
		      limits: {cpu: "$2", memory: ${3:-1Gi}}
	X
}
start() { # SETTING...: the daemon, in the background
	set -- machine=kep3545-4 "nri.socketPath=$dir/nri.sock" "runDirectory=$dir/run" metrics.address= \
		topologyManagerPolicy=restricted reservedSystemCPUs=0 "$@"
	for setting; do set -- "$@" --set "$setting"; shift; done
	"$bin/numafitd" "$@" >"$dir/log" 2>&1 &
	daemon=$!
}
play() { # SETTING...: as start, and the containers are there
	start "$@"
	name=
	"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-4 --reserved 0 --trace "$dir/trace.yaml" >"$dir/said" 2>&1
	report $? "the containers are there${*:+ with $*}"
}
defrag() { "$bin/numafit" defrag --run-directory "$dir/run" "$@"; }
pod web 16
pod small 12
pod large 16 63Gi

play
run "a pod with 16 CPUs has room after a move" 0 defrag --for "$dir/web.yaml"
see "the pod is named" grep -qx 'room for web' "$dir/out"
see "what moves, and for how long" grep -q '^1 move, 8Gi of memory, 4 CPUs, some 8.6 s:$' "$dir/out"
see "the container that may, though the other one has less memory" grep -q '^  1. default/small-2/main, 8Gi of memory, some [0-9.]* s$' "$dir/out"
see "from where it is" grep -q '^     from CPUs [0-9,-]* on NUMA node 2$' "$dir/out"
see "to where there is room" grep -q '^     to   CPUs [0-9,-]* on NUMA node 3$' "$dir/out"
see "what becomes of it" says out 'then it fits, on as few NUMA nodes as on an empty machine'
see "that it cannot be done here" says out 'numafitd cannot make these moves: containers are moved where cgroups enforce the shared pool'
run "a program has the plan as JSON" 0 defrag --for "$dir/web.yaml" -o json
see "in one line" [ "$(wc -l <"$dir/out")" = 1 ]
see "with the same move" says out '"pod":"small-2","container":"main"'
see "its bytes" says out '"memory":8589934592'
see "and why it cannot be made" says out '"cannot":"containers are moved where cgroups enforce'
run "what fits as it is needs no move" 0 defrag --for "$dir/small.yaml"
see "and that is said" grep -qx 'nothing has to be moved' "$dir/out"
run "what fits nowhere" 1 defrag --for "$dir/large.yaml"
see "is not made to fit" grep -qx 'no 3 moves of running containers would help' "$dir/out"
run "another number of moves" 1 defrag --for "$dir/large.yaml" --moves 1
see "is said, too" grep -qx 'no 1 move of running containers would help' "$dir/out"
run "a pod on the standard input" 0 sh -c "'$bin/numafit' defrag --run-directory '$dir/run' --for - <'$dir/web.yaml'"
run "without a pod" 0 defrag
see "it says that all are where they are best" grep -qx 'each container with CPUs of its own is on as few NUMA nodes as on an empty machine' "$dir/out"
see "and that no move is needed" grep -qx 'nothing has to be moved' "$dir/out"
run "--apply cannot move anything without cgroups" 3 defrag --for "$dir/web.yaml" --apply
see "and says why" says out 'numafitd cannot make these moves: containers are moved where cgroups enforce the shared pool (cgroup v2, writable), and here they do not: '
run "with JSON" 3 defrag --for "$dir/web.yaml" --apply -o json
see "it says so, too" eval "says out '\"cannot\":\"containers are moved where' && ! says out '\"state\"'"
run "nothing was moved" 3 defrag --show
see "and that is said" says err 'no container was moved since numafitd started'
see "the ledger has the container where it was" eval \
	"'$bin/numafit' status -o json --run-directory '$dir/run' >'$dir/said' && ! grep -q '\"moves\"' '$dir/run/journal' && ! grep -q '\"op\":\"move' '$dir/run/journal'"

run "--show stands alone" 2 defrag --show --apply
see "and says so" says err '--show stands alone'
run "no moves are none" 2 defrag --moves 0
run "nine are too many" 2 defrag --moves 9
run "a file that is not there" 3 defrag --for "$dir/none.yaml"
printf 'kind: Service\n' >"$dir/service.yaml"
run "a file with no pod" 2 defrag --for "$dir/service.yaml"
stop_daemon
run "no daemon answers" 3 defrag
see "and which was asked is said" says err "$dir/run/numafitd.sock"

# Where a pod is refused its moves are named, unless defragment.mode is off; nothing moves here in any mode.
cat >>"$dir/trace.yaml" <<'X'
- create: {pod: web, qos: guaranteed, cpu: 16, memory: 1Gi}
X
logged() { # TEXT: within five seconds; the plan is made on a thread
	for try in 1 2 3 4 5 6 7 8 9 10; do
		! grep -qF -e "$1" "$dir/log" || return 0
		sleep 0.5
	done
	return 1
}
for mode in advise on-demand auto; do
	rm -rf "$dir/run"
	play defragment.mode=$mode
	see "in mode $mode the log has what would help a refused pod" \
		logged 'event=moves-would-help for=default/web text="moving default/small-2/main to NUMA node 3 (4 CPUs, 8Gi of memory)"'
	run "in mode $mode nothing can be moved here" 3 defrag --for "$dir/web.yaml" --apply
	see "for want of cgroups" says out 'numafitd cannot make these moves: containers are moved where cgroups'
	stop_daemon
	see "in mode $mode nothing was moved" eval "! grep -q 'event=move-begins' '$dir/log'"
done
rm -rf "$dir/run"
play defragment.mode=off
run "in mode off there is a plan for who asks" 0 defrag --for "$dir/web.yaml"
stop_daemon
see "but not for a refused pod" eval "! grep -q 'event=moves-would-help' '$dir/log'"
start mode=shadow
name=
for try in 1 2 3 4 5 6 7 8 9 10; do [ -S "$dir/run/numafitd.sock" ] && break; sleep 0.2; done
run "a daemon that does not decide moves nothing" 3 defrag
see "and says so" says err 'only in mode manage containers are moved'
stop_daemon
finish
