#!/bin/sh
# tools/run-tests with programs that pass, fail, skip, crash and hang. TAP.
set -eu
dir=$(mktemp -d) cases=0 failed=0
trap 'rm -rf "$dir"' EXIT

expect() { # name, last line and status wanted, environment, body of the program
	cases=$((cases + 1))
	printf '#!/bin/sh\n%s\n' "$4" >"$dir/program"
	chmod +x "$dir/program"
	got=$(env -u CI TEST_TIMEOUT=1 $3 tools/run-tests "$dir/program" 2>&1 && echo "status 0" || echo "status $?")
	got=$(printf '%s\n' "$got" | tail -n 2 | tr '\n' ' ')
	if [ "$got" = "$2 " ]; then
		echo "ok $cases - $1"
	else
		echo "not ok $cases - $1 # wanted $2, got $got"
		failed=1
	fi
}

expect "cases are counted" "2 passed, 0 failed, 0 skipped status 0" "" \
	'printf "1..2\nok 1 - a\nok 2 - b\n"'
expect "a failed case fails the run" "1 passed, 1 failed, 0 skipped status 1" "" \
	'printf "1..2\nok 1 - a\nnot ok 2 - b\n"; exit 1'
expect "a failed case counts although the program says all is well" "0 passed, 1 failed, 0 skipped status 1" "" \
	'printf "1..1\nnot ok 1 - a\n"'
expect "a crash after the first case fails the others" "1 passed, 2 failed, 0 skipped status 1" "" \
	'printf "1..3\nok 1 - a\n"; kill -SEGV $$'
expect "a crash after the last case is a failure" "1 passed, 1 failed, 0 skipped status 1" "" \
	'printf "1..1\nok 1 - a\n"; kill -ABRT $$'
expect "a program that speaks no TAP is one case" "1 passed, 0 failed, 0 skipped status 0" "" 'echo hello'
expect "its status says whether it failed" "0 passed, 1 failed, 0 skipped status 1" "" 'exit 3'
expect "a hang is a failure" "0 passed, 1 failed, 0 skipped status 1" "" 'exec sleep 60'
expect "a skipped case is counted" "1 passed, 0 failed, 1 skipped status 0" "" \
	'printf "1..2\nok 1 - a\nok 2 - b # SKIP no such device\n"'
expect "a skipped case fails in CI" "1 passed, 0 failed, 1 skipped status 1" "CI=1" \
	'printf "1..2\nok 1 - a\nok 2 - b # SKIP no such device\n"'

expect "a program that leaves another one running has passed" "1 passed, 0 failed, 0 skipped status 0" "" \
	"sleep 60 & echo \$! >$dir/left"
cases=$((cases + 1)) left=$(cat "$dir/left") tries=0
runs() { sed -n '/^State:/p' "/proc/$left/status" 2>/dev/null | grep -qv Z; } # a zombie does not
while runs && [ $tries -lt 500 ]; do tries=$((tries + 1)); sleep 0.01; done
if runs; then
	echo "not ok $cases - and the other one is ended"
	failed=1
else
	echo "ok $cases - and the other one is ended"
fi

echo "1..$cases"
exit $failed
