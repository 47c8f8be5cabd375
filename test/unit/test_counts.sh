#!/bin/sh
# Sentences with a number in front of a noun: "1 CPU", and not "1 CPUs". text_plural() has the ending.
# usage: BUILD=build/debug test/unit/test_counts.sh
set -u
test=counts short=yes
. test/unit/script_rig.sh

# Nouns behind a number that may be 1, with their s in the format. Left out: limits ("more than %d",
# "at most"), what is never 1 there, and what is no count ("machine %s: sockets %u, cores %u").
fixed=$(grep -rnE '%l?l?z?[ud] (isolated |running )?(CPUs|pods|containers|NUMA nodes|times|updates|moves|records|cgroups|interrupts|ResourceSlices|pools|answers|nodes|devices|refusals|claims|mistakes|steps)([^a-zA-Z]|$)' \
	src --include=*.c | grep -vE 'log_line|pods=|more than|at most|within|err_set|E2BIG|EBADMSG|ENOMEM|ERANGE|"CPUs %u and %u|"CPUs = |too many' |
	grep -vE 'src/(sched/sched_cluster_left|codec/|questions/|kubelet/.*_pb|nri/nri_pb|numafit-extender/extender_(watch_)?json|host/|node/ledger_check|node/leases)' |
	grep -vE 'each of its %u containers|"%zu containers: "|of %u CPUs each|a multiple of %llu CPUs|of %llu pods|one of its %llu pods|of which %llu|an answer for|a request for|%llu steps may take|%llum CPUs|NUMA node %u, and|merge|has %u objects|the first %zu mistakes|"%zu mistakes"|%lu pods came|%u pods of other namespaces')
[ -z "$fixed" ] || echo "$fixed"
run "no count has a plural that is fixed" 0 [ -z "$fixed" ]
printf 'machine one\nnode 0 memory 8Gi cpus 0\n' >"$dir/one.machine"
run "a machine of one CPU" 0 "$bin/numafitd" --check-config --set machine="$dir/one.machine" --set cpuManagerPolicy=none
see "has one NUMA node and one CPU" says out " with 1 NUMA node and 1 CPU"
run "a pod of one CPU" 1 "$bin/numafit" whatif --machine "$dir/one.machine" --cpus 1
see "is refused with one CPU" eval 'says out "1 CPU" && ! says out "1 CPUs"'
finish
