#!/bin/sh
# numafit whatif --moves: which running containers would have to be moved for a pod, on a real daemon's journal.
# usage: BUILD=build/debug test/unit/test_whatif_moves.sh
set -u
test=moves short=yes
. test/unit/script_rig.sh

# Two NUMA nodes have 12 of 16 CPUs free, beside a container with 4 CPUs each; the others are nearly full.
cat >"$dir/trace.yaml" <<'X'
steps:
- create: {pod: large, qos: guaranteed, cpu: 10, memory: 2Gi, count: 4}
- create: {pod: small-0, container: main, qos: guaranteed, cpu: 4, memory: 8Gi}
- create: {pod: small-1, container: main, qos: guaranteed, cpu: 4, memory: 8Gi}
- create: {pod: small-2, container: main, qos: guaranteed, cpu: 4, memory: 8Gi}
- create: {pod: small-3, container: main, qos: guaranteed, cpu: 4, memory: 3Gi}
- stop-pod: {pod: large-2}
- stop-pod: {pod: large-3}
- create: {pod: wide, container: main, qos: guaranteed, cpu: 16, memory: 1Gi}
X
"$bin/numafitd" --set machine=kep3545-4 --set nri.socketPath="$dir/nri.sock" --set runDirectory="$dir/run" \
	--set metrics.address= --set topologyManagerPolicy=restricted --set reservedSystemCPUs=0 >"$dir/log" 2>&1 &
daemon=$!
run "the containers are there" 0 "$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-4 --reserved 0 --trace "$dir/trace.yaml"
for _ in $(seq 300); do # a plan for what was refused is made on a thread of its own
	! grep -q "event=moves-would-help" "$dir/log" || break
	sleep 0.1
done
stop_daemon

whatif() { "$bin/numafit" whatif --run-directory "$dir/run" "$@"; }
run "16 CPUs do not fit on one NUMA node" 1 whatif --cpus 16 --memory 1Gi --moves 1
see "but would after one move" says out "it would have as few NUMA nodes as on an empty machine after 1 move (3Gi of memory, 4 CPUs):"
see "of the container with the least memory" says out "  1. default/small-3/main, 3Gi of memory"
see "from where it is" grep -q '^     from CPUs [0-9,-]* on NUMA node 3$' "$dir/out"
see "to where there is room" grep -q '^     to   CPUs [0-9,-]* on NUMA node 2$' "$dir/out"
run "a program is answered the same" 1 whatif --cpus 16 --memory 1Gi --moves 1 -o json
see "in one line" [ "$(wc -l <"$dir/out")" = 1 ]
see "with why it is refused" says out '"class":"not-together"'
see "and the plan" says out '"moves":{"found":true,"cut":false,"memory":3221225472,"cpus":4,"list":[{"namespace":"default","pod":"small-3","container":"main"'
run "and what needs no move has a list without one" 0 whatif --cpus 12 --memory 1Gi --moves 1 -o json
see "besides what it would have" eval 'says out "\"op\":\"hold\"" && says out "\"moves\":{\"found\":true,\"cut\":false,\"memory\":0,\"cpus\":0,\"list\":[]}"'
run "what fits as it is needs no move" 0 whatif --cpus 12 --memory 1Gi --moves 2
see "and none is printed" eval "! grep -q 'after .* move' '$dir/out'"
run "what fits nowhere" 1 whatif --cpus 16 --memory 63Gi --moves 3
see "is not made to fit" says out "no 3 moves of running containers would make room for it"
run "a refusal is explained with the moves that would have made room" 0 "$bin/numafit" explain --run-directory "$dir/run" wide
see "in words" says out "  moves     Fits after moving default/small-3/main to NUMA node 2 (4 CPUs, 3Gi of memory)."
run "and so it is for programs" 0 "$bin/numafit" explain --run-directory "$dir/run" --json wide
see "behind its record" says out '"moves":{"found":true,"cut":false,"memory":3221225472,"cpus":4,"list":['
see "and the daemon's log has them" eval 'grep -q "event=moves-would-help for=default/wide .*small-3" "$dir/log"'
run "a claim is no pod" 2 whatif --claim --cpus 4 --moves 1
run "no moves are none" 2 whatif --cpus 16 --moves 0
run "and nine are too many" 2 whatif --cpus 16 --moves 9
finish
