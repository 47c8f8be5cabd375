#!/bin/sh
# numafit score: the recorded answers of the schedulers' plugins, and the manners of the verb.
# usage: BUILD=build/debug test/unit/test_score.sh
set -u
test=score
. test/unit/script_rig.sh
numafit=$bin/numafit

score() { text=$1; shift; printf '%s\n' "$text" | "$numafit" score "$@"; }

node='{"node":{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":4,"memory":"4Gi","pods":2}}}}'
pod='{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1","memory":"1Gi"}}}]}}'
line="{\"name\":\"a\",\"plugin\":\"NodeResourcesFit\",\"nodes\":[$node],\"pod\":$pod"
answer='{"name":"a","result":{"nodes":[{"name":"n","fits":true,"code":"Success","why":[],"score":75}]}}'

run "every recorded answer of the plugins is given" 0 "$numafit" score --check test/golden/score.jsonl
see "and is counted" is out "120 passed, 0 failed"
run "so are kube-scheduler's own, wrong arguments among them" 0 "$numafit" score --check test/golden/score_plugins.jsonl
see "all of them" is out "150 passed, 0 failed"
run "a question is answered on one line" 0 score "$line}"
see "in this form" is out "$answer"
run "the standard input has a name" 0 score "$line}" -
see "and is answered" is out "$answer"
run "an array is answered item by item" 1 score "[$line},
7]"
see "with one line each" is out "$answer
{\"item\":2,\"error\":\"should be an object, is an integer\"}"
run "a line that cannot be read does not stop the others" 1 score "bad
$line}"
see "and is named by its number" says out '{"line":1,"error":"not JSON: '
see "the others are answered" says out "$answer"
run "a misspelt key is an error" 1 score "$line,\"arg\":{}}"
see "that names it" is out '{"name":"a","error":"unknown key \"arg\""}'
run "arguments that the plugin refuses are answered" 0 score "$line,\"args\":{\"x\":1}}"
see "with what it says" is out '{"name":"a","result":{"error":"strict decoding error: unknown field \"x\""}}'
run "the arithmetic is printed" 0 score "$line}" --explain
see "before the answer" is out "a: node n
a: cpu: left 3000 of 4000: 75, weight 1
a: memory: left 3221225472 of 4294967296: 75, weight 1
a: left, RatioToAllocatable, Most: 75
a: score 75
$answer"
run "another answer than the recorded one fails" 1 score "$line,\"expected\":{\"nodes\":[{\"score\":7}]}}" --check
see "and is shown" is out "a: nodes[0].score: wanted 7, got 75
0 passed, 1 failed"
run "a mistake of the released code is compared with nothing" 0 score "$line,\"expected\":null}" --check
see "and passes" is out "1 passed, 0 failed"
run "a question without an answer cannot be checked" 1 score "$line}" --check
see "and says so" says out 'the key "expected" is missing'
run "a file that is not there is an error" 3 "$numafit" score "$dir/none"
see "with its name" says err "numafit score: $dir/none: No such file or directory"
run "two files are one too many" 2 "$numafit" score a b
run "an option that there is not is refused" 2 "$numafit" score --chek
run "help is given" 0 "$numafit" score --help
see "on how to use it" says out "usage: numafit score [--check] [--explain] [FILE|-]"
run "the verb is listed" 0 "$numafit" help
see "with what it does" says out "score"

finish
