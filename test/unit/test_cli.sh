#!/bin/sh
# The command line as people and scripts meet it: texts, exit codes, one JSON line for each line.
# usage: BUILD=build/debug test/unit/test_cli.sh
set -u
test=cli
. test/unit/script_rig.sh
numafit=$bin/numafit

decide() { printf "$1" | "$numafit" decide ${2:+"$2"}; }

line='{"name":"a","nodes":[0,1],"policy":"restricted","families":[{"kind":"dev","all":{"x":[1]},"avail":["x"],"request":1}]'
answer='{"name":"a","result":{"affinity":[1],"preferred":true,"admit":true}}'

run "a question is answered on one line" 0 decide "$line}\n"
see "in this form" is out "$answer"
run "a line without a newline is a line" 0 decide "$line}" -
see "and is answered" is out "$answer"
run "an array is answered item by item" 1 decide "\n [$line},\n7]"
see "with one line each" is out "$answer
{\"item\":2,\"error\":\"should be an object, is an integer\"}"
run "a line that cannot be read does not stop the others" 1 decide "\nbad\n$line}\n"
see "and is named by its number" says out '{"line":2,"error":"not JSON: '
see "the others are answered" says out "$answer"
run "a misspelt key is an error" 1 decide "$line,\"option\":{}}\n"
see "that names it" is out '{"name":"a","error":"unknown key \"option\""}'
run "a form that lacks a key is an error" 1 decide '{"name":"f","cpus_fields":[]}\n'
see "and no guess" is out '{"name":"f","error":"mode: should be packed, distributed or policy, is nothing"}'
run "every worked example of families passes" 0 "$numafit" decide --check test/golden/families.jsonl
see "and is counted" is out "9 passed, 0 failed"
run "lists of hints are not merged" 1 "$numafit" decide --check test/golden/merge.jsonl
see "and the form to ask is named" says out 'providers: lists of hints are not merged; ask what they follow from: \"families\": [{\"kind\": \"cpu\"'
run "decide --help shows each form" 0 "$numafit" decide --help
see "families too" says out '"families": [{"kind": "cpu"'
run "a kubelet that would not start is a result" 0 decide "$line,\"options\":{\"x\":1}}\n"
see "in the kubelet's words" is out '{"name":"a","result":{"error":"unknown Topology Manager Policy option: \"x\""}}'
run "a wrong expectation fails" 1 decide "$line,\"expected\":{\"affinity\":[0],\"preferred\":true,\"admit\":true}}\n" --check
see "with path, wanted and got" is out "a: affinity[0]: wanted 0, got 1
0 passed, 1 failed"
run "no expectation fails too" 1 decide "$line}\n" --check
run "nothing at all is answered by nothing" 0 decide ''
run "a file that is not there" 1 "$numafit" decide "$dir/none"
see "is named" says err "$dir/none: No such file or directory"
run "a folder is no file of questions" 1 "$numafit" decide "$dir"
run "two files are bad usage" 2 "$numafit" decide a b

run "no verb is bad usage" 2 "$numafit"
run "an unknown verb is bad usage" 2 "$numafit" stauts
see "and the verbs are listed" says err "  status "
run "an unknown option is bad usage" 2 "$numafit" status --jsn
for verb in topology status decide explain whatif replay; do
	run "$verb explains itself" 0 "$numafit" $verb --help
	see "with its usage" says out "usage: numafit $verb"
	run "help $verb says the same" 0 "$numafit" help $verb
	see "with its usage" says out "usage: numafit $verb"
done
run "help lists the verbs" 0 "$numafit" help
see "each with a line" says out "  decide "
run "help for an unknown verb is bad usage" 2 "$numafit" help stauts
run "there is a version" 0 "$numafit" version
see "in one line" grep -qx 'numafit [0-9]*\.[0-9]*\.[0-9]*' "$dir/out"
run "a full disk is no success" 1 sh -c "'$numafit' help >/dev/full"

run "status without a daemon fails" 1 "$numafit" status --socket "$dir/numafitd.sock"
see "naming the socket" says err "$dir/numafitd.sock: No such file or directory"
see "and what to check" says err "Check that numafitd runs on this node"
echo "runDirectory: $dir/run" >"$dir/config.yaml"
run "status looks where the config says" 1 "$numafit" status --config "$dir/config.yaml"
see "in its runDirectory" says err "$dir/run/numafitd.sock"
run "a config that is not there is named" 1 "$numafit" status --config "$dir/none.yaml"
see "with the reason" says err "$dir/none.yaml: No such file or directory"
run "a socket path that is too long is refused" 1 "$numafit" status --socket "$dir/$(printf %0120d 0)"
run "socket and config at once are bad usage" 2 "$numafit" status --socket a --config b
run "explain of nothing is bad usage" 2 "$numafit" explain
run "and so is a container of too many parts" 2 "$numafit" explain a/b/c/d
run "a run directory without a journal is said" 2 "$numafit" explain web --run-directory "$dir"
see "with what may be the reason" says err "numafitd has not run here since the last boot"
run "whatif with no such option is bad usage" 2 "$numafit" whatif --cores 8
run "an amount that is none is bad usage" 2 "$numafit" whatif --memory lots
see "and named with its option" says err "--memory: \"lots\" is not a quantity"
run "a policy that is none, too" 2 "$numafit" whatif --machine kep3545-4 --policy best
run "what fits on an empty machine" 0 "$numafit" whatif --machine kep3545-4 --cpus 16 --memory 8Gi
see "is printed with its place" says out "for it alone, on NUMA node 0"
run "what does not is refused" 1 "$numafit" whatif --machine kep3545-4 --cpus 17 --memory 8Gi \
	--policy single-numa-node
see "with what is missing" says out "cpu: enough only on 2 nodes together, even if nothing else ran"
run "no pod has no containers" 2 "$numafit" whatif --containers 0
run "huge pages are asked for by their size" 0 "$numafit" whatif --machine kep3545-4 \
	--hugepages-1Gi=2Gi --cpus 2
see "and given" says out "2Gi of hugepages-1Gi on NUMA node 0"
run "a replay of nothing is bad usage" 2 "$numafit" replay
run "a journal that is none is said" 2 "$numafit" replay "$dir/none"
see "with its name" says err "$dir/none: there is no journal"
finish
