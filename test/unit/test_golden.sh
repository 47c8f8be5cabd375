#!/bin/sh
# Random questions with the answers of the kubelet's own code, as test/interop/kubelet wrote them:
# numafit decides the same, and this needs no Go.
# usage: BUILD=build/debug test/unit/test_golden.sh
set -u
numafit=${BUILD:-build/debug}/numafit
number=0 bad=0
for file in test/golden/*_random.jsonl test/golden/*137.jsonl; do
	[ "$file" != test/golden/merge_random.jsonl ] || continue # lists of hints: unit/test_recorded_merges.c
	number=$((number + 1))
	if out=$("$numafit" decide --check "$file" 2>&1); then
		echo "ok $number - every answer of the kubelet's in $file is numafit's"
	else
		echo "not ok $number - every answer of the kubelet's in $file is numafit's"
		echo "$out" | sed 's/^/# /'
		bad=1
	fi
done
echo "1..$number"
exit $bad
