#!/bin/sh
# The command line as people and scripts meet it: texts, exit codes, one JSON line for each line.
# usage: BUILD=build/debug test/unit/test_cli.sh
set -u
test=cli
. test/unit/script_rig.sh
numafit=$bin/numafit

decide() { printf "$1" | "$numafit" decide ${2:+"$2"}; }

no() { ! "$@"; }
has_line() { grep -qxF -e "$1" "$dir/out"; } # LINE
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
# The questions in a verb's help, each on a line: those that are broken have further blanks in front
questions_of() {
	"$numafit" "$1" --help | sed '/^options:/,$d' | awk '/^  [{]/ { print q; q = "" } /^  ( |[{])/ { q = q $0 } END { print q }' |
		grep -v '^  {"result"'
}
for verb in decide score; do
	run "$verb --help shows questions" 0 questions_of $verb
	see "several" [ "$(grep -c . "$dir/out")" -ge 2 ]
	grep . "$dir/out" >"$dir/questions"
	run "and $verb answers each of them" 0 "$numafit" $verb "$dir/questions"
	see "all of them" [ "$(grep -c '"result"' "$dir/out")" -eq "$(wc -l <"$dir/questions")" ]
	see "none with an error" no grep '"error"' "$dir/out"
done
run "decide's questions" 0 questions_of decide
see "have every form" [ "$(grep -cE '"(op": "admit|op": "create|machine": [{]|families|available|node_reservation)' "$dir/out")" -eq 6 ]
run "a kubelet that would not start is a result" 0 decide "$line,\"options\":{\"x\":1}}\n"
see "in the kubelet's words" is out '{"name":"a","result":{"error":"unknown Topology Manager Policy option: \"x\""}}'
run "a wrong expectation fails" 1 decide "$line,\"expected\":{\"affinity\":[0],\"preferred\":true,\"admit\":true}}\n" --check
see "with path, wanted and got" is out "a: affinity[0]: wanted 0, got 1
0 passed, 1 failed"
run "no expectation fails too" 1 decide "$line}\n" --check
run "nothing at all is answered by nothing" 0 decide ''
run "a file that is not there" 3 "$numafit" decide "$dir/none"
see "is named" says err "$dir/none: No such file or directory"
run "a folder is no file of questions" 3 "$numafit" decide "$dir"
run "two files are bad usage" 2 "$numafit" decide a b

run "no verb is bad usage" 2 "$numafit"
run "an unknown verb is bad usage" 2 "$numafit" stauts
see "and the one that is meant is named" says err 'numafit: there is no verb "stauts", did you mean "status"?'
run "a verb that is like none" 2 "$numafit" frobnicate
see "has the verbs listed" says err "  status "
run "an unknown option is bad usage" 2 "$numafit" status --jsn
see "named with program, verb and the one that is meant" is err "numafit status: unknown option --jsn, did you mean --json? (see numafit status --help)"
run "a machine of 64 NUMA nodes is shown" 0 "$numafit" topology --machine altix-64
see "with the distance between each two" [ "$(awk '/^distance/ {on = 1} on && NF == 65 {n++} END {print n}' "$dir/out")" = 65 ]
for verb in topology status top decide explain refusals whatif replay config score; do
	run "$verb explains itself" 0 "$numafit" $verb --help
	see "with its usage" says out "usage: numafit $verb"
	see "options" says out "  -h, --help "
	see "two examples" [ "$(sed -n '/^examples:/,/^exit codes:/p' "$dir/out" | grep -c '^  [^ ]')" -ge 2 ]
	see "and exit codes" says out "  3  "
	run "help $verb says the same" 0 "$numafit" help $verb
	see "with its usage" says out "usage: numafit $verb"
done
run "help lists the verbs" 0 "$numafit" help
see "each with a line" says out "  decide "
run "help for an unknown verb is bad usage" 2 "$numafit" help stauts
run "there is a version" 0 "$numafit" version
see "in one line" grep -qx 'numafit [0-9]*\.[0-9]*\.[0-9]*' "$dir/out"
run "a full disk is no success" 3 sh -c "'$numafit' help >/dev/full"

run "status without a daemon cannot ask" 3 "$numafit" status --socket "$dir/numafitd.sock"
see "naming the socket" says err "$dir/numafitd.sock: No such file or directory"
see "and what to check" says err "Check that numafitd runs on this node"
echo "runDirectory: $dir/run" >"$dir/config.yaml"
run "status looks where the config says" 3 "$numafit" status --config "$dir/config.yaml"
see "in its runDirectory" says err "$dir/run/numafitd.sock"
run "a config that is not there is named" 3 "$numafit" status --config "$dir/none.yaml"
see "with the reason" says err "$dir/none.yaml: No such file or directory"
run "a socket path that is too long is refused" 3 "$numafit" status --socket "$dir/$(printf %0120d 0)"
run "socket and config at once are bad usage" 2 "$numafit" status --socket a --config b
run "so are socket and run directory" 2 "$numafit" status --socket a --run-directory b
run "status looks in a run directory, as other verbs do" 3 "$numafit" status --run-directory "$dir/run"
see "for its socket" says err "$dir/run/numafitd.sock: No such file or directory"
run "explain of nothing is bad usage" 2 "$numafit" explain
run "and so is a container of too many parts" 2 "$numafit" explain a/b/c/d
run "a run directory without a journal is reported" 3 "$numafit" explain web --run-directory "$dir"
see "with what may be the reason" says err "numafitd has not run here since the last boot"
run "whatif with no such option is bad usage" 2 "$numafit" whatif --cores 8
run "an amount that is none is bad usage" 2 "$numafit" whatif --memory lots
see "and named with its option" says err "--memory: \"lots\" is not a quantity"
run "a policy that is none, too" 2 "$numafit" whatif --machine kep3545-4 --policy best
run "what fits on an empty machine" 0 "$numafit" whatif --machine kep3545-4 --cpus 16 --memory 8Gi
see "is printed with its place" says out "for it alone, on NUMA node 0"
run "what does not is refused" 1 "$numafit" whatif --machine kep3545-4 --cpus 17 --memory 8Gi \
	--policy single-numa-node
see "with what is missing" says out "one NUMA node has, if nothing runs there, 16"
see "and what would do" says out "Fits with 16 CPUs."
run "a program's answer to it" 1 "$numafit" whatif --machine kep3545-4 --cpus 17 --memory 8Gi --policy single-numa-node -o json
see "has the class, and why" says out '"class":"policy","why":"policy single-numa-node allows 1 NUMA node; one NUMA node has'
see "and what would do" says out '"help":"Fits with 16 CPUs","remedies":[{"kind":"ask-for-less","text":"with 16 CPUs","ask":{"name":"container-0",'
run "a setting that would help" 1 "$numafit" whatif --machine kep3545-4 --cpus 1 --memory 1Gi --set sharedPoolMinimum=64 -o json
see "is data, too" says out '"text":"with sharedPoolMinimum 63, on NUMA node 0","settings":{"sharedPoolMinimum":"63"}'
run "no pod has no containers" 2 "$numafit" whatif --containers 0
run "huge pages are asked for by their size" 0 "$numafit" whatif --machine kep3545-4 \
	--hugepages-1Gi=2Gi --cpus 2
see "and given" says out "2Gi of hugepages-1Gi on NUMA node 0"
run "a device that was given already draws CPUs and memory to it" 0 "$numafit" whatif --machine kep3545-8 \
	--cpus 4 --memory 1Gi --device gpu.example.com/node5 --policy restricted
see "with its name" says out "gpu.example.com (gpu.example.com) on NUMA node 5"
see "and they are on its NUMA node" says out "for it alone, on NUMA node 5"
run "a claim is asked about on each NUMA node" 0 "$numafit" whatif --machine kep3545-4 --claim --cpus 4 --memory 8Gi
see "and would be prepared on each" says out "it would be prepared on NUMA nodes 0-3"
see "with its CPUs" says out "node 2    yes: CPUs 16-17,48-49"
run "or on one" 0 "$numafit" whatif --machine kep3545-4 --claim --cpus 4 --hugepages-1Gi=2Gi --numa-node 2
see "with what it would have" says out "2Gi of hugepages-1Gi on NUMA node 2"
see "and what would be left" says out "12 of 16 (was 16)"
run "one that is larger than a NUMA node is refused" 1 "$numafit" whatif --machine kep3545-4 --claim --cpus 17 -o json
see "with a record for each NUMA node" [ "$(grep -c '"op":"refuse".*"why":"the claim asks for 17 CPUs of NUMA node' "$dir/out")" = 4 ]
run "whole cores are no odd number of CPUs" 1 "$numafit" whatif --machine kep3545-4 --claim --cpus 3 --whole-cores
see "for that reason" says out "the claim cannot be placed on whole cores"
run "a claim has no containers" 2 "$numafit" whatif --machine kep3545-4 --claim --cpus 3 --containers 2
run "and a pod no NUMA node" 2 "$numafit" whatif --machine kep3545-4 --cpus 3 --numa-node 2
run "two containers have one each" 0 "$numafit" whatif --machine kep3545-8 --cpus 4 --containers 2 \
	--device gpu.example.com/node5 --device gpu.example.com/node5
see "likewise" [ "$(grep -c 'for it alone, on NUMA node 5' "$dir/out")" = 2 ]
run "devices on two NUMA nodes are too many for single-numa-node" 1 "$numafit" whatif --machine kep3545-8 \
	--cpus 4 --device gpu.example.com/node5 --device nic.example.com/node2 --policy single-numa-node
run "a device on no NUMA node of the machine is bad usage" 2 "$numafit" whatif --machine kep3545-4 --cpus 4 --device gpu.example.com/node9
see "and named" says err "--device gpu.example.com/node9: machine kep3545-4: there is no NUMA node 9"
run "likewise one of a list of NUMA nodes" 2 "$numafit" whatif --machine kep3545-4 --cpus 4 --device gpu.example.com/node0-1,9
see "which is named" says err "--device gpu.example.com/node0-1,9: machine kep3545-4: there is no NUMA node 9"
for odd in "" , 1, 3-1 -1 64- 1024 99999999999999999999 0-1023,1024 1.5 "$(printf '0,%.0s' $(seq 5000))x"; do
	run "a device's odd list of NUMA nodes is bad usage: $(printf %.20s "$odd")" 2 "$numafit" whatif --machine kep3545-4 --cpus 4 --device "gpu.example.com/node$odd"
	see "and the right form is said" says err "it should be a name and NUMA nodes up to 1023, as gpu.example.com/node2 or gpu.example.com/node0-1,4"
done
run "a device that is equally near to several NUMA nodes has its CPUs on any of them" 0 "$numafit" whatif --machine kep3545-8 \
	--cpus 4 --memory 1Gi --device gpu.example.com/node5-6,5 --policy restricted
see "with all of its NUMA nodes" says out "gpu.example.com (gpu.example.com) on NUMA nodes 5-6"
see "of which it gets one" says out "for it alone, on NUMA node 5"
run "so is one without a NUMA node" 2 "$numafit" whatif --machine kep3545-4 --cpus 4 --device gpu.example.com
run "so are more than a pod may have" 2 "$numafit" whatif --machine kep3545-4 --cpus 1 --containers 17 --device gpu.example.com/node0
printf '%s\n' 'kind: Pod' 'spec:' '  containers:' \
	'  - {name: app, resources: {claims: [{name: gpu}], limits: {cpu: 4, memory: 1Gi}}}' \
	'  - {name: side, resources: {limits: {cpu: 1, memory: 1Gi}}}' >"$dir/claims.yaml"
run "of a file's pod the container with claims has it" 0 "$numafit" whatif --machine kep3545-8 \
	-f "$dir/claims.yaml" --device gpu.example.com/node5
see "and not the other one" [ "$(grep -c 'gpu.example.com) on NUMA node 5' "$dir/out")" = 1 ]
cat >"$dir/web.yaml" <<'X'
kind: Service
---
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    spec:
      containers:
      - name: main
        resources:
          limits: {cpu: 8, memory: 16Gi}
      - {name: log, resources: {limits: {cpu: 500m, memory: 1Gi}}}
X
run "one of a Deployment's pods is asked for" 0 "$numafit" whatif --machine kep3545-8 -f "$dir/web.yaml"
see "and named" says out "Deployment web, one of its 3 pods:"
see "with each of its containers" says out "log would be accepted"
whatif_stdin() { printf "$1" | "$numafit" whatif --machine kep3545-8 --policy single-numa-node -f -; }
run "JSON from the standard input is refused likewise" 1 whatif_stdin \
	'{"kind":"Pod","spec":{"containers":[\n\t{"name":"c","resources":{"limits":{"cpu":"20","memory":"1Gi"}}}]}}'
see "for its CPUs" says out "20 CPUs"
run "a file without a pod is wrong" 2 whatif_stdin 'kind: ConfigMap\n'
see "and that is said" says err "there is no Pod, Deployment, StatefulSet"
run "an amount that is none is wrong" 2 whatif_stdin \
	'kind: Pod\nspec: {containers: [{name: c, resources: {limits: {cpu: abc}}}]}\n'
see "with its place" says err 'spec: containers[0]: c: resources: limits.cpu: "abc" is not a quantity'
run "a misspelt resource is wrong" 2 whatif_stdin \
	'kind: Pod\nspec: {containers: [{name: c, resources: {limits: {memroy: 1Gi}}}]}\n'
see "with the one that is meant" says err 'container c: limits: unknown key "memroy", did you mean memory?'
run "so is a misspelt key" 2 whatif_stdin \
	'kind: Pod\nspec: {containers: [{name: c, resource: {limits: {cpu: 1}}}]}\n'
see "with the one that is meant" says err 'container c: container: unknown key "resource", did you mean resources?'
run "devices are not looked at" 0 whatif_stdin \
	'kind: Pod\nspec: {containers: [{name: c, resources: {limits: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1}}}]}\n'
see "and that is said" says err "note: devices are not looked at (nvidia.com/gpu)"
run "a shared pod larger than the machine is not refused" 0 whatif_stdin \
	'kind: Pod\nspec: {containers: [{name: c, resources: {requests: {memory: 1000Gi}}}]}\n'
see "and it is said that it does not come" has_line "note: it asks for 1000Gi of memory, and this machine has 128 CPUs, 512Gi of memory: no scheduler sends it here"
run "nor is one whose init container alone is larger" 0 whatif_stdin \
	'kind: Pod\nspec: {initContainers: [{name: i, resources: {requests: {cpu: 900}}}], containers: [{name: c}]}\n'
see "and that is said, too" has_line "note: it asks for 900 CPUs, and this machine has 128 CPUs, 512Gi of memory: no scheduler sends it here"
# advised ANNOTATION VALUE [OPTION...]: a pod of 2 CPUs with that annotation
advised() {
	printf '{"kind":"Pod","metadata":{"name":"a","annotations":{"%s":"%s"}},"spec":{"containers":[{"name":"m","resources":{"limits":{"cpu":"2","memory":"1Gi"}}}]}}' "$1" "$2" >"$dir/advised.json"
	shift 2
	"$numafit" whatif --machine kep3545-8 -f "$dir/advised.json" "$@"
}
hint() { # hint NODES MODE
	printf '{\\"v\\":1,\\"node\\":\\"else\\",\\"uid\\":\\"other\\",\\"at\\":1,\\"ttl\\":1,\\"mode\\":\\"%s\\",\\"containers\\":{\\"*\\":{\\"numa\\":\\"%s\\"}}}' "$2" "$1"
}
run "a file's hint is followed, whomever it was written for" 0 advised numafit.io/numa-hint "$(hint 5 prefer)"
see "where it leads" grep -q 'accepted, mode prefer: asked for NUMA nodes 5, given 5' "$dir/out"
run "a hint that must be followed can refuse" 1 advised numafit.io/numa-hint "$(hint 2-3 require)"
see "and what helps" grep -q 'Fits without its scheduler.s hint' "$dir/out"
run "a hint that cannot be read is no hint" 0 advised numafit.io/numa-hint '{}'
see "and that is said" grep -q 'note: numafit.io/numa-hint' "$dir/err"
run "a file's own policy counts where the node lets it" 0 advised numafit.io/topology-policy single-numa-node \
	--set schedulerHint.podPolicy=true
see "and is named" grep -q "single-numa-node, the pod's own (the node's is best-effort)" "$dir/out"
run "and not where it does not" 0 advised numafit.io/topology-policy single-numa-node
see "which is said" grep -q 'note: numafit.io/topology-policy is not looked at' "$dir/err"
see "then it is not named" sh -c "! grep -q single-numa-node '$dir/out'"
run "an annotation may name a container that the pod does not have" 0 advised cores.numafit.io/mm whole --set podWishes.allowed=cores
see "which is said" grep -qx 'numafit whatif: note: annotation cores.numafit.io/mm names a container that the pod does not have; did you mean m?' "$dir/err"
tokens() { # tokens NUMBER: 2 CPUs and so many numafit.io/cpu
	printf '{"kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"m","resources":{"limits":{"cpu":"2","memory":"1Gi","numafit.io/cpu":"%s"}}}]}}' "$1" >"$dir/tokens.json"
	"$numafit" whatif --machine kep3545-8 -f "$dir/tokens.json" --set devicePlugin.enabled=true
}
run "as many numafit.io/cpu as CPUs are right" 0 tokens 2
run "more are refused as numafitd refuses them" 1 tokens 4
see "and what would help" grep -q 'Fits with 2 of numafit.io/cpu' "$dir/out"
run "nothing that is asked for is no question" 2 "$numafit" whatif --machine kep3545-8
see "and what is missing is said" says err "say what is asked for"
run "a file and amounts exclude each other" 2 "$numafit" whatif -f "$dir/web.yaml" --cpus 2
run "a file that is not there cannot be asked" 3 "$numafit" whatif --machine kep3545-8 -f "$dir/none"
for verb in decide score; do
	run "$verb on a terminal without a file prints help" 2 script -qec "$numafit $verb" /dev/null
	see "with the form of questions" says out '  {"'
	see "and what is expected" says out "a FILE, or questions on the standard input, are expected"
done
run "a duration that is none is bad usage" 2 "$numafit" refusals --since 3x
run "a replay of nothing is bad usage" 2 "$numafit" replay
run "a journal that is none is reported" 3 "$numafit" replay "$dir/none"
see "with its name" says err "$dir/none: there is no journal"
finish
